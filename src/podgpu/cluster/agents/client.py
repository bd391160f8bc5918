"""Fetches documents of agents straight from their addresses, each within one deadline."""

import asyncio
import os
import ssl
import zlib
from typing import Any
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from podgpu.cluster.agents.login import Login
from podgpu.cluster.agents.options import LoginOptions
from podgpu.cluster.agents.wire import Gone, Head, Wire
from podgpu.cluster.reader import ReadFault
from podgpu.errors import UserError

MOST_BYTES = 8 << 20
LONGEST_LINE = 300
_GZIP_CONTAINER = 16 + zlib.MAX_WBITS
_PORTS = {"http": 80, "https": 443}


class Fetched(Struct, frozen=True):
    """An answer. `body` is None if nothing has changed since the `etag` that was sent.

    `packed` is the same as it came, if that was compressed.
    """

    etag: str
    body: bytes | None
    packed: bytes = b""


class Client:
    """Keeps a connection to each address. It follows no redirects, keeps no cookies and uses no proxies."""

    def __init__(
        self,
        *,
        timeout: float,
        login: Login | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._timeout = timeout
        self._login = login or Login(LoginOptions())
        self._most_bytes = most_bytes
        self._wires: dict[tuple[str, str], Wire] = {}

    async def get(self, url: str, etag: str = "") -> Fetched:
        """Raises ReadFault."""
        address = urlsplit(url)
        try:
            async with asyncio.timeout(self._timeout):
                head, body = await self._ask(address, self._request(address, etag))
        except TimeoutError:
            raise ReadFault("timeout", f"no answer within {self._timeout:g} s") from None
        except UserError as error:
            raise ReadFault("login", str(error)) from None
        except ssl.SSLCertVerificationError as error:
            raise ReadFault("tls", f"its certificate is refused: {error.verify_message}") from None
        except ssl.SSLError as error:
            raise ReadFault("tls", str(error.reason or error)) from None
        except OSError as error:
            raise ReadFault("unreachable", _words(error)) from None
        except Gone:
            raise ReadFault("unreachable", "the connection was closed without an answer") from None
        return self._fetched(head, body)

    async def close(self) -> None:
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()
        await asyncio.sleep(0)

    def forget(self, url: str) -> None:
        """Close the connection to an agent that is gone."""
        address = urlsplit(url)
        if wire := self._wires.pop((address.scheme, address.netloc), None):
            wire.close()

    async def _ask(self, address: SplitResult, request: bytes) -> tuple[Head, bytes]:
        key = (address.scheme, address.netloc)
        wire = self._wires.pop(key, None)
        if wire is not None and wire.is_open:
            try:
                return self._kept(key, wire, await wire.ask(request))
            except Gone:
                pass  # it was idle for too long; a new connection tells
        wire = await self._connect(address)
        return self._kept(key, wire, await wire.ask(request))

    def _kept(self, key: tuple[str, str], wire: Wire, answer: tuple[Head, bytes]) -> tuple[Head, bytes]:
        if wire.is_open:
            self._wires[key] = wire
        else:
            wire.close()
        return answer

    async def _connect(self, address: SplitResult) -> Wire:
        port = address.port or _PORTS[address.scheme]
        _, wire = await asyncio.get_running_loop().create_connection(
            lambda: Wire(self._most_bytes),
            address.hostname or "",
            port,
            **self._secured(address),
        )
        return wire

    def _secured(self, address: SplitResult) -> dict[str, Any]:
        if address.scheme != "https":
            return {}
        return {"ssl": self._login.context(), "server_hostname": self._login.server_name or address.hostname}

    def _request(self, address: SplitResult, etag: str) -> bytes:
        fields = {
            "Host": address.netloc.rpartition("@")[2],
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "podgpu",
            **self._login.headers(),
        }
        if etag:
            fields["If-None-Match"] = etag
        target = f"{address.path or '/'}?{address.query}" if address.query else address.path or "/"
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")

    def _fetched(self, head: Head, body: bytes) -> Fetched:
        check_status(head.status, b"" if head.encoding else body)
        if head.status == 304:
            return Fetched(head.etag, None)
        return fetched(head.etag, body, head.encoding, self._most_bytes)


def check_status(status: int, body: bytes = b"") -> None:
    """A server that refuses says in its answer what would let in the account."""
    if status in (200, 304):
        return
    reason = {401: "unauthorized", 403: "forbidden"}.get(status, "http_error")
    said = _line(body) if status == 403 else ""
    raise ReadFault(reason, f"it answers {status}" + (f": {said}" if said else ""))


def fetched(etag: str, body: bytes, encoding: str, most_bytes: int) -> Fetched:
    return Fetched(etag, _unpacked(body, encoding, most_bytes), body if encoding == "gzip" else b"")


def _unpacked(body: bytes, encoding: str, most_bytes: int) -> bytes:
    """Undo the compression, but never to more than `most_bytes`."""
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise ReadFault("garbage", f"the answer is compressed as {encoding[:20]!r}")
    packer = zlib.decompressobj(_GZIP_CONTAINER)
    try:
        plain = packer.decompress(body, most_bytes + 1)
    except zlib.error:
        raise ReadFault("garbage", "the answer is not compressed as it says") from None
    if len(plain) > most_bytes:
        raise ReadFault("too_large", f"the answer has more than {most_bytes >> 20} MiB")
    if not packer.eof:
        raise ReadFault("garbage", "the answer breaks off")
    return plain


def _line(body: bytes) -> str:
    text = body[:LONGEST_LINE].decode(errors="replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _words(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error) or "no connection"
