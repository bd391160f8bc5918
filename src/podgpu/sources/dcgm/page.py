"""Fetches a page over HTTP. It must be whole, in time and not too large; otherwise there is a PageFault."""

from urllib.parse import urlsplit

from podgpu.errors import ReasonedError
from podgpu.net.client import HttpAnswer, HttpClient
from podgpu.net.connection import HttpFault

HEADERS = {
    "Accept": "text/plain;version=0.0.4",
    "Accept-Encoding": "identity",  # so that the size limit applies to the bytes received
}
_REASONS = {
    "timeout": "page_late",
    "garbage": "page_garbage",
    "broken_off": "page_garbage",
    "too_large": "page_too_large",
}


class PageFault(ReasonedError):
    """`reason` is page_unreachable, page_late, page_refused, page_garbage or page_too_large."""


class PageClient:
    def __init__(self, *, timeout: float, max_bytes: int) -> None:
        """`max_bytes` is the limit for all pages of a node together."""
        self._timeout = timeout
        self._max_bytes = max_bytes
        # A new connection for each page: with an old one, a restart of the exporter would cost a cycle. No limit on
        # their number: a slow exporter must not keep other pages waiting while their timeout runs.
        self._client = HttpClient(kept=0)

    async def get(self, url: str, *, together: int = 1) -> bytes:
        """Fetch one of `together` pages. Each may use an equal part of the bytes, so none can starve the others."""
        where = urlsplit(url).netloc.rpartition("@")[2]  # messages must not show a password in the address
        try:
            answer = await self._client.request(
                "GET", url, HEADERS, seconds=self._timeout, limit=self._max_bytes // together
            )
        except HttpFault as fault:
            reason = _REASONS.get(fault.reason, "page_unreachable")
            raise PageFault(reason, f"{where}: {fault.detail}") from None
        return page_of(answer, where)

    async def close(self) -> None:
        await self._client.close()


def page_of(answer: HttpAnswer, where: str) -> bytes:
    """Return the page in an answer. Raises PageFault."""
    if answer.status != 200:
        raise PageFault("page_refused", f"{where} answers {answer.status}")
    if answer.encoding:
        raise PageFault("page_garbage", f"{where} sends a compressed page; podgpu asked for a plain one")
    return answer.body
