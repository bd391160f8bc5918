"""Users and their passwords, kept as bcrypt hashes. A check takes a tenth of a second, so it runs in a thread."""

import asyncio
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from podgpu.serve.guard.verdicts import Verdicts

THREADS = 2
MOST_CHECKS = 16
CHECKS_OF_A_CLIENT = 2
KEPT_SECONDS = 3600.0

_BCRYPT_BYTES = 72  # of a password count; Prometheus' own library ignores the rest too


class Passwords:
    """Right passwords are remembered: a known client gets in even while others try wrong ones."""

    def __init__(self) -> None:
        self._verdicts: Verdicts[bool] = Verdicts(
            lambda right: KEPT_SECONDS if right else 0.0, most=MOST_CHECKS, each=CHECKS_OF_A_CLIENT
        )
        self._threads: ThreadPoolExecutor | None = None

    async def right(self, users: Mapping[str, bytes], shown: str, client: str) -> bool:
        """Check what follows the word Basic in a request, with at least one user. Raises Busy."""
        name, colon, password = _decoded(shown).partition(":")
        if not colon:
            return False
        # For a name that nobody has, a check in vain: how long it takes must not tell names apart.
        hashed = users.get(name) or next(iter(users.values()))

        async def check() -> bool:
            return await self._in_thread(password, hashed) and name in users

        return await self._verdicts.on((name, hashed.decode(), password), client, check)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, password: str, hashed: bytes) -> bool:
        self._threads = self._threads or ThreadPoolExecutor(THREADS, "password")
        return await asyncio.get_running_loop().run_in_executor(self._threads, _matches, password, hashed)


def _matches(password: str, hashed: bytes) -> bool:
    import bcrypt

    try:
        return bcrypt.checkpw(password.encode()[:_BCRYPT_BYTES], hashed)
    except ValueError:  # a password that bcrypt cannot have hashed
        return False


def _decoded(shown: str) -> str:
    try:
        return b64decode(shown, validate=True).decode()
    except (NotBase64, ValueError):
        return ""
