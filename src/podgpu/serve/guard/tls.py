"""The certificates and rules of TLS, as Python's ssl takes them."""

import ssl
from pathlib import Path

from podgpu.errors import UserError
from podgpu.option.file import start_of
from podgpu.serve.guard.suites import SUITES, Version
from podgpu.serve.guard.web_config import Tls

MOST_BYTES = 1 << 20
_VERSIONS: dict[Version, ssl.TLSVersion] = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}


def context(tls: Tls) -> ssl.SSLContext:
    """Make a context for new connections. Raises UserError."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = _VERSIONS[tls.min_version]
    made.maximum_version = _VERSIONS[tls.max_version]
    made.options |= ssl.OP_NO_RENEGOTIATION  # a client could ask for the costly part over and over
    _choose_suites(made, tls)
    made.set_alpn_protocols(["http/1.1"])
    _load_certificate(made, tls)
    if tls.client_ca_file is not None:
        # Also where one is needed: the kubelet's probes have none, and are answered without.
        made.verify_mode = ssl.CERT_OPTIONAL
        _load_authority(made, tls.client_ca_file)
    return made


def _choose_suites(made: ssl.SSLContext, tls: Tls) -> None:
    try:
        made.set_ciphers(":".join(tls.cipher_suites or SUITES.values()))
    except ssl.SSLError:
        raise UserError("this machine's OpenSSL has none of the cipher_suites; choose others") from None


def _load_certificate(made: ssl.SSLContext, tls: Tls) -> None:
    _check_readable(tls.cert_file)
    _check_readable(tls.key_file)
    try:
        # With an empty password, OpenSSL does not ask for one at the terminal.
        made.load_cert_chain(tls.cert_file, tls.key_file, password="")
    except (OSError, ValueError) as error:
        files = f"{tls.cert_file} and {tls.key_file}"
        advice = "give a certificate and its own key, as PEM and without a password"
        raise UserError(f"{files} do not go together ({_reason(error)}); {advice}") from None


def _load_authority(made: ssl.SSLContext, path: Path) -> None:
    _check_readable(path)
    try:
        made.load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} holds no certificates ({_reason(error)}); give them as PEM") from None


def _check_readable(path: Path) -> None:
    """Say which file it is: OpenSSL does not."""
    try:
        if len(start_of(path, MOST_BYTES + 1)) > MOST_BYTES:
            raise UserError(f"{path}: larger than 1 MiB; check --web.config.file")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check --web.config.file") from None


def _reason(error: Exception) -> str:
    """Return OpenSSL's words: it has none for a file without any certificate."""
    return str(getattr(error, "reason", None) or "not PEM").replace("_", " ").lower()
