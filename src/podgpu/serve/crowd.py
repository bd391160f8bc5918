"""All connections of a server, over all its addresses."""

from typing import Protocol

from podgpu.serve.limits import Limits


class Guest(Protocol):
    """A connection, as far as the crowd knows it. `quiet_since` is None while a request is in progress."""

    @property
    def quiet_since(self) -> float | None: ...

    def check(self, now: float) -> None: ...

    def abort(self) -> None: ...


class Crowd:
    def __init__(self, limits: Limits, max_connections: int) -> None:
        self._limits = limits
        self._max_connections = max_connections
        self._present: set[Guest] = set()
        self._apart: set[Guest] = set()

    def __len__(self) -> int:
        return len(self._present) + len(self._apart)

    def admit(self, guest: Guest, now: float) -> bool:
        if len(self._present) >= self._max_connections and not self._make_room(now):
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

    def sweep(self, now: float) -> None:
        for guest in (*self._present, *self._apart):
            guest.check(now)

    def abort(self) -> None:
        for guest in (*self._present, *self._apart):
            guest.abort()

    def _make_room(self, now: float) -> bool:
        """Part with the connection that has been without a request the longest.

        Otherwise a few hundred silent connections could keep the liveness probe out and get the agent killed.
        """
        quiet = [(one.quiet_since, one) for one in self._present if one.quiet_since is not None]
        since, guest = min(quiet, key=lambda pair: pair[0], default=(now, None))
        if guest is None or now - since < self._limits.settle_seconds:
            return False
        guest.abort()
        return True
