"""Logs in to a server: what to send, which certificate to present, and which authority to trust.

Secrets come from files or from a kubeconfig, and no message shows them. A file is read again when it has changed:
tokens of Kubernetes change every hour.
"""

import errno
import os
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from podgpu.errors import UserError
from podgpu.net.connection import HttpFault
from podgpu.option.file import start_of

_MOST_BYTES = 64 << 10
_MOST_PEM_BYTES = 4 << 20  # the authorities of a whole system have a quarter of a MiB

Version = tuple[tuple[int, int, int], ...]


class ClientCertificate(Struct, frozen=True, kw_only=True):
    """A certificate to present, and its key: each a file, or PEM text."""

    cert: Path | str
    key: Path | str

    def __repr__(self) -> str:
        return "ClientCertificate(…)"  # a key does not belong in a log


@dataclass(kw_only=True)
class Login:
    """`token` and `ca` are text, for accounts without files. A file takes precedence."""

    token_file: Path | None = None
    password_file: Path | None = None
    token: str = ""
    ca_file: Path | None = None
    ca: str = ""
    client: ClientCertificate | None = None
    server_name: str | None = None
    _header: tuple[Version, str] | None = field(default=None, init=False, compare=False)
    _context: tuple[Version, ssl.SSLContext] | None = field(default=None, init=False, compare=False)

    def __repr__(self) -> str:
        return "Login(…)"  # a token does not belong in a log

    @property
    def has_secret(self) -> bool:
        """Whether there is a token or a password."""
        return bool(self.token_file or self.password_file or self.token)

    @property
    def identifies(self) -> bool:
        """Whether it tells the server who we are."""
        return self.has_secret or self.client is not None

    def check(self, url: str, *, has_secret: bool = False) -> None:
        """Refuse to send a secret in plain text over a network. On loopback it stays on the machine."""
        address = urlsplit(url)
        if address.scheme == "https":
            return
        if (has_secret or self.has_secret) and not is_loopback(address.hostname or ""):
            raise UserError(f"a login is never sent over plain HTTP; write https://{address.netloc}")
        if self.ca_file or self.ca or self.client or self.server_name:
            raise UserError(f"certificates mean nothing over plain HTTP; write https://{address.netloc}")

    def headers(self) -> dict[str, str]:
        """Return what to send with a request. Raises HttpFault."""
        file = self.token_file or self.password_file
        if file is None:
            return {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            version = _version([file])
            if self._header is None or self._header[0] != version:
                self._header = version, self._authorization(start_of(file, _MOST_BYTES).decode().strip())
        except (OSError, UnicodeDecodeError) as error:
            raise HttpFault("credential", f"cannot read {file} ({type(error).__name__})") from None
        except ValueError:
            wanted = "a token" if self.token_file else "USER:PASSWORD"
            raise HttpFault("credential", f"{file} does not hold {wanted}; write it in one line") from None
        return {"Authorization": self._header[1]}

    def context(self) -> ssl.SSLContext:
        """Return the same context until a file changes. Raises HttpFault."""
        if not (self.ca_file or self.ca or self.client):
            return _system_context()
        pems = (self.ca_file, self.client and self.client.cert, self.client and self.client.key)
        files = [pem for pem in pems if isinstance(pem, Path)]
        try:
            version = _version(files)
            if self._context is None or self._context[0] != version:
                for file in files:
                    _check_pem(file)
                self._context = version, self._new_context()
        except OSError as error:  # ssl.SSLError is a subclass
            named = ", ".join(map(str, files)) or "the certificates of the kubeconfig"
            raise HttpFault("certificates", f"cannot use {named}: {error.strerror or error}") from None
        return self._context[1]

    def _authorization(self, line: str) -> str:
        if not line or not line.isprintable():
            raise ValueError
        if self.token_file:
            return f"Bearer {line}"
        if ":" not in line:
            raise ValueError
        return f"Basic {b64encode(line.encode()).decode()}"

    def _new_context(self) -> ssl.SSLContext:
        data = None if self.ca_file else self.ca or None
        context = ssl.create_default_context(cafile=self.ca_file and str(self.ca_file), cadata=data)
        if self.client:
            with _file(self.client.cert) as cert, _file(self.client.key) as key:
                # With an empty password, OpenSSL does not ask for one at the terminal.
                context.load_cert_chain(cert, key, password="")
        return context


def is_loopback(host: str) -> bool:
    """Whether what is sent to the host stays on this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@cache
def _system_context() -> ssl.SSLContext:
    return ssl.create_default_context()  # cached: it takes long to read all authorities of the system


def _version(files: list[Path]) -> Version:
    return tuple((stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in (file.stat() for file in files))


def _check_pem(file: Path) -> None:
    """Raise OSError for what OpenSSL would wait for, or read without end."""
    if len(start_of(file, _MOST_PEM_BYTES + 1)) > _MOST_PEM_BYTES:
        raise OSError(errno.EFBIG, f"larger than {_MOST_PEM_BYTES >> 20} MiB")


@contextmanager
def _file(pem: Path | str) -> Iterator[str]:
    """Yield a path. OpenSSL reads certificates from files alone, so text is put into a file in memory."""
    if isinstance(pem, Path):
        yield str(pem)
        return
    with os.fdopen(os.memfd_create("podgpu"), "w", encoding="ascii") as file:
        file.write(pem)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"
