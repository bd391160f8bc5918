"""Bearer tokens, which somebody else judges."""

import asyncio
from enum import Enum
from typing import Protocol
from weakref import WeakValueDictionary

from podgpu.serve.guard.budget import Rate
from podgpu.serve.guard.verdicts import Bounds, Verdicts, familiar_addresses

ALLOWED_SECONDS = 120.0
REFUSED_SECONDS = 10.0
UNKNOWN_SECONDS = 60.0
# Of the connections to the API server, tokens that are not known yet leave some to those that are.
BOUNDS = Bounds(most=32, each=2, familiar=8, at_once=2, rate=Rate(10, 1.0), total=Rate(40, 5.0))
# Kubernetes lets every account get what is below these, to find out what an API server offers (system:discovery).
FREE_FOR_ALL = frozenset({"api", "apis", "openapi", "version", "healthz", "livez", "readyz"})
OWN = "/podgpu"


class Verdict(Enum):
    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    UNKNOWN = "nobody's token"


class Unavailable(Exception):
    """The token cannot be judged now."""


def allowed_as(path: str) -> str:
    """Return the path that an account must be allowed in order to read this one.

    It is the same, but for those that Kubernetes allows everybody: /podgpu/api/v1/snapshot for /api/v1/snapshot.
    """
    return OWN + path if path.strip("/").partition("/")[0] in FREE_FOR_ALL else path


class Judge(Protocol):
    async def holder(self, token: str) -> object | None:
        """Say whose token this is; None if it is nobody's. Raises Unavailable."""

    async def may(self, holder: object, token: str, verb: str, path: str) -> bool:
        """Say whether the token's holder may do that with the path. Raises Unavailable."""

    async def close(self) -> None: ...


class Tokens:
    """Asks once whose a token is, and once for each path. For one token, one thing at a time."""

    def __init__(self, judge: Judge, bounds: Bounds = BOUNDS) -> None:
        self._judge = judge
        familiar = familiar_addresses()
        self._holders: Verdicts[object | None] = Verdicts(
            lambda holder: UNKNOWN_SECONDS if holder is None else ALLOWED_SECONDS,
            is_good=lambda holder: holder is not None,
            bounds=bounds,
            familiar=familiar,
        )
        self._rights: Verdicts[bool] = Verdicts(
            lambda allowed: ALLOWED_SECONDS if allowed else REFUSED_SECONDS,
            is_good=bool,
            bounds=bounds,
            familiar=familiar,
        )
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def verdict(self, token: str, method: str, path: str, client: str) -> Verdict:
        """Raises Busy and Unavailable."""
        holder = await self._holders.on((token,), client, lambda: self._judge.holder(token))
        if holder is None:
            return Verdict.UNKNOWN
        verb = "get" if method == "HEAD" else method.lower()
        asked = allowed_as(path)
        turn = self._turns.setdefault(token, asyncio.Lock())

        async def check() -> bool:
            async with turn:
                return await self._judge.may(holder, token, verb, asked)

        allowed = await self._rights.on((verb, asked, token), client, check)
        return Verdict.ALLOWED if allowed else Verdict.FORBIDDEN

    async def close(self) -> None:
        await self._judge.close()
