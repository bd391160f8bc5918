"""Bearer tokens, which an authority such as the API server reviews."""

import asyncio
from enum import Enum
from typing import Protocol
from weakref import WeakValueDictionary

from podgpu.serve.guard.checks import CheckLimits, CredentialChecks, Rate, familiar_clients

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

    def __init__(self, authority: TokenAuthority, limits: CheckLimits = LIMITS) -> None:
        self._authority = authority
        familiar = familiar_clients()
        self._users: CredentialChecks[object | None] = CredentialChecks(
            lambda user: UNKNOWN_SECONDS if user is None else ALLOWED_SECONDS,
            is_good=lambda user: user is not None,
            limits=limits,
            familiar=familiar,
        )
        self._paths: CredentialChecks[bool] = CredentialChecks(
            lambda allowed: ALLOWED_SECONDS if allowed else REFUSED_SECONDS,
            is_good=bool,
            limits=limits,
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
