"""The web configuration file, in the form that Prometheus and its exporters use.

No message names a value below `basic_auth_users`: those are secrets.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from podgpu.errors import UserError
from podgpu.option.document import yaml_document
from podgpu.option.spelling import did_you_mean
from podgpu.serve.guard.section import ADVICE, Section
from podgpu.serve.guard.suites import AUTH_TYPES, SUITES, VERSIONS, Version

LONGEST_COST = 16  # a check takes about four seconds, and twice as long with each step
MOST_KIB = 64  # some hundred users: it is read again while probes wait, and a MiB would take ten seconds
HEADER_NAMES = (
    "Content-Security-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-XSS-Protection",
)

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


@dataclass(frozen=True, slots=True)
class Tls:
    """With a `client_ca_file` clients may show a certificate; with `needs_certificate` they get no page without."""

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    needs_certificate: bool = False
    min_version: Version = "TLS12"
    max_version: Version = "TLS13"
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


def read(path: Path) -> WebConfig:
    """Read the file. Paths in it start from its folder. Raises UserError."""
    document = yaml_document(path, ADVICE, kibibytes=MOST_KIB)
    top = Section(path, "", document or {}, ("tls_server_config", "http_server_config", "basic_auth_users"))
    http = top.section("http_server_config", ("headers", "http2"))
    if http.text("http2", _yes_or_no):
        raise http.refusal("http2", "podgpu speaks HTTP/1.1; write false or leave it out")
    return WebConfig(_tls(top), _users(top), _headers(http))


def _tls(top: Section) -> Tls | None:
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


def _suites(section: Section) -> tuple[str, ...]:
    found = section.texts("cipher_suites")
    for one in found:
        if one not in SUITES:
            known = f"choose among {', '.join(SUITES)}; the suites of TLS 1.3 are always on"
            raise section.refusal(
                "cipher_suites", did_you_mean(one, SUITES, known), f"unknown suite {one!r} in"
            )
    return tuple(SUITES[one] for one in found)


def _users(top: Section) -> Mapping[str, bytes]:
    section = top.section("basic_auth_users")
    for name in section.values:
        if ":" in name or not name:
            raise section.refusal(name, "a user's name must have a letter and no colon; choose another")
    return {name: _hash(section, name) for name in section.values}


def _hash(section: Section, name: str) -> bytes:
    value = section.values[name]
    found = _HASH.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise section.refusal(name, f"this is not a bcrypt hash; make one with 'htpasswd -nBC 10 {name}'")
    if not 4 <= int(found[1]) <= LONGEST_COST:
        raise section.refusal(
            name, f"the cost of the bcrypt hash must be from 4 to {LONGEST_COST}; make one with 10"
        )
    return found[0].encode()


def _headers(http: Section) -> Mapping[str, str]:
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
            f"{text} would accept certificates that nobody vouches for; write RequireAndVerifyClientCert"
        )
    if text not in AUTH_TYPES:
        raise UserError(
            f"{text!r} is not known; {did_you_mean(text, AUTH_TYPES, f'write {_either(AUTH_TYPES)}')}"
        )
    return text


def _version(text: str) -> Version:
    for one in VERSIONS:
        if text == one:
            return one
    raise UserError(f"{text!r} is not supported; write {_either(VERSIONS)}")


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
