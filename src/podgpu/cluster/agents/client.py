"""Fetches documents of agents: straight from their addresses, or through the API server's pod proxy."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from podgpu.cluster.agents.options import LoginOptions
from podgpu.cluster.node_state import ReadFault
from podgpu.errors import UserError
from podgpu.kube.api import Api, ApiFault
from podgpu.net.client import HttpAnswer, HttpClient
from podgpu.net.connection import HttpFault
from podgpu.net.login import ClientCertificate, Login

MOST_BYTES = 8 << 20
LONGEST_LINE = 300
# Reasons of HTTP, in words of a node's. The others are the same.
_OF_HTTP = {"broken_off": "garbage", "credential": "login", "certificates": "login"}
# Reasons of the API server, in words of a node's. The others are its trouble with the pod.
_OF_API = {"unauthorized": "forbidden", "forbidden": "forbidden", "tls": "tls", "too_large": "too_large"}
_RIGHT = '{apiGroups: [""], resources: [pods/proxy], verbs: [get]}'


class FetchedDocument(Struct, frozen=True):
    """`body` is None if nothing has changed since the `etag` that was sent.

    `packed` is the same as it came, if that was compressed.
    """

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
    def __init__(self, *, timeout: float, login: Login | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._timeout = timeout
        self._most_bytes = most_bytes
        self._client = HttpClient(login)

    async def get(self, url: str, etag: str = "") -> FetchedDocument:
        headers = {"Accept": "application/json", **_conditional(etag)}
        try:
            answer = await self._client.request(
                "GET", url, headers, seconds=self._timeout, limit=self._most_bytes
            )
            # A server that refuses says in its answer what would let in the account.
            return _document(answer, self._most_bytes, "" if answer.encoding else _line(answer.body))
        except HttpFault as fault:
            raise ReadFault(_OF_HTTP.get(fault.reason, fault.reason), fault.detail) from None

    def forget(self, url: str) -> None:
        self._client.forget(url)

    async def close(self) -> None:
        await self._client.close()


class ProxyClient:
    """From a laptop, no pod can be reached directly."""

    def __init__(self, api: Api, *, timeout: float) -> None:
        self._api = api
        self._timeout = timeout

    async def get(self, url: str, etag: str = "") -> FetchedDocument:
        """`url` is a path of the API server."""
        path, _, query = url.partition("?")
        pairs = dict(pair.split("=", 1) for pair in query.split("&") if "=" in pair)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._api.fetch(path, pairs, _conditional(etag), limit=MOST_BYTES)
            return _document(answer, MOST_BYTES)
        except TimeoutError:
            raise ReadFault(
                "timeout", f"no answer within {self._timeout:g} s through the API server"
            ) from None
        except HttpFault as fault:
            raise ReadFault(_OF_HTTP.get(fault.reason, fault.reason), fault.detail) from None
        except ApiFault as fault:
            raise _of_api(fault) from None

    def forget(self, url: str) -> None:
        """Connections are not those of a single pod."""

    async def close(self) -> None:
        await self._api.close()


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


def _conditional(etag: str) -> dict[str, str]:
    return {"Accept-Encoding": "gzip", **({"If-None-Match": etag} if etag else {})}


def _document(answer: HttpAnswer, most_bytes: int, explanation: str = "") -> FetchedDocument:
    if answer.status == 304:
        return FetchedDocument(answer.etag, None)
    if answer.status == 200:
        packed = answer.body if answer.encoding == "gzip" else b""
        return FetchedDocument(answer.etag, answer.plain(most_bytes), packed)
    reason = {401: "unauthorized", 403: "forbidden"}.get(answer.status, "http_error")
    said = f": {explanation}" if explanation and answer.status == 403 else ""
    raise ReadFault(reason, f"it answers {answer.status}{said}")


def _line(body: bytes) -> str:
    text = body[:LONGEST_LINE].decode(errors="replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _of_api(fault: ApiFault) -> ReadFault:
    reason = _OF_API.get(fault.reason, "unreachable")
    needs = (
        f"; add this rule to a ClusterRole of the account: {_RIGHT}" if fault.reason == "forbidden" else ""
    )
    return ReadFault(reason, f"the API server says: {fault.detail or fault.reason}{needs}")
