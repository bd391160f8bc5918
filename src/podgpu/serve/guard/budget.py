"""How many checks of credentials an address may cause, and all of them together."""

from typing import NamedTuple

MOST_ADDRESSES = 1024


class Rate(NamedTuple):
    """`burst` at once, and `per_second` from then on."""

    burst: float
    per_second: float


class _Bucket:
    __slots__ = ("at", "left")

    def __init__(self, burst: float, at: float) -> None:
        self.left = burst
        self.at = at


class Budget:
    def __init__(self, each: Rate, total: Rate) -> None:
        self._each = each
        self._total = total
        self._all: _Bucket | None = None
        self._addresses: dict[str, _Bucket] = {}

    def take(self, address: str, now: float, *, is_stranger: bool) -> bool:
        """Take what a check costs, if it is there. Only strangers share the total."""
        own = self._addresses.pop(address, None) or _Bucket(self._each.burst, now)
        self._addresses[address] = own
        if len(self._addresses) > MOST_ADDRESSES:  # the longest unseen has as much as a new one soon
            del self._addresses[next(iter(self._addresses))]
        self._all = self._all or _Bucket(self._total.burst, now)
        _fill(own, self._each, now)
        _fill(self._all, self._total, now)
        if own.left < 1 or (is_stranger and self._all.left < 1):
            return False
        own.left -= 1
        if is_stranger:
            self._all.left -= 1
        return True

    def give_back(self, address: str, *, is_stranger: bool) -> None:
        """What turned out to be right costs nothing."""
        if address in self._addresses:
            self._addresses[address].left += 1
        if is_stranger and self._all is not None:
            self._all.left += 1


def _fill(bucket: _Bucket, rate: Rate, now: float) -> None:
    bucket.left = min(rate.burst, bucket.left + (now - bucket.at) * rate.per_second)
    bucket.at = now
