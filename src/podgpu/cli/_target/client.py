"""Fetches documents from a server, over one connection."""

import asyncio
import threading

from podgpu.cluster.agent_reader import open_login
from podgpu.cluster.login_options import LoginOptions
from podgpu.errors import UserError
from podgpu.net.client import HttpAnswer, HttpClient
from podgpu.net.connection import ConnectionRefused, HttpFault
from podgpu.numbers import duration

TIMEOUT_SECONDS = 10.0
LARGEST_BYTES = 512 * 2**20
_ADVICE = "is `podgpu agent` or `podgpu cluster` running there? give another address with --url"


class NothingListens(UserError):
    """The connection is refused."""


class DocumentClient:
    """Each request has one deadline, even if the answer comes in small pieces."""

    def __init__(self, url: str, chosen: LoginOptions, timeout: float = TIMEOUT_SECONDS) -> None:
        self.url = url
        self._chosen = chosen
        self._login = open_login(chosen, [url])
        self._timeout = timeout
        self._client = HttpClient(self._login)
        self._runner = asyncio.Runner()
        self._running = threading.Lock()

    def get(self, path: str, etag: str = "") -> tuple[HttpAnswer, bytes | None]:
        """Return any answer of 200, 304 or 404, and its body if it is another than the `etag` names.

        All else is a UserError that says what to do.
        """
        try:
            with self._running:
                answer = self._runner.run(self._asked(path, etag))
            self._check(answer.status)
            return answer, None if answer.status == 304 else answer.plain(LARGEST_BYTES)
        except ConnectionRefused:
            raise NothingListens(f"{self.url} refuses the connection; {_ADVICE}") from None
        except HttpFault as fault:
            raise UserError(f"{self.url} {self._problem(fault)}") from None

    def twin(self) -> "DocumentClient":
        """Open another one for the same server, for another thread."""
        return DocumentClient(self.url, self._chosen, self._timeout)

    def close(self) -> None:
        """Close it, unless another thread waits for an answer: that ends with the process."""
        if self._running.acquire(blocking=False):
            self._runner.run(self._client.close())
            self._runner.close()

    async def _asked(self, path: str, etag: str) -> HttpAnswer:
        headers = {"Accept-Encoding": "gzip", **({"If-None-Match": etag} if etag else {})}
        url = self.url.rstrip("/") + path
        return await self._client.request("GET", url, headers, seconds=self._timeout, limit=LARGEST_BYTES)

    def _check(self, status: int) -> None:
        if status in (200, 304, 404):
            return
        if status == 401 and not self._login.has_secret:
            advice = "asks for a login; give --login.token-file or --login.password-file"
            raise UserError(f"{self.url} {advice}")
        if status == 401:
            raise UserError(f"{self.url} does not accept the login; check the files of --login")
        if status == 403:
            raise UserError(f"{self.url} does not let this account read; ask its administrator for access")
        raise UserError(f"{self.url} answers {status}; {_ADVICE}")

    def _problem(self, fault: HttpFault) -> str:
        if fault.reason == "timeout":
            return f"does not answer within {duration(self._timeout)}; {_ADVICE}"
        if fault.reason == "tls":
            return f"and podgpu do not agree on TLS ({fault.detail}); give its authority with --login.ca-file"
        if fault.reason in ("credential", "certificates"):
            return f"cannot be logged in to: {fault.detail}; check the files of --login"
        return f"cannot be read ({fault.detail}); {_ADVICE}"
