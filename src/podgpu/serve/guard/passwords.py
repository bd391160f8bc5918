"""Users and their passwords, kept as bcrypt hashes. A check takes a tenth of a second, so it runs in a thread."""

import asyncio
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from podgpu.serve.guard.checks import CheckLimits, CredentialChecks, Rate

RIGHT_SECONDS = 3600.0
WRONG_SECONDS = 60.0
THREADS = 4  # one for each rank
LIMITS = CheckLimits(most=32, each=2, familiar=4, at_once=1, rate=Rate(8, 0.1), total=Rate(32, 2.0))

_BCRYPT_BYTES = 72  # of a password count; Prometheus' own library ignores the rest too
_COST = slice(4, 6)  # of a hash such as $2b$10$…


class Passwords:
    """Right passwords are remembered: a known client gets in even while others try wrong ones. So are wrong ones."""

    def __init__(self, limits: CheckLimits = LIMITS) -> None:
        self._checks: CredentialChecks[bool] = CredentialChecks(
            lambda right: RIGHT_SECONDS if right else WRONG_SECONDS, is_good=bool, limits=limits
        )
        self._threads: ThreadPoolExecutor | None = None

    async def right(self, users: Mapping[str, bytes], shown: str, client: str) -> bool:
        """Check what follows the word Basic in a request, with at least one user. Raises TooManyChecks."""
        name, colon, password = _decoded(shown).partition(":")
        if not colon:
            return False
        dearest = max(users.values(), key=_cost)
        # An unknown name is checked too: the time must not reveal which names exist.
        hashed = users.get(name) or dearest

        async def check() -> bool:
            self._threads = self._threads or ThreadPoolExecutor(THREADS, "password")
            checking = asyncio.get_running_loop().run_in_executor(
                self._threads, _matches, password, hashed, _cost(dearest)
            )
            return await checking and name in users

        return await self._checks.result((name, hashed.decode(), password), client, check)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _matches(password: str, hashed: bytes, cost: int) -> bool:
    """Say whether it is right. To say that it is not takes as long as a check of a hash of that cost."""
    import bcrypt

    given = password.encode()[:_BCRYPT_BYTES]
    try:
        if bcrypt.checkpw(given, hashed):
            return True
        # Each step takes twice as long as the one before, so these and the check above take 2**cost together.
        for step in range(_cost(hashed), cost):
            bcrypt.checkpw(given, hashed[: _COST.start] + b"%02d" % step + hashed[_COST.stop :])
    except ValueError:  # a password that bcrypt cannot have hashed
        pass
    return False


def _cost(hashed: bytes) -> int:
    return int(hashed[_COST])


def _decoded(shown: str) -> str:
    try:
        return b64decode(shown, validate=True).decode()
    except (NotBase64, ValueError):
        return ""
