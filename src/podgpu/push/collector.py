"""The collector over HTTP: one attempt at a time, and a closed set of reasons for failures."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import aiohttp

from podgpu.push.environment import Destination

ANSWER_BYTES = 64 << 10
DETAIL_LENGTH = 300
LONGEST_RETRY_AFTER = 300.0
_REASONS = {401: "unauthorized", 403: "unauthorized", 413: "too_large", 429: "throttled"}
# Those that OTLP declares worth another try.
_AGAIN = frozenset({429, 502, 503, 504})

Complaint = Callable[[bytes], str]


class Undelivered(Exception):
    """Why the collector did not take it. `again` says that the same may be sent once more, after `pause` seconds."""

    def __init__(self, reason: str, detail: str, *, again: bool = False, pause: float = 0.0) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail[:DETAIL_LENGTH]
        self.again = again
        self.pause = pause


class Collector:
    """`complaint` reads the answer of a collector that took the request: what it left out, or nothing."""

    def __init__(self, destination: Destination, complaint: Complaint) -> None:
        self._destination = destination
        self._complaint = complaint
        self._session: aiohttp.ClientSession | None = None

    async def send(self, body: bytes) -> None:
        """Send a body, compressed already where that is asked for. Raises Undelivered."""
        to = self._destination
        encoding = {"Content-Encoding": "gzip"} if to.gzip else {}
        with _failures():
            async with self._opened().post(
                to.url,
                data=body,
                headers={
                    "User-Agent": "podgpu",
                    **to.headers,
                    "Content-Type": "application/x-protobuf",
                    **encoding,
                },
                ssl=self._trust(),
                timeout=aiohttp.ClientTimeout(total=to.timeout),
                allow_redirects=False,
            ) as answer:
                self._judge(answer, await answer.content.read(ANSWER_BYTES))

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=1)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def _trust(self) -> ssl.SSLContext | bool:
        """Read the files for every push, so that renewed certificates are used."""
        to = self._destination
        if not to.ca_file and not to.cert_file:
            return True
        try:
            context = ssl.create_default_context(cafile=to.ca_file and str(to.ca_file))
            if to.cert_file:
                context.load_cert_chain(to.cert_file, to.key_file)
        except OSError as error:  # ssl.SSLError is a subclass
            raise Undelivered("tls", f"cannot use the certificate files: {error.strerror or error}") from None
        return context

    def _judge(self, answer: aiohttp.ClientResponse, body: bytes) -> None:
        status = answer.status
        if not 200 <= status < 300:
            reason = _REASONS.get(status) or ("unreachable" if status in _AGAIN else "refused")
            raise Undelivered(reason, f"HTTP {status}", again=status in _AGAIN, pause=_retry_after(answer))
        if complaint := self._complaint(body):
            raise Undelivered("rejected", complaint)


def _retry_after(answer: aiohttp.ClientResponse) -> float:
    given = answer.headers.get("Retry-After", "")
    return min(float(given), LONGEST_RETRY_AFTER) if given.isascii() and given.isdigit() else 0.0


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientSSLError as error:
        raise Undelivered("tls", str(error)) from None
    except TimeoutError:
        raise Undelivered("deadline", "no answer in time", again=True) from None
    except (aiohttp.ClientResponseError, aiohttp.InvalidURL) as error:
        raise Undelivered("garbage", str(error)) from None
    except (aiohttp.ClientError, OSError) as error:
        raise Undelivered("unreachable", str(error) or type(error).__name__, again=True) from None
