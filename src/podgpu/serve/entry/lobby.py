"""Where clients wait until they have sent a whole request. A place costs a descriptor and little else."""

import asyncio
import select
import socket
from collections.abc import Callable
from heapq import nlargest

from podgpu.serve.entry.origin import Standing
from podgpu.serve.limits import Limits

# Where the kernel does not hold back what was seen already, a dribbling client is looked at only so often.
LOOK_SECONDS = 0.1
# Of all places: no origin has more than the first, and one that has behaved has the second before its callers count.
# The third is made free at a time, from as many origins.
LARGEST_PART = 2
RESERVED_PART = 8
FREED_PART = 64

IsWhole = Callable[[bytes], bool]
Welcome = Callable[[socket.socket], None]


class Caller:
    """A client that has not yet sent a whole request."""

    __slots__ = ("address", "is_whole", "number", "seen", "since", "wire")

    def __init__(self, wire: socket.socket, address: str, since: float, is_whole: IsWhole) -> None:
        self.wire = wire
        # The loop is asked by it: asked by a socket it does not know, it would describe that socket at length.
        self.number = wire.fileno()
        self.address = address
        self.since = since
        self.is_whole = is_whole
        self.seen = 0


class Group:
    """The callers of one origin. Those who have had their chance stand apart, so that nobody is searched for."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._young: dict[Caller, None] = {}
        self._ripe: dict[Caller, None] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._ripe)

    def add(self, caller: Caller) -> None:
        self._young[caller] = None

    def discard(self, caller: Caller) -> None:
        self._young.pop(caller, None)
        self._ripe.pop(caller, None)

    def leaver(self, ripe_at: float) -> Caller:
        """Choose the youngest of those who came by then, else the oldest of all."""
        while self._young and (first := next(iter(self._young))).since <= ripe_at:
            del self._young[first]
            self._ripe[first] = None
        return next(reversed(self._ripe)) if self._ripe else next(iter(self._young))


class Lobby:
    """A newcomer always gets a place. Under pressure the youngest caller that has had its chance makes room for it.

    So those who flood the lobby push out each other, and a client that asks at once is not among them.
    """

    def __init__(self, limits: Limits, places: int, standing: Standing) -> None:
        self._limits = limits
        self._places = max(1, places)
        self._standing = standing
        self._by_address: dict[str, Group] = {}
        self._callers: dict[Caller, Welcome] = {}

    def __len__(self) -> int:
        return len(self._callers)

    def enter(self, caller: Caller, welcome: Welcome) -> None:
        """Wait for the client's request, then let it in by `welcome`, which reads that request itself."""
        if len(self._by_address.get(caller.address, ())) >= max(1, self._places // LARGEST_PART):
            self._part_with_one(self._by_address[caller.address], caller.since)
        elif len(self._callers) >= self._places:
            self.make_room(caller.since)
        self._callers[caller] = welcome
        self._by_address.setdefault(caller.address, Group(caller.address)).add(caller)
        self._look(caller)

    def make_room(self, now: float) -> bool:
        """Part with a caller of the origin that has most of them, or of several, to look at all of them less often."""
        count = max(1, self._places // FREED_PART)
        largest = nlargest(count, self._by_address.values(), key=lambda group: self._weight(group, now))
        for group in largest:
            self._part_with_one(group, now)
        return bool(largest)

    def sweep(self, now: float) -> None:
        late = now - self._limits.head_seconds
        for caller in list(self._callers):
            if caller.since >= late:
                break
            self._dismiss(caller)

    def abort(self) -> None:
        for caller in list(self._callers):
            self._dismiss(caller)

    def _weight(self, group: Group, now: float) -> int:
        is_good = self._standing.is_good(group.address, now)
        return len(group) - (self._places // RESERVED_PART if is_good else 0)

    def _part_with_one(self, group: Group, now: float) -> None:
        self._dismiss(group.leaver(now - self._limits.settle_seconds))

    def _look(self, caller: Caller) -> None:
        if caller not in self._callers:
            return
        loop = asyncio.get_running_loop()
        try:
            data = caller.wire.recv(self._limits.line_bytes + 1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            loop.add_reader(caller.number, self._look, caller)
            return
        except OSError:
            self._dismiss(caller)
            return
        if not data:
            self._dismiss(caller)
        elif caller.is_whole(data):
            self._let_in(caller)
        else:
            self._wait_for_more(caller, len(data))

    def _wait_for_more(self, caller: Caller, size: int) -> None:
        loop = asyncio.get_running_loop()
        if size > caller.seen:
            caller.seen = size
            caller.wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size + 1)
            loop.add_reader(caller.number, self._look, caller)
        elif _has_ended(caller.wire):
            self._dismiss(caller)
        else:
            loop.remove_reader(caller.number)
            loop.call_later(LOOK_SECONDS, self._look, caller)

    def _let_in(self, caller: Caller) -> None:
        welcome = self._callers[caller]
        self._forget(caller)
        if caller.seen:
            caller.wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        welcome(caller.wire)

    def _dismiss(self, caller: Caller) -> None:
        self._forget(caller)
        caller.wire.close()

    def _forget(self, caller: Caller) -> None:
        asyncio.get_running_loop().remove_reader(caller.number)
        del self._callers[caller]
        group = self._by_address[caller.address]
        group.discard(caller)
        if not group:
            del self._by_address[caller.address]


def _has_ended(wire: socket.socket) -> bool:
    """Whether the client will send no more."""
    look = select.poll()
    look.register(wire, select.POLLRDHUP)
    return bool(look.poll(0))
