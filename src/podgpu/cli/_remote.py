"""Fetches the snapshot of a running agent."""

import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, urlsplit

from podgpu.errors import UserError
from podgpu.model import Snapshot
from podgpu.views.json import decode

PATIENCE_SECONDS = 10.0
LARGEST_BYTES = 256 * 2**20
_PIECE_BYTES = 2**16
_ADVICE = "is `podgpu agent` running there? give another address with --url"


def fetch(url: str, patience: float = PATIENCE_SECONDS) -> Snapshot:
    address = _address(url)
    try:
        return decode(_body(address, patience))
    except TimeoutError:
        problem = f"does not answer within {patience:g} s"
    except ConnectionRefusedError:
        problem = "refuses the connection"
    except (OSError, HTTPException) as error:
        problem = f"cannot be read ({error or type(error).__name__})"
    raise UserError(f"{url} {problem}; {_ADVICE}")


def _address(url: str) -> SplitResult:
    refusal = UserError(f"{url!r} is not the address of an agent; write it like http://127.0.0.1:19400")
    try:
        address = urlsplit(url)
        _ = address.port  # urlsplit checks the port only when it is read
    except ValueError:
        raise refusal from None
    if address.scheme not in ("http", "https") or not address.hostname:
        raise refusal
    return address


def _body(address: SplitResult, patience: float) -> bytes:
    """Fetch the document within `patience` in all, even if it comes in small pieces."""
    until = time.monotonic() + patience
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=patience)
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/api/v1/snapshot")
        answer = connection.getresponse()
        if answer.status != 200:
            raise UserError(f"{address.geturl()} answers {answer.status} {answer.reason}; {_ADVICE}")
        body = bytearray()
        while piece := answer.read1(_PIECE_BYTES):
            body += piece
            if len(body) > LARGEST_BYTES:
                raise UserError(f"{address.geturl()} sends more data than a snapshot can have; {_ADVICE}")
            if time.monotonic() > until:
                raise TimeoutError
        return bytes(body)
    finally:
        connection.close()
