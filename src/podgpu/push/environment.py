"""The variables that OpenTelemetry defines for exporters. One for metrics alone wins over one for all signals."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from msgspec import Struct

from podgpu.errors import UserError
from podgpu.option import Environ
from podgpu.option.file import existing_file
from podgpu.option.value import web_address

GENERAL, METRICS = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_METRICS_"
DEFAULT_ENDPOINT = "http://localhost:4318"
PATH = "/v1/metrics"
PROTOCOL = "http/protobuf"
LONGEST_MS = 24 * 3600 * 1000
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

T = TypeVar("T")


class Destination(Struct, frozen=True, kw_only=True):
    """Where to push, and how. Times are in seconds. `headers` may hold secrets, so they are never shown."""

    url: str
    headers: dict[str, str] = {}
    timeout: float = 10.0
    interval: float = 60.0
    gzip: bool = False
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    resource: dict[str, str] = {}


def destination(environ: Environ) -> Destination | None:
    """Return where to push, or None if the environment does not ask for it."""
    environ = {name: value.strip() for name, value in environ.items() if value.strip()}
    if not _is_wanted(environ):
        return None
    _only(environ, "PROTOCOL", PROTOCOL, f"podgpu pushes over {PROTOCOL}, usually to port 4318")
    _only(environ, "TEMPORALITY_PREFERENCE", "cumulative", "podgpu's counters are cumulative")
    cert, key = (_setting(environ, name, existing_file) for name in ("CLIENT_CERTIFICATE", "CLIENT_KEY"))
    if (cert is None) != (key is None):
        raise UserError(f"{GENERAL}CLIENT_CERTIFICATE and {GENERAL}CLIENT_KEY go together; set both or none")
    return Destination(
        url=_url(environ),
        headers=_setting(environ, "HEADERS", _headers) or {},
        timeout=_setting(environ, "TIMEOUT", _seconds) or 10.0,
        interval=_read(environ, ("OTEL_METRIC_EXPORT_INTERVAL",), _seconds) or 60.0,
        gzip=_setting(environ, "COMPRESSION", _is_gzip) or False,
        ca_file=_setting(environ, "CERTIFICATE", existing_file),
        cert_file=cert,
        key_file=key,
        resource=_resource(environ),
    )


def _is_wanted(environ: Environ) -> bool:
    """Whether otlp is chosen or an endpoint is set, and nothing switches it off."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if "OTEL_METRICS_EXPORTER" in environ:
        return "otlp" in [word.strip() for word in environ["OTEL_METRICS_EXPORTER"].split(",")]
    return f"{GENERAL}ENDPOINT" in environ or f"{METRICS}ENDPOINT" in environ


def _url(environ: Environ) -> str:
    """Return the endpoint for metrics as it is, or the one for all signals with the path of metrics."""
    if url := _read(environ, (f"{METRICS}ENDPOINT",), _address):
        return url
    return (_read(environ, (f"{GENERAL}ENDPOINT",), _address) or DEFAULT_ENDPOINT).rstrip("/") + PATH


def _resource(environ: Environ) -> dict[str, str]:
    attributes = _read(environ, ("OTEL_RESOURCE_ATTRIBUTES",), _pairs) or {}
    name = environ.get("OTEL_SERVICE_NAME")
    return {**attributes, "service.name": name} if name else attributes


def _setting(environ: Environ, name: str, parse: Callable[[str], T]) -> T | None:
    return _read(environ, (METRICS + name, GENERAL + name), parse)


def _read(environ: Environ, names: tuple[str, ...], parse: Callable[[str], T]) -> T | None:
    name = next((name for name in names if name in environ), None)
    if name is None:
        return None
    try:
        return parse(environ[name])
    except UserError as error:
        raise UserError(f"{name}: {error}") from None


def _only(environ: Environ, name: str, wanted: str, reason: str) -> None:
    def check(value: str) -> None:
        if value.lower() != wanted:
            raise UserError(f"{value!r} is not supported: {reason}; write {wanted} or leave it out")

    _setting(environ, name, check)


def _address(text: str) -> str:
    try:
        web_address(text, "")
    except UserError:  # that one quotes the URL, which may hold a password
        raise UserError("not the URL of a collector; write it like http://collector:4318") from None
    return text


def _headers(text: str) -> dict[str, str]:
    headers = _pairs(text)
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not value.isprintable() or not value.isascii():
            raise UserError("not a list of headers; write NAME=VALUE,NAME=VALUE with values percent-encoded")
    return headers


def _pairs(text: str) -> dict[str, str]:
    """Parse `a=b,c=d`. The error shows no value: it may be a secret."""
    pairs = {}
    for number, part in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise UserError(f"entry {number} is not NAME=VALUE; write NAME=VALUE,NAME=VALUE")
        pairs[unquote(name.strip())] = unquote(value.strip())
    return pairs


def _seconds(text: str) -> float:
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= LONGEST_MS:
        raise UserError(f"{text!r} does not fit; write milliseconds, from 1 to {LONGEST_MS}")
    return int(text) / 1000


def _is_gzip(text: str) -> bool:
    if text not in ("gzip", "none"):
        raise UserError(f"{text!r} is not supported; write gzip or none")
    return text == "gzip"
