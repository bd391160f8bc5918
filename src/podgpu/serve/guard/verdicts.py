"""Checks of credentials: costly, so each is made once for all who show the same, kept for a while, and bounded."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from time import monotonic
from typing import Generic, TypeVar

import msgspec

from podgpu.supervise import brief

MOST_KEPT = 256

T = TypeVar("T")


class Busy(Exception):
    """Too many checks are in progress."""


class Verdicts(Generic[T]):
    """`keep` says for how many seconds a verdict holds. `most` checks are made at a time, `each` for one client."""

    def __init__(self, keep: Callable[[T], float], *, most: int, each: int) -> None:
        self._keep = keep
        self._most = most
        self._each = each
        self._salt = secrets.token_bytes(32)
        self._kept: dict[bytes, tuple[T, float]] = {}
        self._running: dict[bytes, asyncio.Task[T]] = {}
        self._clients: Counter[str] = Counter()

    async def on(self, shown: tuple[str, ...], client: str, check: Callable[[], Awaitable[T]]) -> T:
        """Give the verdict on what was shown. Raises Busy, and whatever the check raises."""
        key = self._key(shown)
        verdict, until = self._kept.get(key, (None, 0.0))
        if verdict is not None and monotonic() < until:
            return verdict
        if key not in self._running:
            self._begin(key, client, check)
        # Another may wait for the same check, so a client that leaves does not end it.
        return await asyncio.shield(self._running[key])

    def _key(self, shown: tuple[str, ...]) -> bytes:
        """Digest it: no secret is kept. Without the salt nobody can aim at the digest of another."""
        return blake2b(msgspec.json.encode(shown), key=self._salt, digest_size=32).digest()

    def _begin(self, key: bytes, client: str, check: Callable[[], Awaitable[T]]) -> None:
        if len(self._running) >= self._most or self._clients[client] >= self._each:
            raise Busy
        self._clients[client] += 1
        self._running[key] = task = brief(self._run(key, check))
        task.add_done_callback(lambda done: self._end(key, client, done))

    async def _run(self, key: bytes, check: Callable[[], Awaitable[T]]) -> T:
        verdict = await check()
        seconds = self._keep(verdict)
        if seconds > 0:
            self._kept[key] = verdict, monotonic() + seconds
            if len(self._kept) > MOST_KEPT:
                # Those that hold for a short time go first, so a flood of bad tokens displaces no good one.
                del self._kept[min(self._kept, key=lambda one: self._kept[one][1])]
        return verdict

    def _end(self, key: bytes, client: str, task: asyncio.Task[T]) -> None:
        del self._running[key]
        self._clients[client] -= 1
        if not self._clients[client]:
            del self._clients[client]
        if not task.cancelled():
            task.exception()  # taken note of, even if everybody who waited has left
