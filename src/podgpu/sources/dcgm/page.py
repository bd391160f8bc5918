"""Fetches a page over HTTP. It must be whole, in time and not too large; otherwise there is a PageFault."""

import os
from urllib.parse import urlsplit

import aiohttp

HEADERS = {
    "Accept": "text/plain;version=0.0.4",
    "Accept-Encoding": "identity",  # so that the size limit applies to the bytes received
    "User-Agent": "podgpu",
}


class PageFault(Exception):
    """`reason` is page_unreachable, page_late, page_refused, page_garbage or page_too_large."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


class Pages:
    """Fetches pages. It follows no redirects, keeps no cookies and ignores proxies set in the environment."""

    def __init__(self, *, timeout: float, max_bytes: int) -> None:
        """`max_bytes` is the limit for all pages of a node together."""
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._max_bytes = max_bytes
        self._session: aiohttp.ClientSession | None = None

    async def get(self, url: str, *, together: int = 1) -> bytes:
        """Fetch one of `together` pages. Each may use an equal part of the bytes, so none can starve the others."""
        where = urlsplit(url).netloc.rpartition("@")[2]  # messages must not show a password in the address
        try:
            return await self._body(url, where, self._max_bytes // together)
        except TimeoutError:
            raise PageFault("page_late", f"{where} sent no page within {self._timeout.total:g} s") from None
        except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError, aiohttp.InvalidURL) as error:
            raise PageFault("page_garbage", f"{where}: {error}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise PageFault("page_unreachable", f"{where}: {_words(error)}") from None

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    async def _body(self, url: str, where: str, max_bytes: int) -> bytes:
        async with self._open().get(url, allow_redirects=False) as answer:
            if answer.status != 200:
                raise PageFault("page_refused", f"{where} answers {answer.status}")
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise PageFault(
                    "page_garbage", f"{where} sends a compressed page; podgpu asked for a plain one"
                )
            body = bytearray()
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > max_bytes:
                    answer.close()
                    raise PageFault("page_too_large", f"{where} sends more than {max_bytes >> 10} KiB")
            return bytes(body)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            # A new connection for each page: with an old one, a restart of the exporter would cost a cycle. No limit on
            # their number: a slow exporter must not keep other pages waiting while their timeout runs.
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=HEADERS,
                timeout=self._timeout,
                auto_decompress=False,
            )
        return self._session


def _words(error: Exception) -> str:
    """Say just `Connection refused` where the library needs a hundred characters."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number and number > 0 else str(error) or type(error).__name__
