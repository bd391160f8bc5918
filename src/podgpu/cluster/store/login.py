"""The store's address and the headers that open it. Secrets come from files alone, and show in no message."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podgpu.cluster.credential import Credential, is_loopback, text_of
from podgpu.cluster.store.fault import StoreFault
from podgpu.errors import UserError

if TYPE_CHECKING:
    from podgpu.cluster.store.options import Options

_HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*:\s*(\S(?:.*\S)?)")
_SECRET = re.compile(r"auth|cookie|token|key|secret|password", re.IGNORECASE)


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
        self._credential = Credential(options.token_file, options.password_file)
        address, names = urlsplit(options.url or ""), self._more().keys()
        if options.token_file and options.password_file:
            raise UserError("give either --prometheus.token-file or --prometheus.password-file, not both")
        if address.scheme == "https":
            return
        if options.ca_file:
            raise UserError(
                f"a certificate authority means nothing over plain HTTP; write https://{address.netloc}"
            )
        # A tenant's name in a header is no secret.
        holds_secret = self._credential.is_given or any(map(_SECRET.search, names))
        if holds_secret and not is_loopback(address.hostname or ""):
            raise UserError(f"a login is never sent over plain HTTP; write https://{address.netloc}")

    def headers(self) -> dict[str, str]:
        try:
            return {**self._more(), **self._credential.headers()}
        except UserError as error:
            raise StoreFault("store_refused", str(error)) from None

    def _more(self) -> dict[str, str]:
        path = self._options.headers_file
        return dict(_headers(path)) if path else {}


def _headers(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _HEADER.fullmatch(line.strip())
        if not found or not found[2].isprintable():
            raise UserError(f"{path}, line {number}: not a header; write it like 'X-Scope-OrgID: team-a'")
        yield found[1], found[2]
