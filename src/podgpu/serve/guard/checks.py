"""Checks of credentials. They are costly: equal ones are made once, results are kept, and the number is bounded."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum, IntEnum
from hashlib import blake2b
from time import monotonic
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

import msgspec

from podgpu.serve.http.connections import RecentlySeen
from podgpu.supervise import SingleFlight

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
        """Take what a check costs, if there is enough. Clients with the same `shared` also share a total."""
        bucket = self._clients.pop(client, None) or _Bucket(self._each, self._each.burst, now)
        self._clients[client] = bucket
        if len(self._clients) > MOST_CLIENTS:  # a client that was not seen for long soon has as much as a new one
            del self._clients[next(iter(self._clients))]
        buckets = [bucket]
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
        """Return what a check cost: one that succeeds is free."""
        for bucket in (self._clients.get(client), self._shared.get(shared)):
            if bucket is not None:
                bucket.left += 1


class Rank(IntEnum):
    """Whose credentials are checked first: those that were right before, then by client.

    A client has logged in before, is new, or was refused. Each rank has its own places, so that none waits for the
    next.
    """

    KNOWN = 0
    FAMILIAR = 1
    NEW = 2
    SUSPECT = 3

    @property
    def shared(self) -> str:
        """The name of the total that it shares with others of its rank."""
        return self.name if self in (Rank.NEW, Rank.SUSPECT) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLimits:
    """Of each rank, `most` checks wait or run: `each` for a client, `familiar` if it has logged in, 1 if it is new.

    `at_once` run at a time, except those of credentials that were right before. `rate` is for one client, `total` for
    all new ones together, and for all suspects.
    """

    most: int
    each: int
    familiar: int
    at_once: int
    rate: Rate
    total: Rate


class CredentialChecks(Generic[T]):
    """`keep` returns for how many seconds a result holds, and `is_good` whether it lets the client in.

    `familiar` are the clients that have logged in before, if other checks share them.
    """

    def __init__(
        self,
        keep: Callable[[T], float],
        *,
        is_good: Callable[[T], bool],
        limits: CheckLimits,
        familiar: RecentlySeen | None = None,
    ) -> None:
        self._keep = keep
        self._is_good = is_good
        self._limits = limits
        self._salt = secrets.token_bytes(32)
        self._kept: dict[bytes, tuple[T, float]] = {}
        self._known = RecentlySeen(KNOWN_SECONDS, MOST_KNOWN)
        self._familiar = familiar or RecentlySeen(KNOWN_SECONDS, MOST_KNOWN)
        self._running: SingleFlight[T] = SingleFlight()
        self._places: Counter[Rank | str] = Counter()  # taken by checks of a rank, and of a client
        self._suspects = RecentlySeen(SUSPECT_SECONDS, MOST_KNOWN)
        self._turns: dict[Rank, AbstractAsyncContextManager[None]] = {
            rank: nullcontext() if rank is Rank.KNOWN else asyncio.Semaphore(limits.at_once) for rank in Rank
        }
        self._rates = RateLimiter(limits.rate, limits.total)

    async def result(self, shown: tuple[str, ...], client: str, check: Callable[[], Awaitable[T]]) -> T:
        """Return the result for what was shown. Raises TooManyChecks, and whatever the check raises."""
        # Digested: no secret is kept. Without the salt, no client can aim at the digest of another.
        key = blake2b(msgspec.json.encode(shown), key=self._salt, digest_size=32).digest()
        result, until = self._kept.get(key, (None, 0.0))
        if monotonic() < until:
            return result  # type: ignore[return-value]
        return await self._running.result(key, lambda: self._run(key, client, check))

    @contextmanager
    def _place(self, rank: Rank, client: str) -> Iterator[None]:
        """Take a place, and what a check costs. Raises TooManyChecks."""
        places: list[Rank | str] = [rank]
        is_full = self._places[rank] >= self._limits.most
        if rank is not Rank.KNOWN and not is_full:
            places.append(client)
            # What a new client is shows after its first check.
            most = {Rank.FAMILIAR: self._limits.familiar, Rank.SUSPECT: self._limits.each}.get(rank, 1)
            is_full = self._places[client] >= most or not self._rates.take(client, monotonic(), rank.shared)
        if is_full:
            raise TooManyChecks
        self._places.update(places)
        try:
            yield
        finally:
            self._places -= Counter(places)

    def _rank(self, key: bytes, client: str, now: float) -> Rank:
        if self._known.has(key.hex(), now):
            return Rank.KNOWN
        if self._familiar.has(client, now):
            return Rank.FAMILIAR
        return Rank.SUSPECT if self._suspects.has(client, now) else Rank.NEW

    async def _run(self, key: bytes, client: str, check: Callable[[], Awaitable[T]]) -> T:
        rank = self._rank(key, client, monotonic())
        with self._place(rank, client):
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
                # Those that hold for the shortest time go first, so a flood of bad tokens displaces no good one.
                del self._kept[min(self._kept, key=lambda kept: self._kept[kept][1])]
        return result


ALLOWED_SECONDS = 120.0
REFUSED_SECONDS = 10.0
UNKNOWN_SECONDS = 60.0
# Tokens that are not known yet leave some connections to the API server to those that are.
LIMITS = CheckLimits(most=32, each=2, familiar=8, at_once=2, rate=Rate(10, 1.0), total=Rate(40, 5.0))
# Kubernetes lets every account get what is below these, to discover what an API server offers (system:discovery).
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
    """Asks once for the user of a token, and once for each path. For one token, it asks one question at a time."""

    def __init__(self, authority: TokenAuthority) -> None:
        self._authority = authority
        familiar = RecentlySeen(KNOWN_SECONDS, MOST_KNOWN)
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
