"""Checks of credentials. They are costly: equal ones are made once, results are kept, and the number is bounded."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from hashlib import blake2b
from time import monotonic
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

import msgspec

from podgpu.serve.http.connections import KnownClients
from podgpu.supervise import brief

MOST_KEPT = 1024
MOST_KNOWN = 1024
MOST_CLIENTS = 1024
KNOWN_SECONDS = 24 * 3600.0
SUSPECT_SECONDS = 600.0

T = TypeVar("T")


class TooManyChecks(Exception):
    """Too many checks are in progress, or were caused recently."""


class Rate(NamedTuple):
    """`burst` at once, and `per_second` from then on."""

    burst: float
    per_second: float


@dataclass(slots=True)
class _Bucket:
    rate: Rate
    left: float
    at: float

    def fill(self, now: float) -> None:
        self.left = min(self.rate.burst, self.left + (now - self.at) * self.rate.per_second)
        self.at = now


class RateLimiter:
    """How many checks a client may cause, and all of them together."""

    def __init__(self, each: Rate, total: Rate) -> None:
        self._each = each
        self._total = total
        self._shared: dict[str, _Bucket] = {}
        self._clients: dict[str, _Bucket] = {}

    def take(self, client: str, now: float, shared: str = "") -> bool:
        """Take what a check costs, if it is there. Those of one name share a total."""
        own = self._clients.pop(client, None) or _Bucket(self._each, self._each.burst, now)
        self._clients[client] = own
        if len(self._clients) > MOST_CLIENTS:  # the longest unseen has as much as a new one soon
            del self._clients[next(iter(self._clients))]
        buckets = [own]
        if shared:
            buckets.append(self._shared.setdefault(shared, _Bucket(self._total, self._total.burst, now)))
        for bucket in buckets:
            bucket.fill(now)
        if any(bucket.left < 1 for bucket in buckets):
            return False
        for bucket in buckets:
            bucket.left -= 1
        return True

    def give_back(self, client: str, shared: str = "") -> None:
        """What turned out to be right costs nothing."""
        for bucket in (self._clients.get(client), self._shared.get(shared)):
            if bucket is not None:
                bucket.left += 1


class Rank(IntEnum):
    """Credentials that were right before, and those of a client that has logged in, that is new, or that was refused.

    Each has places of its own, so that none waits for the next.
    """

    KNOWN = 0
    FAMILIAR = 1
    NEW = 2
    SUSPECT = 3

    @property
    def shared(self) -> str:
        """The rate that it shares with others of its rank."""
        return self.name if self in (Rank.NEW, Rank.SUSPECT) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLimits:
    """Of each rank, `most` checks wait or run: `each` for a client, `familiar` if it has logged in, 1 if it is new.

    `at_once` run at a time, but for what was right before. `rate` is what a client may cause, and `total` what all
    new ones may cause together, and all suspects.
    """

    most: int
    each: int
    familiar: int
    at_once: int
    rate: Rate
    total: Rate


class CredentialChecks(Generic[T]):
    """`keep` returns for how many seconds a result holds, and `is_good` whether it lets the client in.

    `familiar` are the clients that have logged in before, where other checks know them too.
    """

    def __init__(
        self,
        keep: Callable[[T], float],
        *,
        is_good: Callable[[T], bool],
        limits: CheckLimits,
        familiar: KnownClients | None = None,
    ) -> None:
        self._keep = keep
        self._is_good = is_good
        self._limits = limits
        self._salt = secrets.token_bytes(32)
        self._kept: dict[bytes, tuple[T, float]] = {}
        self._known = KnownClients(KNOWN_SECONDS, MOST_KNOWN)
        self._familiar = familiar or KnownClients(KNOWN_SECONDS, MOST_KNOWN)
        self._running: dict[bytes, asyncio.Task[T]] = {}
        self._clients: Counter[str] = Counter()
        self._ranks: Counter[Rank] = Counter()
        self._suspects = KnownClients(SUSPECT_SECONDS, MOST_KNOWN)
        self._turns = {rank: asyncio.Semaphore(limits.at_once) for rank in Rank if rank is not Rank.KNOWN}
        self._rates = RateLimiter(limits.rate, limits.total)

    async def result(self, shown: tuple[str, ...], client: str, check: Callable[[], Awaitable[T]]) -> T:
        """Return the result for what was shown. Raises TooManyChecks, and whatever the check raises."""
        # Digested: no secret is kept. Without the salt, no client can aim at the digest of another.
        key = blake2b(msgspec.json.encode(shown), key=self._salt, digest_size=32).digest()
        result, until = self._kept.get(key, (None, 0.0))
        if monotonic() < until:
            return result  # type: ignore[return-value]
        if key not in self._running:
            self._begin(key, client, check)
        # Another may wait for the same check, so a client that leaves does not end it.
        return await asyncio.shield(self._running[key])

    def _begin(self, key: bytes, client: str, check: Callable[[], Awaitable[T]]) -> None:
        now = monotonic()
        rank = self._rank(key, client, now)
        if self._ranks[rank] >= self._limits.most:
            raise TooManyChecks
        if rank is not Rank.KNOWN:
            # A new client shows first what it is.
            most = {Rank.FAMILIAR: self._limits.familiar, Rank.SUSPECT: self._limits.each}.get(rank, 1)
            if self._clients[client] >= most or not self._rates.take(client, now, rank.shared):
                raise TooManyChecks
            self._clients[client] += 1
        self._ranks[rank] += 1
        self._running[key] = task = brief(self._run(key, client, rank, check))
        task.add_done_callback(lambda done: self._end(key, client, rank, done))

    def _rank(self, key: bytes, client: str, now: float) -> Rank:
        if self._known.knows(key.hex(), now):
            return Rank.KNOWN
        if self._familiar.knows(client, now):
            return Rank.FAMILIAR
        return Rank.SUSPECT if self._suspects.knows(client, now) else Rank.NEW

    async def _run(self, key: bytes, client: str, rank: Rank, check: Callable[[], Awaitable[T]]) -> T:
        if rank is Rank.KNOWN:
            result = await check()
        else:
            async with self._turns[rank]:
                result = await check()
        now = monotonic()
        if self._is_good(result):
            self._known.add(key.hex(), now)
            self._familiar.add(client, now)
            if rank is not Rank.KNOWN:
                self._rates.give_back(client, rank.shared)
        else:
            self._suspects.add(client, now)
        seconds = self._keep(result)
        if seconds > 0:
            self._kept[key] = result, now + seconds
            if len(self._kept) > MOST_KEPT:
                # Those that hold for a short time go first, so a flood of bad tokens displaces no good one.
                del self._kept[min(self._kept, key=lambda kept: self._kept[kept][1])]
        return result

    def _end(self, key: bytes, client: str, rank: Rank, task: asyncio.Task[T]) -> None:
        del self._running[key]
        self._ranks[rank] -= 1
        if rank is not Rank.KNOWN:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
        if not task.cancelled():
            task.exception()  # retrieved, even if every caller has left


ALLOWED_SECONDS = 120.0
REFUSED_SECONDS = 10.0
UNKNOWN_SECONDS = 60.0
# Of the connections to the API server, tokens that are not known yet leave some to those that are.
LIMITS = CheckLimits(most=32, each=2, familiar=8, at_once=2, rate=Rate(10, 1.0), total=Rate(40, 5.0))
# Kubernetes lets every account get what is below these, to find out what an API server offers (system:discovery).
FREE_FOR_ALL = frozenset({"api", "apis", "openapi", "version", "healthz", "livez", "readyz"})
OWN = "/podgpu"


class TokenAccess(Enum):
    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown token"


class ReviewUnavailable(Exception):
    """The token cannot be reviewed now."""


def reviewed_path(path: str) -> str:
    """Return the path that an account must be allowed in order to read this one.

    It is the same, but for those that Kubernetes allows every account: /podgpu/api/v1/snapshot for /api/v1/snapshot.
    """
    return OWN + path if path.strip("/").partition("/")[0] in FREE_FOR_ALL else path


class TokenAuthority(Protocol):
    async def authenticate(self, token: str) -> object | None:
        """Return the user of the token; None if it has none. Raises ReviewUnavailable."""

    async def authorize(self, user: object, token: str, verb: str, path: str) -> bool:
        """Return whether the token's user may do that with the path. Raises ReviewUnavailable."""

    async def close(self) -> None: ...


class Tokens:
    """Asks once for the user of a token, and once for each path. For one token, one thing at a time."""

    def __init__(self, authority: TokenAuthority) -> None:
        self._authority = authority
        familiar = KnownClients(KNOWN_SECONDS, MOST_KNOWN)
        self._users: CredentialChecks[object | None] = CredentialChecks(
            lambda user: UNKNOWN_SECONDS if user is None else ALLOWED_SECONDS,
            is_good=lambda user: user is not None,
            limits=LIMITS,
            familiar=familiar,
        )
        self._paths: CredentialChecks[bool] = CredentialChecks(
            lambda allowed: ALLOWED_SECONDS if allowed else REFUSED_SECONDS,
            is_good=bool,
            limits=LIMITS,
            familiar=familiar,
        )
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def access(self, token: str, method: str, path: str, client: str) -> TokenAccess:
        """Raises TooManyChecks and ReviewUnavailable."""
        user = await self._users.result((token,), client, lambda: self._authority.authenticate(token))
        if user is None:
            return TokenAccess.UNKNOWN
        verb = "get" if method == "HEAD" else method.lower()
        reviewed = reviewed_path(path)
        turn = self._turns.setdefault(token, asyncio.Lock())

        async def check() -> bool:
            async with turn:
                return await self._authority.authorize(user, token, verb, reviewed)

        allowed = await self._paths.result((verb, reviewed, token), client, check)
        return TokenAccess.ALLOWED if allowed else TokenAccess.FORBIDDEN

    async def close(self) -> None:
        await self._authority.close()
