"""The API server over HTTP: GET an object, POST one, stream lines, and a closed set of reasons for failures.

A token file is read for every request, so a rotated token is used at once. The token shows in no message.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import aiohttp
import msgspec

from podgpu.kube.api import MALFORMED, OBJECT_BYTES, POD_BYTES, ApiFault, ApiStatus, Fetched
from podgpu.kube.api.account import Account, ClientCertificate
from podgpu.kube.api.trust import Trust
from podgpu.option.file import start_of

REFUSAL_BYTES = 4 << 10
TOKEN_BYTES = 64 << 10
LONGEST_RETRY_AFTER = 300.0
CONNECTIONS = 8
MOST_COMMAS = 1 << 20  # sixteen MiB of pods have half as many
JSON = "application/json"
# The API server cuts everything else off. One that cannot answers with the whole object.
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1, {JSON}"

T = TypeVar("T")


class Asked(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: bytes | None = None
    accept: str = JSON
    headers: Mapping[str, str] | None = None

    @property
    def success(self) -> int:
        return 201 if self.method == "POST" else 200


class ApiServer:
    def __init__(
        self,
        url: str,
        *,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        token: str = "",
        ca: str = "",
        client: ClientCertificate | None = None,
        connect_seconds: float = 5.0,
        answer_seconds: float = 30.0,
        connections: int = CONNECTIONS,
    ) -> None:
        self._url = url.rstrip("/")
        self._token_file = token_file
        self._token = token
        self._trust = Trust(ca_file, ca, client)
        self._connect_seconds = connect_seconds
        self._answer_seconds = answer_seconds
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def get(
        self,
        path: str,
        kind: type[T],
        query: Mapping[str, str] | None = None,
        *,
        limit: int = OBJECT_BYTES,
        metadata_only: bool = False,
    ) -> T:
        asked = Asked("GET", path, query, accept=METADATA if metadata_only else JSON)
        async with self._answer(asked, self._patience) as response:
            return _decoded(await _body(response, limit), kind, path)

    async def post(self, path: str, kind: type[T], sent: object) -> T:
        asked = Asked("POST", path, body=msgspec.json.encode(sent))
        async with self._answer(asked, self._patience) as response:
            return _decoded(await _body(response, OBJECT_BYTES), kind, path)

    async def fetch(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str], *, limit: int
    ) -> Fetched:
        asked = Asked("GET", path, query, headers=headers)
        with _faults():
            async with await self._request(asked, self._patience) as response:
                found = Fetched(
                    response.status,
                    response.headers.get("ETag", ""),
                    response.headers.get("Content-Encoding", "").lower(),
                    await _body(response, limit),
                )
        if (own := _own_refusal(found)) is not None:
            raise own
        return found

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes | None]]:
        """Give the answer line by line, with None for a line that is too long. `silence` seconds make a stall."""
        patience = aiohttp.ClientTimeout(total=None, sock_connect=self._connect_seconds, sock_read=silence)
        async with self._answer(Asked("GET", path, query), patience) as response:
            try:
                yield _lines(response)
            except aiohttp.SocketTimeoutError:
                raise ApiFault("stalled", f"nothing for {silence:g} s") from None
            finally:
                response.close()

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    @property
    def _patience(self) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=self._answer_seconds, sock_connect=self._connect_seconds)

    @asynccontextmanager
    async def _answer(
        self, asked: Asked, patience: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        with _faults():
            response = await self._request(asked, patience)
            if response.status == 401:
                response.close()
                response = await self._request(asked, patience)
            async with response:
                if response.status != asked.success:
                    raise await _refusal(response)
                yield response

    async def _request(self, asked: Asked, patience: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._connections)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return await self._session.request(
            asked.method,
            self._url + asked.path,
            params=asked.query,
            data=asked.body,
            headers=self._headers(asked),
            ssl=self._trust.context(),
            timeout=patience,
            allow_redirects=False,
            auto_decompress=False,  # the size limits apply to what is received
        )

    def _headers(self, asked: Asked) -> dict[str, str]:
        headers = {"Accept": asked.accept, "Accept-Encoding": "identity", "User-Agent": "podgpu"}
        headers |= asked.headers or {}
        if asked.body:
            headers["Content-Type"] = JSON
        if token := _token(self._token_file) if self._token_file else self._token:
            headers["Authorization"] = f"Bearer {token}"
        return headers


def open_server(account: Account, connections: int = CONNECTIONS) -> ApiServer:
    return ApiServer(
        account.url,
        token_file=account.token_file,
        ca_file=account.ca_file,
        token=account.token,
        ca=account.ca,
        client=account.client,
        connections=connections,
    )


class Lines:
    """Cuts chunks of any size into lines. A line beyond the limit is dropped and becomes None."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._dropping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        first, *others = chunk.split(b"\n")
        self._append(first)
        for part in others:
            yield self._taken()
            self._append(part)

    def _append(self, part: bytes) -> None:
        self._dropping = self._dropping or len(self._rest) + len(part) > self._limit
        if self._dropping:
            self._rest.clear()
        else:
            self._rest += part

    def _taken(self) -> bytes | None:
        line = None if self._dropping else bytes(self._rest)
        self._dropping = False
        self._rest.clear()
        return line


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes | None]:
    lines = Lines(POD_BYTES)
    async for chunk in response.content.iter_any():
        for line in lines.feed(chunk):
            yield line


async def _body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            response.close()
            raise ApiFault("too_large", f"more than {limit >> 20} MiB")
    return bytes(body)


def _decoded(body: bytes, kind: type[T], path: str) -> T:
    # In a list of nothing but brackets and commas each three bytes become an object.
    if body.count(b",") > MOST_COMMAS:
        raise ApiFault("too_large", f"{path}: more than {MOST_COMMAS} commas")
    try:
        return msgspec.json.decode(body, type=kind)
    except MALFORMED as error:
        raise ApiFault("garbage", f"{path}: {error}") from None


async def _refusal(response: aiohttp.ClientResponse) -> ApiFault:
    """Turn any answer but success into a fault, with the server's own message if it sent one."""
    message = f"HTTP {response.status}"
    try:
        sent = _message(response.content_type, await response.content.read(REFUSAL_BYTES))
        message = f"{message}: {sent}" if sent else message
    except (*MALFORMED, aiohttp.ClientError, TimeoutError):
        pass  # the status says enough
    response.close()
    return ApiStatus(response.status, message).fault(_retry_after(response))


def _message(kind: str, body: bytes) -> str:
    """The API server sends an object; a proxy on the way, such as kubectl's, a line of text."""
    if kind == "text/plain":
        return " ".join(filter(str.isprintable, body.decode(errors="replace").split()))
    return msgspec.json.decode(body, type=ApiStatus).message


def _own_refusal(answer: Fetched) -> ApiFault | None:
    """Distinguish a refusal by the API server itself from what the pod behind it answers."""
    if answer.status < 400 or answer.encoding:
        return None
    try:
        status = msgspec.json.decode(answer.body, type=ApiStatus)
    except MALFORMED:
        return None
    return ApiStatus(answer.status, status.message).fault() if status.kind == "Status" else None


def _retry_after(response: aiohttp.ClientResponse) -> float:
    given = response.headers.get("Retry-After", "")
    # The server may choose the pause, but not switch us off.
    return min(float(given), LONGEST_RETRY_AFTER) if given.isascii() and given.isdigit() else 0.0


def _token(path: Path) -> str:
    try:
        token = start_of(path, TOKEN_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ApiFault("unauthorized", f"cannot read {path}: {type(error).__name__}") from None
    if not token.isprintable() or not token:
        raise ApiFault("unauthorized", f"{path} holds no token")
    return token


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientSSLError as error:
        raise ApiFault("tls", str(error)) from None
    except (aiohttp.ClientResponseError, aiohttp.InvalidURL) as error:
        raise ApiFault("garbage", str(error)) from None
    except TimeoutError:
        raise ApiFault("unreachable", "no answer in time") from None
    except (aiohttp.ClientError, OSError) as error:
        raise ApiFault("unreachable", str(error) or type(error).__name__) from None
