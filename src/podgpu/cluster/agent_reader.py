"""Reads an agent by conditional requests: an unchanged snapshot costs neither a body nor a decoding."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from podgpu.cluster.login_options import LoginOptions
from podgpu.cluster.node_state import ReadFault
from podgpu.errors import UserError
from podgpu.kube.api import ApiFault, ApiServer
from podgpu.model import Snapshot, Written
from podgpu.model.document import SchemaError, decode
from podgpu.net.client import HttpAnswer, HttpClient
from podgpu.net.connection import HttpFault
from podgpu.net.login import ClientCertificate, Login
from podgpu.sources.dcgm.page import PageFault, page_of

SLIM = "/api/v1/snapshot?form=slim"
FULL = "/api/v1/snapshot"
MOST_BYTES = 8 << 20
UNPACKED_AT_ONCE = 64 << 10  # of gzip: what is larger is unpacked in a thread. That of an agent usually is not
LONGEST_LINE = 300
# Faults of HTTP that have another name as the reason of a node.
_OF_HTTP = {"broken_off": "garbage", "credential": "login", "certificates": "login"}


class FetchedDocument(Struct, frozen=True):
    """`body` is None if it still has the `etag` that was sent. `packed` is what came, if that was compressed."""

    etag: str
    body: bytes | None
    packed: bytes = b""


class AgentClient(Protocol):
    async def get(self, url: str, etag: str = "") -> FetchedDocument:
        """Fetch a document, unless it still has this ETag. Raises ReadFault."""

    def forget(self, url: str) -> None:
        """Close the connection to an agent that is gone."""

    async def close(self) -> None: ...


class DirectClient:
    """Fetches documents straight from the addresses of agents."""

    def __init__(self, *, timeout: float, login: Login | None = None, limit: int = MOST_BYTES) -> None:
        self._timeout = timeout
        self._limit = limit
        self._client = HttpClient(login)

    async def get(self, url: str, etag: str = "") -> FetchedDocument:
        try:
            answer = await self._client.request("GET", url, conditional(etag), seconds=self._timeout, limit=self._limit)
        except HttpFault as fault:
            raise _read_fault(fault) from None
        # A server that refuses says in its answer which right the account lacks.
        explanation = "" if answer.encoding else _line(answer.body)
        if len(answer.body) <= UNPACKED_AT_ONCE:
            return document_of(answer, explanation, self._limit)
        return await asyncio.to_thread(document_of, answer, explanation, self._limit)

    def forget(self, url: str) -> None:
        self._client.forget(url)

    async def close(self) -> None:
        await self._client.close()


class AgentReader:
    """`node` is where Kubernetes runs the agent; empty if only its address is known."""

    origin = "agent"

    def __init__(self, client: AgentClient, url: str, node: str = "", *, turn: asyncio.Lock | None = None) -> None:
        """Readers that share a `turn` decode one document at a time: sixty at once would hold up other work."""
        self._client = client
        self._turn = turn or asyncio.Lock()
        self._url = url.rstrip("/")
        self._node = node
        self._etag = ""
        self._snapshot: Snapshot | None = None
        self.written: Written | None = None

    async def read(self) -> Snapshot:
        answer = await self._client.get(self._url + SLIM, self._etag if self._snapshot else "")
        if answer.body is None:
            if self._snapshot is None:
                raise ReadFault("garbage", "it answers that nothing has changed, but sent nothing before")
            return self._snapshot
        self._snapshot = self.written = None
        async with self._turn:
            self._snapshot = found = self._checked(answer.body)
            await asyncio.sleep(0)
        self._etag = answer.etag
        if answer.packed and _can_be_embedded(answer.body):
            self.written = Written(found, answer.packed)
        return found

    async def full(self) -> Snapshot:
        """Return the snapshot with everything in it."""
        answer = await self._client.get(self._url + FULL)
        return self._checked(answer.body or b"")

    async def close(self) -> None:
        self._client.forget(self._url)

    def _checked(self, body: bytes) -> Snapshot:
        try:
            snapshot = decode(body)
        except SchemaError as error:
            raise ReadFault("newer_schema" if error.is_newer else "older_schema", str(error)) from None
        except UserError as error:
            raise ReadFault("garbage", str(error)) from None
        # The snapshot of another node would be booked to this node.
        if self._node and snapshot.node != self._node:
            raise ReadFault("wrong_node", f"it reports node {snapshot.node!r}, but runs on {self._node!r}")
        if not snapshot.node:
            raise ReadFault("wrong_node", "it does not say which node it reports")
        return snapshot


def open_login(chosen: LoginOptions, urls: Iterable[str] = ()) -> Login:
    """Return what logs in at these URLs. Raises UserError."""
    if chosen.token_file and chosen.password_file:
        raise UserError("give either --login.token-file or --login.password-file, not both")
    cert, key = chosen.client_cert_file, chosen.client_key_file
    if (cert is None) != (key is None):
        raise UserError("--login.client-cert-file and --login.client-key-file go together; give both")
    login = Login(
        token_file=chosen.token_file,
        password_file=chosen.password_file,
        ca_file=chosen.ca_file,
        client=ClientCertificate(cert=cert, key=key) if cert and key else None,
        server_name=chosen.server_name,
    )
    for url in urls:
        login.check(url)
    return login


def conditional(etag: str) -> dict[str, str]:
    headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
    return {**headers, "If-None-Match": etag} if etag else headers


def document_of(answer: HttpAnswer, explanation: str = "", limit: int = MOST_BYTES) -> FetchedDocument:
    """Return the document in an answer. Raises ReadFault."""
    if answer.status == 304:
        return FetchedDocument(answer.etag, None)
    if answer.status == 200:
        packed = answer.body if answer.encoding == "gzip" else b""
        try:
            return FetchedDocument(answer.etag, answer.plain(limit), packed)
        except HttpFault as fault:
            raise _read_fault(fault) from None
    reason = {401: "unauthorized", 403: "forbidden"}.get(answer.status, "http_error")
    said = f": {explanation}" if explanation and answer.status == 403 else ""
    raise ReadFault(reason, f"it answers {answer.status}{said}")


def _read_fault(fault: HttpFault) -> ReadFault:
    return ReadFault(_OF_HTTP.get(fault.reason, fault.reason), fault.detail)


def _line(body: bytes) -> str:
    text = body[:LONGEST_LINE].decode(errors="replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _can_be_embedded(document: bytes) -> bool:
    """Whether a document is a single line of UTF-8, also in the fields that the decoder skips as unknown."""
    if b"\n" in document or b"\r" in document:
        return False
    try:
        return document.isascii() or bool(document.decode())
    except UnicodeDecodeError:
        return False


# Faults of the API server by the reason of a node. All others mean that it does not reach the pod.
_OF_NODE = {"unauthorized": "forbidden", "forbidden": "forbidden", "tls": "tls", "too_large": "too_large"}
_OF_PAGE = {"too_large": "page_too_large", "garbage": "page_garbage", "forbidden": "page_refused"}
_RIGHT = '{apiGroups: [""], resources: [pods/proxy], verbs: [get]}'


class ProxyClient:
    """Fetches documents of agents through the API server."""

    def __init__(self, api: ApiServer, *, timeout: float) -> None:
        self._api = api
        self._timeout = timeout

    async def get(self, url: str, etag: str = "") -> FetchedDocument:
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._api.fetch(url, conditional(etag), limit=MOST_BYTES)
        except TimeoutError:
            detail = f"no answer within {self._timeout:g} s through the API server"
            raise ReadFault("timeout", detail) from None
        except ApiFault as fault:
            needs = f"; add this rule to a ClusterRole of the account: {_RIGHT}"
            detail = f"the API server says: {fault.detail or fault.reason}"
            raise ReadFault(
                _OF_NODE.get(fault.reason, "unreachable"),
                detail + needs if fault.reason == "forbidden" else detail,
            ) from None
        return document_of(answer)

    def forget(self, url: str) -> None:
        """Connections are not those of a single pod."""

    async def close(self) -> None:
        await self._api.close()


class ProxyPageClient:
    """Fetches pages of dcgm-exporters through the API server, which others use and close."""

    def __init__(self, api: ApiServer, *, timeout: float, max_bytes: int) -> None:
        self._api = api
        self._timeout = timeout
        self._max_bytes = max_bytes

    async def get(self, url: str, *, together: int = 1) -> bytes:
        """Raises PageFault."""
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._api.fetch(url, {}, limit=self._max_bytes // together)
        except TimeoutError:
            raise PageFault("page_late", f"no page within {self._timeout:g} s") from None
        except ApiFault as fault:
            reason = _OF_PAGE.get(fault.reason, "page_unreachable")
            raise PageFault(reason, f"the API server says: {fault.detail or fault.reason}") from None
        return page_of(answer, "it")

    async def close(self) -> None:
        """Nothing of its own is open."""
