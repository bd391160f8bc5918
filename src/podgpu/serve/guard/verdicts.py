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
from podgpu.supervise import brief

MOST_KEPT = 1024
MOST_KNOWN = 1024
KNOWN_SECONDS = 24 * 3600.0
SUSPECT_SECONDS = 600.0

T = TypeVar("T")


class Busy(Exception):
    """Too many checks are in progress, or were caused of late."""


class Rank(IntEnum):
    """What was right before, and what is from an address that has logged in before, that is new, or that was refused.

    Each has places of its own, so that none waits for the next.
    """

    KNOWN = 0
    FAMILIAR = 1
    NEW = 2
    SUSPECT = 3

    @property
    def shared(self) -> str:
        """The budget that it shares with others of its rank."""
        return self.name if self in (Rank.NEW, Rank.SUSPECT) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Of each rank, `most` checks wait or run: `each` for an address, `familiar` if it has logged in, 1 if it is new.

    `at_once` run at a time, but for what was right before. `rate` is what an address may cause, and `total` what all
    new ones may cause together, and all suspects.
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
        self._suspects = Standing(SUSPECT_SECONDS, MOST_KNOWN)
        self._turns = {rank: asyncio.Semaphore(bounds.at_once) for rank in Rank if rank is not Rank.KNOWN}
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
            if self._clients[client] >= self._most_of(rank):
                raise Busy
            if not self._budget.take(client, now, rank.shared):
                raise Busy
            self._clients[client] += 1
        self._ranks[rank] += 1
        self._running[key] = task = brief(self._run(key, client, rank, check))
        task.add_done_callback(lambda done: self._end(key, client, rank, done))

    def _most_of(self, rank: Rank) -> int:
        """How many checks of an address may wait or run. A new one shows first what it is."""
        return {Rank.FAMILIAR: self._bounds.familiar, Rank.SUSPECT: self._bounds.each}.get(rank, 1)

    def _rank(self, key: bytes, client: str, now: float) -> Rank:
        if self._known.is_good(key.hex(), now):
            return Rank.KNOWN
        if self._familiar.is_good(client, now):
            return Rank.FAMILIAR
        return Rank.SUSPECT if self._suspects.is_good(client, now) else Rank.NEW

    async def _run(self, key: bytes, client: str, rank: Rank, check: Callable[[], Awaitable[T]]) -> T:
        if rank is Rank.KNOWN:
            verdict = await check()
        else:
            async with self._turns[rank]:
                verdict = await check()
        if self._is_good(verdict):
            self._welcome(key, client, rank)
        else:
            self._suspects.credit(client, monotonic())
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
            self._budget.give_back(client, rank.shared)

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
