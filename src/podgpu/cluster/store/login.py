"""The store's address and the headers that open it. Secrets come from files alone, and show in no message."""

import re
from base64 import b64encode
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from podgpu.cluster.store.fault import StoreFault
from podgpu.errors import UserError

if TYPE_CHECKING:
    from podgpu.cluster.store.options import Options

_HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*:\s*(\S(?:.*\S)?)")
_SECRET = re.compile(r"auth|cookie|token|key|secret|password", re.IGNORECASE)
_LONGEST_FILE = 64 << 10


def store_address(text: str) -> str:
    """Parse a URL that /api/v1/query is added to."""
    refusal = UserError(f"{text!r} is not the address of a store; write it like http://127.0.0.1:9090")
    try:
        address = urlsplit(text)
        _ = address.port  # urlsplit checks the port only when it is read
    except ValueError:
        raise refusal from None
    if address.scheme not in ("http", "https") or not address.hostname or address.query or address.fragment:
        raise refusal
    if address.username is not None or address.password is not None:
        raise UserError(
            "the URL holds a user or a password; leave them out, and give --prometheus.password-file"
        )
    return text.rstrip("/").removesuffix("/api/v1")


class Login:
    """Refuses at once to send a secret where anybody on the way could read it."""

    def __init__(self, options: "Options") -> None:
        self._options = options
        address = urlsplit(options.url or "")
        if options.token_file and options.password_file:
            raise UserError("give either --prometheus.token-file or --prometheus.password-file, not both")
        if address.scheme == "https":
            return
        if options.ca_file:
            raise UserError(
                f"a certificate authority means nothing over plain HTTP; write https://{address.netloc}"
            )
        if not _is_loopback(address) and self._holds_secret():
            raise UserError(f"a login is never sent over plain HTTP; write https://{address.netloc}")

    def headers(self) -> dict[str, str]:
        more = dict(_headers(self._options.headers_file)) if self._options.headers_file else {}
        if path := self._options.token_file:
            more["Authorization"] = f"Bearer {_line(path, 'a token')}"
        elif path := self._options.password_file:
            pair = _line(path, "USER:PASSWORD")
            if ":" not in pair:
                raise StoreFault("store_refused", f"{path} does not hold USER:PASSWORD in one line")
            more["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        return more

    def _holds_secret(self) -> bool:
        """A tenant's name in a header is no secret."""
        if self._options.token_file or self._options.password_file:
            return True
        path = self._options.headers_file
        return path is not None and any(_SECRET.search(name) for name, _ in _headers(path))


def _is_loopback(address: SplitResult) -> bool:
    host = address.hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _headers(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _HEADER.fullmatch(line.strip())
        if not found or not found[2].isprintable():
            raise UserError(f"{path}, line {number}: not a header; write it like 'X-Scope-OrgID: team-a'")
        yield found[1], found[2]


def _line(path: Path, wanted: str) -> str:
    text = _text(path).strip()
    if not text or not text.isprintable():
        raise StoreFault("store_refused", f"{path} does not hold {wanted} in one line")
    return text


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_FILE).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreFault("store_refused", f"cannot read {path}: {type(error).__name__}") from None
