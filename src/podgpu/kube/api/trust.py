"""The certificates to trust and to show, read again when one of their files has changed."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podgpu.kube.api import ApiFault
from podgpu.kube.api.account import ClientCertificate

Version = tuple[tuple[int, int], ...]


class Trust:
    def __init__(self, ca_file: Path | None, ca: str, client: ClientCertificate | None) -> None:
        self._ca_file = ca_file
        self._ca = ca
        self._client = client
        given = (ca_file, client and client.cert, client and client.key)
        self._files = [one for one in given if isinstance(one, Path)]
        self._made: tuple[Version, ssl.SSLContext] | None = None

    def context(self) -> ssl.SSLContext | bool:
        """Return what aiohttp takes; True means the system's authorities. Raises ApiFault."""
        if not (self._ca_file or self._ca or self._client):
            return True
        try:
            version = tuple(
                (found.st_mtime_ns, found.st_ino) for found in (one.stat() for one in self._files)
            )
            if self._made is None or self._made[0] != version:
                self._made = version, self._context()
        except OSError as error:  # ssl.SSLError is a subclass
            files = ", ".join(map(str, self._files)) or "the certificates of the kubeconfig"
            raise ApiFault("tls", f"cannot use {files}: {error.strerror or error}") from None
        return self._made[1]

    def _context(self) -> ssl.SSLContext:
        data = None if self._ca_file else self._ca or None
        context = ssl.create_default_context(cafile=self._ca_file and str(self._ca_file), cadata=data)
        if self._client:
            with _file(self._client.cert) as cert, _file(self._client.key) as key:
                # Without a password given, an encrypted key would be asked for on the terminal.
                context.load_cert_chain(cert, key, password="")
        return context


@contextmanager
def _file(given: Path | str) -> Iterator[str]:
    """Yield a path. OpenSSL reads certificates from files alone, so text gets one that exists only in memory."""
    if isinstance(given, Path):
        yield str(given)
        return
    with os.fdopen(os.memfd_create("podgpu"), "w", encoding="ascii") as file:
        file.write(given)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"
