"""A kubeconfig as an account. What podgpu cannot do is refused: a half-understood login is none."""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from podgpu.errors import UserError
from podgpu.kube.api import ApiAccount
from podgpu.net.login import ClientCertificate, Login
from podgpu.option.file import Malformed, parsed, start_of

MOST_BYTES = 1 << 20

_FOR_CLUSTER = {
    "insecure-skip-tls-verify": "podgpu always checks the server's certificate; give its certificate-authority",
    "proxy-url": "podgpu uses no proxy; give an address that it can reach",
    "tls-server-name": "podgpu checks the certificate against the address; give an address that is in it",
}
_TOKEN = "make a service account for podgpu and give its token"  # noqa: S105 - no password
_FOR_USER = {
    "exec": f"podgpu runs no other programs; {_TOKEN}",
    "auth-provider": f"auth providers are gone from Kubernetes; {_TOKEN}",
    "username": f"passwords are gone from Kubernetes; {_TOKEN}",
    "password": f"passwords are gone from Kubernetes; {_TOKEN}",
    "as": f"podgpu does not impersonate other users; {_TOKEN}",
}

Entry = Mapping[str, Any]


class ConfigPart(Struct, frozen=True):
    """The part of a file that is being read. Its name begins every message; values never show."""

    path: Path
    name: str

    def error(self, problem: str) -> UserError:
        return UserError(f"{self.path}: {self.name}: {problem}")

    def refuse(self, entry: Entry, unsupported: Mapping[str, str]) -> None:
        for key, advice in unsupported.items():
            if entry.get(key) not in (None, "", "false", {}, []):
                raise self.error(f"{key} is not supported: {advice}")

    def text(self, entry: Entry, key: str) -> str:
        value = entry.get(key, "")
        if not isinstance(value, str):
            raise self.error(f"{key} must be text")
        return value.strip()

    def file(self, entry: Entry, key: str) -> Path | None:
        """A relative path starts at the kubeconfig's folder."""
        named = self.text(entry, key)
        if not named:
            return None
        found = self.path.parent / named
        if not found.is_file():
            raise self.error(f"{key}: there is no file {str(found)!r}; give the path of one that exists")
        return found.absolute()

    def pem(self, entry: Entry, key: str) -> str:
        try:
            return base64.b64decode(self.text(entry, key), validate=True).decode("ascii")
        except (binascii.Error, ValueError):
            raise self.error(f"{key} is not base64 of a PEM text; write it again") from None


def account(path: Path, context: str = "") -> ApiAccount:
    """Return the account of a context, or of the current one. Raises UserError."""
    document = _document(path)
    name = context or ConfigPart(path, "kubeconfig").text(document, "current-context")
    if not name:
        raise UserError(f"{path} has no current-context; choose one with --kube.context: {_names(document)}")
    chosen = _named(path, document, "context", name)
    place = ConfigPart(path, f"context {name!r}")
    cluster, user = place.text(chosen, "cluster"), place.text(chosen, "user")
    server = _named(path, document, "cluster", cluster)
    login = _named(path, document, "user", user) if user else {}
    return _account(
        server, ConfigPart(path, f"cluster {cluster!r}"), login, ConfigPart(path, f"user {user!r}")
    )


def _account(server: Entry, at: ConfigPart, user: Entry, who: ConfigPart) -> ApiAccount:
    at.refuse(server, _FOR_CLUSTER)
    who.refuse(user, _FOR_USER)
    url = at.text(server, "server")
    if not url.startswith(("https://", "http://")):
        raise at.error("server is not a URL; write it like https://10.0.0.1:6443")
    ca = at.pem(server, "certificate-authority-data")
    token_file = who.file(user, "tokenFile")
    login = Login(
        token_file=token_file,
        token="" if token_file else _token(user, who),
        ca_file=None if ca else at.file(server, "certificate-authority"),
        ca=ca,
        client=_client(user, who),
    )
    return ApiAccount(url, login)


def _token(login: Entry, who: ConfigPart) -> str:
    token = who.text(login, "token")
    if not (token.isascii() and token.isprintable()):
        raise who.error("token holds characters that no token has; write it again")
    return token


def _client(login: Entry, who: ConfigPart) -> ClientCertificate | None:
    cert, key = (
        who.pem(login, f"{name}-data") or who.file(login, name)
        for name in ("client-certificate", "client-key")
    )
    if not cert and not key:
        return None
    if not cert or not key:
        raise who.error("client-certificate and client-key go together; give both or none")
    return ClientCertificate(cert=cert, key=key)


def _named(path: Path, document: Entry, kind: str, name: str) -> Entry:
    for entry in _entries(document, kind):
        if entry.get("name") == name and isinstance(entry.get(kind), dict):
            found: Entry = entry[kind]
            return found
    raise UserError(f"{path} has no {kind} {name!r}; it has {_names(document, kind)}")


def _names(document: Entry, kind: str = "context") -> str:
    return ", ".join(str(entry.get("name")) for entry in _entries(document, kind)) or "none"


def _entries(document: Entry, kind: str) -> list[Entry]:
    listed = document.get(f"{kind}s")
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _document(path: Path) -> Entry:
    try:
        data = start_of(path, MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UserError(f"{path} is larger than 1 MiB: no kubeconfig; check --kube.kubeconfig")
        document = parsed(data.decode())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check --kube.kubeconfig") from None
    except (Malformed, UnicodeDecodeError) as error:
        if isinstance(error, Malformed) and error.is_alias:
            raise UserError(f"{path}: {error.what}") from None
        # The parser's own message may quote a secret.
        raise UserError(f"{path} is not valid YAML; check --kube.kubeconfig") from None
    if not isinstance(document, dict):
        raise UserError(f"{path} is not a kubeconfig; check --kube.kubeconfig")
    return document
