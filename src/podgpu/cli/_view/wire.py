"""Asks one server for documents, again and again, over one connection."""

import ssl
import time
import zlib
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

from podgpu.cluster.agents.login import Login
from podgpu.cluster.agents.options import LoginOptions
from podgpu.errors import UserError
from podgpu.numbers import duration

PATIENCE_SECONDS = 10.0
LARGEST_BYTES = 512 * 2**20
_PIECE_BYTES = 2**16
_GZIP_CONTAINER = 16 + zlib.MAX_WBITS
_ADVICE = "is `podgpu agent` or `podgpu cluster` running there? give another address with --url"
_TOO_LARGE = "sends more data than podgpu takes"


class Refused(UserError):
    """Nobody listens there."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` is None if it is still the one that the `etag` of the question names."""

    status: int
    etag: str = ""
    body: bytes | None = None


class Wire:
    """Every question has one deadline, even if the answer comes in small pieces."""

    def __init__(self, url: str, chosen: LoginOptions, patience: float = PATIENCE_SECONDS) -> None:
        self.url = url
        self._address = urlsplit(url)
        self._login = Login(chosen, [url])
        self._patience = patience
        self._connection: HTTPConnection | None = None

    def get(self, path: str, etag: str = "") -> Answer:
        """Return any answer of 200, 304 or 404. All else is a UserError that says what to do."""
        try:
            return self._judged(self._asked(path, etag))
        except UserError:
            self.close()
            raise
        except TimeoutError:
            problem = f"does not answer within {duration(self._patience)}"
        except ConnectionRefusedError:
            self.close()
            raise Refused(f"{self.url} refuses the connection; {_ADVICE}") from None
        except ssl.SSLCertVerificationError as error:
            problem = f"shows a certificate that is not trusted ({error.verify_message})"
            self.close()
            raise UserError(f"{self.url} {problem}; give its authority with --login.ca-file") from None
        except ssl.SSLError as error:
            problem = f"does not agree on TLS ({error.reason or error})"
        except (OSError, HTTPException, zlib.error) as error:
            problem = f"cannot be read ({error or type(error).__name__})"
        self.close()
        raise UserError(f"{self.url} {problem}; {_ADVICE}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _asked(self, path: str, etag: str) -> Answer:
        """Ask once more if a kept connection turns out to be closed."""
        until = time.monotonic() + self._patience
        is_kept = self._connection is not None
        try:
            return self._exchange(path, etag, until)
        except (ConnectionError, HTTPException):
            if not is_kept:
                raise
            self.close()
            return self._exchange(path, etag, until)

    def _exchange(self, path: str, etag: str, until: float) -> Answer:
        if self._connection is None:
            self._connection = self._connected()
        headers = {"Accept-Encoding": "gzip", "User-Agent": "podgpu", **self._login.headers()}
        if etag:
            headers["If-None-Match"] = etag
        self._connection.request("GET", self._address.path.rstrip("/") + path, headers=headers)
        response = self._connection.getresponse()
        body = _body(response, until)
        return Answer(response.status, response.headers.get("ETag", ""), body)

    def _connected(self) -> HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "http":
            return HTTPConnection(host, port, timeout=self._patience)
        return _Secured(host, port, self._patience, self._login)

    def _judged(self, answer: Answer) -> Answer:
        if answer.status in (200, 404):
            return answer
        if answer.status == 304:
            return Answer(304, answer.etag)
        if answer.status == 401 and not self._login.is_given:
            advice = "asks for a login; give --login.token-file or --login.password-file"
            raise UserError(f"{self.url} {advice}")
        if answer.status == 401:
            raise UserError(f"{self.url} does not accept the login; check the files of --login")
        if answer.status == 403:
            raise UserError(f"{self.url} does not let this account read; ask whoever runs it for access")
        raise UserError(f"{self.url} answers {answer.status}; {_ADVICE}")


class _Secured(HTTPSConnection):
    def __init__(self, host: str, port: int | None, patience: float, login: Login) -> None:
        self._trust, self._name = login.context(), login.server_name or host
        super().__init__(host, port, timeout=patience, context=self._trust)

    def connect(self) -> None:
        HTTPConnection.connect(self)
        self.sock = self._trust.wrap_socket(self.sock, server_hostname=self._name)


def _body(response: HTTPResponse, until: float) -> bytes:
    zipped = response.headers.get("Content-Encoding") == "gzip"
    unpack = zlib.decompressobj(_GZIP_CONTAINER) if zipped else None
    body = bytearray()
    while piece := response.read1(_PIECE_BYTES):
        body += unpack.decompress(piece, LARGEST_BYTES) if unpack else piece
        if len(body) > LARGEST_BYTES or (unpack and unpack.unconsumed_tail):
            raise HTTPException(_TOO_LARGE)
        if time.monotonic() > until:
            raise TimeoutError
    return bytes(body)
