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
        self._shared: dict[str, _Bucket] = {}
        self._addresses: dict[str, _Bucket] = {}

    def take(self, address: str, now: float, shared: str = "") -> bool:
        """Take what a check costs, if it is there. Those of one name share a total."""
        own = self._addresses.pop(address, None) or _Bucket(self._each.burst, now)
        self._addresses[address] = own
        if len(self._addresses) > MOST_ADDRESSES:  # the longest unseen has as much as a new one soon
            del self._addresses[next(iter(self._addresses))]
        buckets = [(own, self._each)]
        if shared:
            total = self._shared.setdefault(shared, _Bucket(self._total.burst, now))
            buckets.append((total, self._total))
        for bucket, rate in buckets:
            _fill(bucket, rate, now)
        if any(bucket.left < 1 for bucket, _ in buckets):
            return False
        for bucket, _ in buckets:
            bucket.left -= 1
        return True

    def give_back(self, address: str, shared: str = "") -> None:
        """What turned out to be right costs nothing."""
        for bucket in (self._addresses.get(address), self._shared.get(shared)):
            if bucket is not None:
                bucket.left += 1


def _fill(bucket: _Bucket, rate: Rate, now: float) -> None:
    bucket.left = min(rate.burst, bucket.left + (now - bucket.at) * rate.per_second)
    bucket.at = now
