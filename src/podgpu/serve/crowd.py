"""All connections that have a place, over all addresses that share it."""

from podgpu.serve.entry.origin import Standing
from podgpu.serve.entry.room import Guest, leaver
from podgpu.serve.entry.unread import Unread
from podgpu.serve.limits import Limits


class Crowd:
    def __init__(self, limits: Limits, max_connections: int, standing: Standing | None = None) -> None:
        self._limits = limits
        self._max_connections = max_connections
        self.standing = standing or Standing()
        self.unread = Unread(limits.unread_bytes)
        self._present: set[Guest] = set()
        self._apart: set[Guest] = set()

    def __len__(self) -> int:
        return len(self._present) + len(self._apart)

    def admit(self, guest: Guest, now: float) -> bool:
        if len(self._present) >= self._max_connections and not self._make_room(guest.address, now):
            return False
        self._present.add(guest)
        return True

    def set_apart(self, guest: Guest) -> None:
        """Keep watch over it, but do not count it: streams have a cap of their own."""
        self._present.discard(guest)
        self._apart.add(guest)

    def leave(self, guest: Guest) -> None:
        self._present.discard(guest)
        self._apart.discard(guest)
        self.unread.release(guest)

    def sweep(self, now: float) -> None:
        for guest in (*self._present, *self._apart):
            guest.check(now)

    def abort(self) -> None:
        for guest in (*self._present, *self._apart):
            guest.abort()

    def _make_room(self, newcomer: str, now: float) -> bool:
        """Part with a connection that asks for nothing, or does not read.

        Otherwise a few hundred of them could keep the liveness probe out and get the agent killed.
        """
        guest = leaver(self._present, newcomer, now, self._limits.settle_seconds, self.standing)
        if guest is not None:
            guest.abort()
        return guest is not None
