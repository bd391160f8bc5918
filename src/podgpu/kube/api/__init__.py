"""Requests to the API server: objects, lists and watches, with a fixed list of reasons for failures."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct, field

from podgpu.errors import ReasonedError
from podgpu.net.client import HttpAnswer, HttpClient, HttpStream
from podgpu.net.connection import HttpFault
from podgpu.net.login import Login
from podgpu.option.value import bare_address

OBJECT_BYTES = 2 << 20
PAGE_BYTES = 16 << 20
# etcd keeps 1.5 MiB of an object. In JSON each of its characters may take six, and a tenant chooses its characters.
POD_BYTES = 16 << 20
# What a decoder raises for malformed bytes, hostile nesting included.
MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
DETAIL_LENGTH = 300

REASONS = {
    "unreachable": "no connection, no answer in time, or a server error",
    "unauthorized": "no usable token, or the token was refused",
    "forbidden": "the service account lacks the right",
    "throttled": "too many requests",
    "gone": "the version to go on from is no longer kept",
    "stalled": "an open watch fell silent",
    "garbage": "an answer that makes no sense",
    "tls": "the server's certificate is not trusted",
    "too_large": "an answer beyond the size limit",
    "too_many": "more objects than a node or a cluster has",
}
_BY_STATUS = {401: "unauthorized", 403: "forbidden", 410: "gone", 429: "throttled"}

CONNECTIONS = 8
MOST_COMMAS = 1 << 20  # sixteen MiB of pods have half as many
JSON = "application/json"
# The API server leaves out everything else. A server that cannot do so answers with the whole object.
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1, {JSON}"
_PLAIN = {"Accept": JSON, "Accept-Encoding": "identity"}
# Reasons of HttpFault that have another name here.
_REASONS = {
    "timeout": "unreachable",
    "broken_off": "unreachable",
    "credential": "unauthorized",
    "certificates": "tls",
}

T = TypeVar("T")


class ApiFault(ReasonedError):
    """Why the API server gave nothing. `reason` is in REASONS; `status` is the HTTP status, or 0 without an answer."""

    def __init__(self, reason: str, detail: str = "", *, status: int = 0, retry_after: float = 0.0) -> None:
        super().__init__(reason, detail[:DETAIL_LENGTH])
        self.status = status
        self.retry_after = retry_after


class ApiStatus(msgspec.Struct):
    """The API server's own error object."""

    code: int = 0
    message: str = ""
    kind: str = ""

    def fault(self, retry_after: float = 0.0) -> ApiFault:
        reason = _BY_STATUS.get(self.code) or ("unreachable" if self.code >= 500 else "garbage")
        return ApiFault(reason, self.message, status=self.code, retry_after=retry_after)


class ListMetadata(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class ListPage(Struct, Generic[T]):
    metadata: ListMetadata
    items: list[T] | None = None


class ApiAccount(Struct, frozen=True):
    """The address of an API server, and how to log in there."""

    url: str
    login: Login


def in_cluster(environ: Mapping[str, str], root: Path = Path("/")) -> ApiAccount | None:
    """Return the service account that this process has in the cluster it runs in, if there is one."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    folder = root / "var/run/secrets/kubernetes.io/serviceaccount"
    if not host or not (folder / "token").exists():
        return None
    shown = f"[{host}]" if ":" in host else host
    login = Login(token_file=folder / "token", ca_file=folder / "ca.crt")
    return ApiAccount(f"https://{shown}:{port}", login)


def checked_account(account: ApiAccount) -> ApiAccount:
    """Refuse an address that is not valid, or a login in plain text over a network."""
    wanted = "the address of an API server; write it like https://10.0.0.1:6443"
    bare_address(account.url, wanted, "a token file")
    account.login.check(account.url)
    return account


class ApiServer:
    def __init__(
        self,
        url: str,
        login: Login | None = None,
        *,
        connect_seconds: float = 5.0,
        answer_seconds: float = 30.0,
        connections: int = CONNECTIONS,
    ) -> None:
        self._url = url.rstrip("/")
        self._answer_seconds = answer_seconds
        self._connections = connections
        self._client = HttpClient(login, connections=connections, kept=connections, connect_seconds=connect_seconds)

    async def get(
        self,
        path: str,
        kind: type[T],
        query: Mapping[str, str] | None = None,
        *,
        limit: int = OBJECT_BYTES,
        metadata_only: bool = False,
    ) -> T:
        """GET one object, or only its metadata. Raises ApiFault."""
        headers = {**_PLAIN, "Accept": METADATA} if metadata_only else _PLAIN
        return _decoded(await self._accepted("GET", _with_query(path, query), headers, limit=limit), kind, path)

    async def post(self, path: str, kind: type[T], sent: object) -> T:
        """POST an object, and return what the server made of it. Raises ApiFault."""
        headers, body = {**_PLAIN, "Content-Type": JSON}, msgspec.json.encode(sent)
        return _decoded(await self._accepted("POST", path, headers, body), kind, path)

    async def fetch(self, path: str, headers: Mapping[str, str], *, limit: int) -> HttpAnswer:
        """GET through the API server's proxy. Raises ApiFault if that fails; whatever the pod answers is returned."""
        answer = await self._request("GET", path, {**_PLAIN, **headers}, limit=limit)
        if (fault := _own_refusal(answer)) is not None:
            raise fault
        return answer

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes | None]]:
        """Stream an answer by its lines. One that is too long is None. `silence` is how long no data may come."""
        client, url = await self._opened(), f"{self._url}{_with_query(path, query)}"
        with _faults():
            for attempt in (1, 2):
                async with client.stream(url, _PLAIN, silence=silence) as stream:
                    if stream.status == 200:
                        yield _lines(stream)
                        return
                    if stream.status != 401 or attempt == 2:
                        raise _refusal(await stream.error())

    async def close(self) -> None:
        await self._client.close()

    async def _accepted(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int = OBJECT_BYTES
    ) -> bytes:
        """Return the body of a success."""
        for _ in range(2):  # a refused token may just have been rotated
            answer = await self._request(method, path, headers, body, limit=limit)
            if answer.status != 401:
                break
        if answer.status != (201 if method == "POST" else 200):
            raise _refusal(answer)
        return answer.body

    async def _request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> HttpAnswer:
        client, url = await self._opened(), f"{self._url}{path}"
        with _faults():
            return await client.request(method, url, headers, body, seconds=self._answer_seconds, limit=limit)

    async def _opened(self) -> HttpClient:
        return self._client


def _with_query(path: str, query: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(query)}" if query else path


async def list_pages(
    api: ApiServer,
    path: str,
    kind: type[ListPage[T]],
    query: Mapping[str, str],
    *,
    size: int,
    most: int,
    freshness: Mapping[str, str] | None = None,
) -> AsyncIterator[ListPage[T]]:
    """Yield the pages of a list, of `size` items each. A list of more than `most` pages is refused.

    `freshness` says how old the list may be. Only the first request may carry it.
    """
    position = freshness or {}
    for _ in range(most):
        page = await api.get(path, kind, {**query, "limit": str(size), **position}, limit=PAGE_BYTES)
        yield page
        if not page.metadata.continue_:
            return
        position = {"continue": page.metadata.continue_}
    raise ApiFault("too_large", f"{path}: more than {most} pages of {size}")


class LineSplitter:
    """Cuts chunks of any size into lines. A line beyond the limit becomes None."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line: bytearray | None = bytearray()  # the line so far; None once it is too long

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        *ends, begin = chunk.split(b"\n")
        for end in ends:
            self._append(end)
            yield None if self._line is None else bytes(self._line)
            self._line = bytearray()
        self._append(begin)

    def _append(self, part: bytes) -> None:
        if self._line is None or len(self._line) + len(part) > self._limit:
            self._line = None
        else:
            self._line += part


async def _lines(stream: HttpStream) -> AsyncIterator[bytes | None]:
    lines = LineSplitter(POD_BYTES)
    async for piece in stream.pieces():
        for line in lines.feed(piece):
            yield line


def _decoded(body: bytes, kind: type[T], path: str) -> T:
    # In a list of empty objects, every three bytes become an object in memory.
    if body.count(b",") > MOST_COMMAS:
        raise ApiFault("too_large", f"{path}: more than {MOST_COMMAS} commas")
    try:
        return msgspec.json.decode(body, type=kind)
    except MALFORMED as error:
        raise ApiFault("garbage", f"{path}: {error}") from None


def _refusal(answer: HttpAnswer) -> ApiFault:
    """Turn any answer but success into a fault, with the server's own message if it sent one."""
    message = f"HTTP {answer.status}"
    with suppress(*MALFORMED):  # the status says enough
        if sent := _message(answer.headers.get("content-type", ""), answer.body):
            message = f"{message}: {sent}"
    return ApiStatus(answer.status, message).fault(answer.retry_after)


def _message(kind: str, body: bytes) -> str:
    """The API server sends an object; a proxy on the way, such as kubectl's, a line of text."""
    if kind.startswith("text/plain"):
        return " ".join(filter(str.isprintable, body.decode(errors="replace").split()))
    return msgspec.json.decode(body, type=ApiStatus).message


def _own_refusal(answer: HttpAnswer) -> ApiFault | None:
    """Return a fault if the API server itself refused; None for whatever the pod behind it answered."""
    if answer.status < 400 or answer.encoding:
        return None
    try:
        status = msgspec.json.decode(answer.body, type=ApiStatus)
    except MALFORMED:
        return None
    return ApiStatus(answer.status, status.message).fault() if status.kind == "Status" else None


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except HttpFault as fault:
        raise ApiFault(_REASONS.get(fault.reason, fault.reason), fault.detail) from None
