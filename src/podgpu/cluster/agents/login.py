"""Logs in to an agent or a cluster: what to send, what to show, and whom to trust."""

import ssl
from collections.abc import Iterable
from urllib.parse import urlsplit

from podgpu.cluster.agents.options import LoginOptions
from podgpu.cluster.credential import Credential, is_loopback
from podgpu.errors import UserError
from podgpu.kube.api import ApiFault
from podgpu.kube.api.account import ClientCertificate
from podgpu.kube.api.trust import Trust


class Login:
    """`urls` are where it is for: it refuses to send a secret where anybody on the way could read it."""

    def __init__(self, chosen: LoginOptions, urls: Iterable[str] = ()) -> None:
        self._credential = Credential(chosen.token_file, chosen.password_file)
        self._client = _certificate(chosen)
        self._trust = Trust(chosen.ca_file, "", self._client)
        self._system: ssl.SSLContext | None = None
        self.server_name = chosen.server_name
        if chosen.token_file and chosen.password_file:
            raise UserError("give either --login.token-file or --login.password-file, not both")
        for url in urls:
            self._check(url, chosen)

    @property
    def is_given(self) -> bool:
        """Whether there is a token or a password."""
        return self._credential.is_given

    @property
    def shows_something(self) -> bool:
        """Whether the other side gets to know who asks."""
        return self.is_given or self._client is not None

    def headers(self) -> dict[str, str]:
        """Raises UserError."""
        return self._credential.headers()

    def context(self) -> ssl.SSLContext:
        """Return the same one until a file changes. Raises UserError."""
        try:
            made = self._trust.context()
        except ApiFault as fault:
            raise UserError(f"{fault.detail}; --login takes PEM files") from None
        if isinstance(made, ssl.SSLContext):
            return made
        if self._system is None:  # it takes long to read all authorities of the system
            self._system = ssl.create_default_context()
        return self._system

    def _check(self, url: str, chosen: LoginOptions) -> None:
        address = urlsplit(url)
        if address.scheme != "http":
            return
        if self.is_given and not is_loopback(address.hostname or ""):
            raise UserError(f"a login is never sent over plain HTTP; write https://{address.netloc}")
        if chosen.ca_file or chosen.server_name or self._client:
            raise UserError(f"certificates mean nothing over plain HTTP; write https://{address.netloc}")


def _certificate(chosen: LoginOptions) -> ClientCertificate | None:
    cert, key = chosen.client_cert_file, chosen.client_key_file
    if (cert is None) != (key is None):
        raise UserError("--login.client-cert-file and --login.client-key-file go together; give both")
    return ClientCertificate(cert=cert, key=key) if cert and key else None
