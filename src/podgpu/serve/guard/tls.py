"""The web configuration in force, and its TLS context. Both are renewed while the server runs."""

import ssl
from collections.abc import Sequence
from pathlib import Path

from podgpu import log
from podgpu.errors import UserError
from podgpu.option.file import bytes_of
from podgpu.serve.guard import web_config
from podgpu.serve.guard.web_config import ADVICE, SUITES, VERSIONS, Tls, WebConfig

MOST_KIB = 1024

# What changes with the content of a file, also behind the links of a Kubernetes volume. None without a file.
Stamp = tuple[int, int, int, int] | None


class WebConfigWatcher:
    """Reads the file and those it names again when they have changed. Without a file the config is empty.

    `context` is what a new connection begins with; None without TLS.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._files: Sequence[Path] = ()
        self.config, self.context = (WebConfig(), None) if path is None else self._read(path)
        self._tried = self._seen = self._stamps()

    def reload(self) -> bool:
        """Read the files again if they have changed, and return whether the config is another now.

        Files that have changed since the last call may still be being written, so they wait until the next one.
        """
        stamps, before, old = self._stamps(), self._seen, self.config
        self._seen = stamps
        if self._path is None or stamps == self._tried or stamps != before:
            return False
        try:
            config, context = self._read(self._path)
            _check_no_weaker(config, old)
            self.config, self.context = config, context
            log.info("the web configuration has been read again", path=str(self._path))
        except UserError as error:
            log.error("the changed web configuration is refused; the one before stays in force", reason=str(error))
        self._tried = self._seen = self._stamps()
        return self.config is not old

    def _read(self, path: Path) -> tuple[WebConfig, ssl.SSLContext | None]:
        self._files = (path, *self._files[1:])
        config = web_config.read(path)
        # Watched even if they turn out to be wrong: the user will correct them.
        self._files = (path, *(config.tls.files if config.tls else ()))
        return config, tls_context(config.tls) if config.tls else None

    def _stamps(self) -> Sequence[Stamp]:
        return [_stamp(path) for path in self._files]


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Make a context for new connections. Raises UserError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[tls.min_version]
    context.maximum_version = VERSIONS[tls.max_version]
    context.options |= ssl.OP_NO_RENEGOTIATION  # a client could repeat the costly part over and over
    try:
        context.set_ciphers(":".join(tls.cipher_suites or SUITES.values()))
    except ssl.SSLError:
        raise UserError("this machine's OpenSSL has none of the cipher_suites; choose others") from None
    context.set_alpn_protocols(["http/1.1"])
    _load_certificate(context, tls)
    if tls.client_ca_file is not None:
        # Optional even where pages need one: the kubelet's probes have none, and are answered all the same.
        context.verify_mode = ssl.CERT_OPTIONAL
        _load_authority(context, tls.client_ca_file)
    return context


def _load_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    for path in (tls.cert_file, tls.key_file):
        bytes_of(path, kibibytes=MOST_KIB, advice=ADVICE)  # its errors name the file: OpenSSL's do not
    try:
        # With an empty password, OpenSSL does not ask for one at the terminal.
        context.load_cert_chain(tls.cert_file, tls.key_file, password="")
    except (OSError, ValueError) as error:
        files = f"{tls.cert_file} and {tls.key_file}"
        advice = "give a certificate and its own key, as PEM and without a password"
        raise UserError(f"{files} do not go together ({_reason(error)}); {advice}") from None


def _load_authority(context: ssl.SSLContext, path: Path) -> None:
    bytes_of(path, kibibytes=MOST_KIB, advice=ADVICE)
    try:
        context.load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} holds no certificates ({_reason(error)}); give them as PEM") from None


def _reason(error: Exception) -> str:
    """Return what OpenSSL says. It says nothing about a file without any certificate."""
    return str(getattr(error, "reason", None) or "not PEM").replace("_", " ").lower()


def _check_no_weaker(new: WebConfig, old: WebConfig) -> None:
    """Refuse to remove a protection: a file that was emptied by mistake looks the same."""
    protections = {
        "TLS": (old.tls, new.tls),
        "client certificates": (old.needs_certificate, new.needs_certificate),
        "passwords": (old.users, new.users),
    }
    lost = [name for name, (before, now) in protections.items() if before and not now]
    if lost:
        raise UserError(f"it no longer asks for {' and '.join(lost)}; restart the agent if that is intended")


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
