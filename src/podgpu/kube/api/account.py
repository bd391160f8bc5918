"""Where the API server is, and by what to log in there."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class Account(Struct, frozen=True):
    url: str
    token_file: Path | None = None
    ca_file: Path | None = None


def in_cluster(environ: Mapping[str, str], root: Path = Path("/")) -> Account | None:
    """Return the service account that this process has in the cluster it runs in, if it has one."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    folder = root / "var/run/secrets/kubernetes.io/serviceaccount"
    if not host or not (folder / "token").exists():
        return None
    shown = f"[{host}]" if ":" in host else host
    return Account(f"https://{shown}:{port}", folder / "token", folder / "ca.crt")
