"""Checks of credentials: costly, so each is made once for all who show the same, kept for a while, and bounded."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from time import monotonic
from typing import Generic, TypeVar

import msgspec

from podgpu.serve.entry.origin import Standing
from podgpu.serve.guard.budget import Budget, Rate

MOST_KEPT = 1024
MOST_KNOWN = 1024
KNOWN_SECONDS = 24 * 3600.0

T = TypeVar("T")


class Busy(Exception):
    """Too many checks are in progress, or were caused of late."""


class Rank(IntEnum):
    """Whose check comes first: of what was right before, of an address that has logged in before, of anybody else."""

    KNOWN = 0
    FAMILIAR = 1
    STRANGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """`most` checks wait or run, `each` for one address, or `familiar` if it has logged in before.

    Of those that were not right before, `at_once` run at a time for strangers, and as many for familiar addresses.
    `rate` is what an address may cause, and `total` what strangers may cause together.
    """

    most: int
    each: int
    familiar: int
    at_once: int
    rate: Rate
    total: Rate


class Verdicts(Generic[T]):
    """`keep` says for how many seconds a verdict holds, and `is_good` whether it lets somebody in.

    `familiar` are the addresses that have logged in before, where others know them too.
    """

    def __init__(
        self,
        keep: Callable[[T], float],
        *,
        is_good: Callable[[T], bool],
        bounds: Bounds,
        familiar: Standing | None = None,
    ) -> None:
        self._keep = keep
        self._is_good = is_good
        self._bounds = bounds
        self._salt = secrets.token_bytes(32)
        self._kept: dict[bytes, tuple[T, float]] = {}
        self._known = Standing(KNOWN_SECONDS, MOST_KNOWN)
        self._familiar = familiar or familiar_addresses()
        self._running: dict[bytes, asyncio.Task[T]] = {}
        self._clients: Counter[str] = Counter()
        self._ranks: Counter[Rank] = Counter()
        self._turns = {rank: asyncio.Semaphore(bounds.at_once) for rank in (Rank.FAMILIAR, Rank.STRANGE)}
        self._budget = Budget(bounds.rate, bounds.total)

    async def on(self, shown: tuple[str, ...], client: str, check: Callable[[], Awaitable[T]]) -> T:
        """Give the verdict on what was shown. Raises Busy, and whatever the check raises."""
        key = self._key(shown)
        verdict, until = self._kept.get(key, (None, 0.0))
        if monotonic() < until:
            return verdict  # type: ignore[return-value]
        if key not in self._running:
            self._begin(key, client, check)
        # Another may wait for the same check, so a client that leaves does not end it.
        return await asyncio.shield(self._running[key])

    def _key(self, shown: tuple[str, ...]) -> bytes:
        """Digest it: no secret is kept. Without the salt nobody can aim at the digest of another."""
        return blake2b(msgspec.json.encode(shown), key=self._salt, digest_size=32).digest()

    def _begin(self, key: bytes, client: str, check: Callable[[], Awaitable[T]]) -> None:
        now = monotonic()
        rank = self._rank(key, client, now)
        if self._ranks[rank] >= self._bounds.most:
            raise Busy
        if rank is not Rank.KNOWN:
            most = self._bounds.familiar if rank is Rank.FAMILIAR else self._bounds.each
            if self._clients[client] >= most:
                raise Busy
            if not self._budget.take(client, now, is_stranger=rank is Rank.STRANGE):
                raise Busy
            self._clients[client] += 1
        self._ranks[rank] += 1
        self._running[key] = task = asyncio.ensure_future(self._run(key, client, rank, check))
        task.add_done_callback(lambda done: self._end(key, client, rank, done))

    def _rank(self, key: bytes, client: str, now: float) -> Rank:
        if self._known.is_good(key.hex(), now):
            return Rank.KNOWN
        return Rank.FAMILIAR if self._familiar.is_good(client, now) else Rank.STRANGE

    async def _run(self, key: bytes, client: str, rank: Rank, check: Callable[[], Awaitable[T]]) -> T:
        if rank is Rank.KNOWN:
            verdict = await check()
        else:
            async with self._turns[rank]:
                verdict = await check()
        if self._is_good(verdict):
            self._welcome(key, client, rank)
        seconds = self._keep(verdict)
        if seconds > 0:
            self._kept[key] = verdict, monotonic() + seconds
            if len(self._kept) > MOST_KEPT:
                # Those that hold for a short time go first, so a flood of bad tokens displaces no good one.
                del self._kept[min(self._kept, key=lambda kept: self._kept[kept][1])]
        return verdict

    def _welcome(self, key: bytes, client: str, rank: Rank) -> None:
        now = monotonic()
        self._known.credit(key.hex(), now)
        self._familiar.credit(client, now)
        if rank is not Rank.KNOWN:
            self._budget.give_back(client, is_stranger=rank is Rank.STRANGE)

    def _end(self, key: bytes, client: str, rank: Rank, task: asyncio.Task[T]) -> None:
        del self._running[key]
        self._ranks[rank] -= 1
        if rank is not Rank.KNOWN:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
        if not task.cancelled():
            task.exception()  # taken note of, even if everybody who waited has left


def familiar_addresses() -> Standing:
    return Standing(KNOWN_SECONDS, MOST_KNOWN)
