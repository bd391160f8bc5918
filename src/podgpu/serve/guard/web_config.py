"""The web configuration file, in the form that Prometheus and its exporters use.

No message names a value below `basic_auth_users`: those are secrets.
"""

import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from podgpu.errors import UserError
from podgpu.option.file import yaml_document
from podgpu.option.value import did_you_mean

ADVICE = "check --web.config.file"
LONGEST_COST = 16  # a check takes about four seconds, and each step doubles that
MOST_KIB = 64  # enough for some hundred users. Probes wait while it is read, and a MiB would take ten seconds
HEADER_NAMES = (
    "Content-Security-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-XSS-Protection",
)

VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
AUTH_TYPES = ("NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert")

# Suites of TLS 1.2 with forward secrecy and authenticated encryption, and OpenSSL's names for them.
SUITES: Mapping[str, str] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}

_TLS_KEYS = (
    "cert_file",
    "key_file",
    "client_auth_type",
    "client_ca_file",
    "min_version",
    "max_version",
    "cipher_suites",
)
_HASH = re.compile(r"\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{53}")

T = TypeVar("T")


class ConfigSection:
    """A map in the file. Its messages name the file and the key. `known` are the keys it may have; None means any."""

    def __init__(self, path: Path, name: str, values: object, known: Sequence[str] | None) -> None:
        self._path = path
        self._name = name
        if not isinstance(values, dict):
            raise UserError(f"{path}: {name or 'the file'} must hold keys and values; {ADVICE}")
        self.values: Mapping[str, object] = values
        for key in values:
            if known is not None and key not in known:
                advice = did_you_mean(key, known, f"podgpu knows {', '.join(known)}")
                raise self.refusal(key, advice, "unknown key")

    def section(self, key: str, known: Sequence[str] | None = None) -> "ConfigSection":
        return ConfigSection(self._path, self._full(key), self.values.get(key) or {}, known)

    def text(self, key: str, parse: Callable[[str], T]) -> T | None:
        """Parse the value of a key, if there is one."""
        value = self.values.get(key) or ""
        if not isinstance(value, str):
            raise self.refusal(key, "write one value")
        try:
            return parse(value) if value else None
        except UserError as error:
            raise self.refusal(key, str(error)) from None

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refusal(key, "write a list")
        return value

    def file(self, key: str) -> Path | None:
        return self.text(key, self._beside)

    def refusal(self, key: str, advice: str, problem: str = "") -> UserError:
        place = f"{problem} {self._full(key)!r}; " if problem else f"{self._full(key)}: "
        return UserError(f"{self._path}: {place}{advice}")

    def _beside(self, text: str) -> Path:
        if not text.isprintable():
            raise UserError("write the path of a file")
        return self._path.absolute().parent / text

    def _full(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key


@dataclass(frozen=True, slots=True)
class Tls:
    """With a `client_ca_file` clients may present a certificate; with `needs_certificate` they must."""

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    needs_certificate: bool = False
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    cipher_suites: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.cert_file, self.key_file, self.client_ca_file) if path)


@dataclass(frozen=True, slots=True)
class WebConfig:
    """`users` are bcrypt hashes by name."""

    tls: Tls | None = None
    users: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def needs_certificate(self) -> bool:
        return self.tls is not None and self.tls.needs_certificate


def read(path: Path) -> WebConfig:
    """Read the file. Paths in it are relative to its folder. Raises UserError."""
    document = yaml_document(path, ADVICE, kibibytes=MOST_KIB)
    top = ConfigSection(path, "", document or {}, ("tls_server_config", "http_server_config", "basic_auth_users"))
    http = top.section("http_server_config", ("headers", "http2"))
    if http.text("http2", _yes_or_no):
        raise http.refusal("http2", "podgpu speaks HTTP/1.1; write false or leave it out")
    return WebConfig(_tls(top), _users(top), _headers(http))


def _tls(top: ConfigSection) -> Tls | None:
    section = top.section("tls_server_config", _TLS_KEYS)
    if not section.values:
        return None
    cert, key = section.file("cert_file"), section.file("key_file")
    if cert is None or key is None:
        raise top.refusal("tls_server_config", "give both cert_file and key_file")
    kind = section.text("client_auth_type", _auth_type) or "NoClientCert"
    authority = section.file("client_ca_file")
    if (kind == "NoClientCert") != (authority is None):
        advice = "give client_ca_file together with VerifyClientCertIfGiven or RequireAndVerifyClientCert"
        raise section.refusal("client_auth_type", advice)
    lowest = section.text("min_version", _version) or "TLS12"
    highest = section.text("max_version", _version) or "TLS13"
    if lowest > highest:
        raise section.refusal("min_version", f"{lowest} is above max_version; exchange them")
    return Tls(
        cert,
        key,
        authority,
        needs_certificate=kind == "RequireAndVerifyClientCert",
        min_version=lowest,
        max_version=highest,
        cipher_suites=_suites(section),
    )


def _suites(section: ConfigSection) -> tuple[str, ...]:
    found = section.texts("cipher_suites")
    for name in found:
        if name not in SUITES:
            known = f"choose among {', '.join(SUITES)}; the suites of TLS 1.3 are always on"
            raise section.refusal("cipher_suites", did_you_mean(name, SUITES, known), f"unknown suite {name!r} in")
    return tuple(SUITES[name] for name in found)


def _users(top: ConfigSection) -> Mapping[str, bytes]:
    section = top.section("basic_auth_users")
    for name in section.values:
        if ":" in name or not name:
            raise section.refusal(name, "a user's name must have a letter and no colon; choose another")
    return {name: _hash(section, name) for name in section.values}


def _hash(section: ConfigSection, name: str) -> bytes:
    value = section.values[name]
    found = _HASH.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise section.refusal(name, f"this is not a bcrypt hash; make one with 'htpasswd -nBC 10 {name}'")
    if not 4 <= int(found[1]) <= LONGEST_COST:
        raise section.refusal(name, f"the cost of the bcrypt hash must be from 4 to {LONGEST_COST}; make one with 10")
    return found[0].encode()


def _headers(http: ConfigSection) -> Mapping[str, str]:
    section = http.section("headers", HEADER_NAMES)
    return {name: value for name in section.values if (value := section.text(name, _header))}


def _header(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        raise UserError("write printable ASCII in one line")
    return text


def _yes_or_no(text: str) -> bool:
    if text not in ("true", "false"):
        raise UserError("write true or false")
    return text == "true"


def _auth_type(text: str) -> str:
    if text in ("RequestClientCert", "RequireAnyClientCert"):
        raise UserError(
            f"{text} would accept certificates that no authority has signed; write RequireAndVerifyClientCert"
        )
    if text not in AUTH_TYPES:
        raise UserError(f"{text!r} is not known; {did_you_mean(text, AUTH_TYPES, f'write {_either(AUTH_TYPES)}')}")
    return text


def _version(text: str) -> str:
    if text not in VERSIONS:
        raise UserError(f"{text!r} is not supported; write {_either(tuple(VERSIONS))}")
    return text


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
