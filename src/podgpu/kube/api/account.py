"""Where the API server is, and by what to log in there."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from podgpu.errors import UserError
from podgpu.net.login import ClientCertificate, Login


class ApiAccount(Struct, frozen=True):
    """`ca` and `token` are text, for accounts that have no file. A file wins, and is read again when it changes."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    token: str = ""
    ca: str = ""
    client: ClientCertificate | None = None

    def __repr__(self) -> str:
        return f"ApiAccount({self.url!r}, …)"  # a token does not belong in a log

    def login(self) -> Login:
        return Login(
            token_file=self.token_file,
            token=self.token,
            ca_file=self.ca_file,
            ca=self.ca,
            client=self.client,
        )


def in_cluster(environ: Mapping[str, str], root: Path = Path("/")) -> ApiAccount | None:
    """Return the service account that this process has in the cluster it runs in, if it has one."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    folder = root / "var/run/secrets/kubernetes.io/serviceaccount"
    if not host or not (folder / "token").exists():
        return None
    shown = f"[{host}]" if ":" in host else host
    return ApiAccount(f"https://{shown}:{port}", folder / "token", folder / "ca.crt")


def checked_account(account: ApiAccount) -> ApiAccount:
    """Refuse an address that is none, or one where a login would be read on the way."""
    try:
        parts = urlsplit(account.url)
        _ = parts.port  # urlsplit checks the port only when it is read
    except ValueError:
        raise UserError("the API server's URL is not valid; write it like https://10.0.0.1:6443") from None
    if parts.username is not None or parts.password is not None:
        raise UserError(
            "the API server's URL holds a user or a password; leave them out, and give a token file"
        )
    account.login().check(account.url)
    return account
