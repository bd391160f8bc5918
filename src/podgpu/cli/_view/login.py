"""By what to log in to an agent or a cluster. Secrets come from files alone, and show in no message."""

import ssl
from base64 import b64encode
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult

from podgpu.config import Terminal
from podgpu.errors import UserError


class Login:
    """Refuses at once to send a secret where anybody on the way could read it."""

    def __init__(self, chosen: Terminal, address: SplitResult) -> None:
        self._chosen = chosen
        secret = chosen.login_token_file or chosen.login_password_file
        if chosen.login_token_file and chosen.login_password_file:
            raise UserError("give either --login.token-file or --login.password-file, not both")
        if (chosen.login_client_cert_file is None) != (chosen.login_client_key_file is None):
            raise UserError("--login.client-cert-file and --login.client-key-file go together; give both")
        if address.scheme == "http" and secret and not _is_loopback(address.hostname or ""):
            raise UserError(f"a login is never sent over plain HTTP; write https://{address.netloc}")
        if address.scheme == "http" and (chosen.login_ca_file or chosen.login_client_cert_file):
            raise UserError(f"certificates mean nothing over plain HTTP; write https://{address.netloc}")

    @property
    def is_given(self) -> bool:
        return bool(self._chosen.login_token_file or self._chosen.login_password_file)

    def headers(self) -> dict[str, str]:
        if path := self._chosen.login_token_file:
            return {"Authorization": f"Bearer {_line(path, 'a token')}"}
        if path := self._chosen.login_password_file:
            pair = _line(path, "USER:PASSWORD")
            if ":" not in pair:
                raise UserError(f"{path} does not hold USER:PASSWORD; write both in one line")
            return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
        return {}

    def context(self) -> ssl.SSLContext:
        chosen = self._chosen
        try:
            context = ssl.create_default_context(cafile=chosen.login_ca_file)
            if chosen.login_client_cert_file:
                # Without a password given, an encrypted key would be asked for on the terminal.
                context.load_cert_chain(
                    chosen.login_client_cert_file, chosen.login_client_key_file, password=""
                )
        except OSError as error:  # ssl.SSLError is a subclass
            problem = error.strerror or error
            raise UserError(f"a file of --login cannot be used ({problem}); give PEM files") from None
        return context


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _line(path: Path, wanted: str) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path} ({type(error).__name__}); it must hold {wanted}") from None
    if not text or not text.isprintable():
        raise UserError(f"{path} does not hold {wanted}; write it in one line")
    return text
