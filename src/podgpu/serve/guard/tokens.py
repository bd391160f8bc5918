"""Bearer tokens, which somebody else judges."""

from enum import Enum
from typing import Protocol

from podgpu.serve.guard.verdicts import Verdicts

MOST_CHECKS = 32
CHECKS_OF_A_CLIENT = 8
ALLOWED_SECONDS = 120.0
REFUSED_SECONDS = 10.0
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
    async def __call__(self, token: str, verb: str, path: str) -> Verdict:
        """Say whether the token's holder may do that with the path. Raises Unavailable."""

    async def close(self) -> None: ...


class Tokens:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._verdicts: Verdicts[Verdict] = Verdicts(
            lambda verdict: ALLOWED_SECONDS if verdict is Verdict.ALLOWED else REFUSED_SECONDS,
            most=MOST_CHECKS,
            each=CHECKS_OF_A_CLIENT,
        )

    async def verdict(self, token: str, method: str, path: str, client: str) -> Verdict:
        """Raises Busy and Unavailable."""
        verb = "get" if method == "HEAD" else method.lower()
        asked = allowed_as(path)
        return await self._verdicts.on((verb, asked, token), client, lambda: self._judge(token, verb, asked))

    async def close(self) -> None:
        await self._judge.close()
