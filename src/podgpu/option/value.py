"""The kinds of value that an option can have. Each parses text, or says what to write instead."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from podgpu.errors import UserError

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network
    from urllib.parse import SplitResult

T = TypeVar("T")
N = TypeVar("N", int, float)
_DURATION = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(ms|s|m|h|d|w)?")
_SIZE = re.compile(r"([0-9]{1,18})(KiB|MiB|GiB)?")
_FACTOR = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_PATH = re.compile(r"/[-A-Za-z0-9._~!$&'()*+;=:@%/]{0,1023}")
_WHOLE = re.compile(r"[0-9]{1,18}")
_BYTES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


@dataclass(frozen=True, slots=True)
class ValueParser(Generic[T]):
    """Parses a kind of value, which help texts call `value_name`. The bounds are text as a user would write them."""

    value_name: str
    parse: Callable[[str], T]
    least: str = ""
    most: str = ""

    def __call__(self, text: str) -> T:
        return self.parse(text)


path = ValueParser("PATH", Path)


def duration(shortest: str, longest: str) -> ValueParser[float]:
    """Parse to seconds."""
    return _within("DURATION", seconds, shortest, longest)


def _within(value_name: str, parse: Callable[[str], N], least: str, most: str) -> ValueParser[N]:
    def checked(text: str) -> N:
        value = parse(text)
        if not parse(least) <= value <= parse(most):
            raise UserError(f"{text} is out of range; choose {least} to {most}")
        return value

    return ValueParser(value_name, checked, least, most)


def seconds(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if not found:
        raise UserError(f"{text!r} is not a duration; write seconds or a unit, such as 500ms, 30m or 2d")
    return float(found[1]) * _SECONDS[found[2] or "s"]


def factor(least: float, most: float) -> ValueParser[float]:
    return _number("a number", _FACTOR, float, least, most)


def whole(least: int, most: int) -> ValueParser[int]:
    return _number("a whole number", _WHOLE, int, least, most)


def _number(kind: str, form: re.Pattern[str], convert: Callable[[str], N], least: N, most: N) -> ValueParser[N]:
    def parse(text: str) -> N:
        if not form.fullmatch(text) or not least <= convert(text) <= most:
            raise UserError(f"{text!r} does not fit; write {kind} from {least} to {most}")
        return convert(text)

    return ValueParser("NUMBER", parse, str(least), str(most))


@dataclass(frozen=True, slots=True)
class OneOf:
    """`synonyms` are other words for some of the choices, in lower case."""

    choices: tuple[str, ...]
    synonyms: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __call__(self, text: str) -> str:
        choice = self.synonyms.get(text.lower(), text)
        if choice not in self.choices:
            all_of_them = f"choose {', '.join(self.choices[:-1])} or {self.choices[-1]}"
            raise UserError(f"{text!r} is not known; {did_you_mean(text, self.choices, all_of_them)}")
        return choice


# A switch. Variables of other programs spell it as Go does.
on_off = OneOf(("on", "off"), {"1": "on", "t": "on", "true": "on", "0": "off", "f": "off", "false": "off"})


def api_server(text: str) -> str:
    if text in ("auto", "off") or text.startswith(("http://", "https://")):
        return text
    raise UserError(f"{text!r} is not an API server; write auto, off or a URL such as https://10.0.0.1:443")


def page_address(text: str) -> str:
    """Parse a URL. Without a path it means /metrics."""
    address = web_address(text, "the address of a page; write it like http://127.0.0.1:9400/metrics")
    return text if address.path.strip("/") else address._replace(path="/metrics").geturl()


def absolute_path(text: str) -> str:
    """Parse the path of a URL."""
    if not _PATH.fullmatch(text):
        raise UserError(f"{text!r} is not the path of a page; write it like /metrics")
    return text


_NAME = re.compile("[A-Za-z0-9._-]+")


def _base_address(text: str) -> str:
    wanted = "the address of an agent or a cluster; write it like http://127.0.0.1:19400"
    return bare_address(text, wanted, "--login.password-file=PATH")


def bare_address(text: str, wanted: str, login: str) -> str:
    """Parse a URL that paths are added to. It may hold no secret: others see the command line."""
    address = web_address(text, wanted)
    if address.username is not None or address.password is not None:
        raise UserError(f"the URL holds a user or a password; leave them out, and give {login}")
    if address.query or address.fragment:
        raise UserError(f"{text!r} is not {wanted}")
    return text.rstrip("/")


base_address = ValueParser("URL", _base_address)


def _named(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=") if "=" in text else (text, "", text)
    if not value or not _NAME.fullmatch(name):
        raise UserError(f"{text!r} has no name that a label can be; write NAME={value or 'VALUE'}, such as eu-1=…")
    return name, value


def _named_address(text: str) -> tuple[str, str]:
    if "=" not in text:
        raise UserError(f"{text!r} has no name; write NAME=URL, such as eu-1=https://podgpu.eu-1.example")
    name, url = _named(text)
    return name, _base_address(url)


named = ValueParser("NAME", _named)
named_address = ValueParser("NAME=URL", _named_address)


def web_address(text: str, wanted: str) -> "SplitResult":
    """Parse any URL of HTTP. `wanted` says what it is meant to be, and how to write it."""
    from urllib.parse import urlsplit

    shown = "the URL" if "@" in text else repr(text)  # it may hold a password
    refusal = UserError(f"{shown} is not {wanted}")
    try:
        address = urlsplit(text)
        _ = address.port  # urlsplit checks the port only when it is read
    except ValueError:
        raise refusal from None
    if address.scheme not in ("http", "https") or not address.hostname:
        raise refusal
    return address


def _network(text: str) -> "IPv4Network | IPv6Network":
    from ipaddress import ip_network

    try:
        network = ip_network(text)
    except ValueError:
        raise UserError(f"{text!r} is no address and no CIDR; write it like 127.0.0.1 or 10.244.3.0/24") from None
    if not network.prefixlen:
        raise UserError(f"{text} means every address, so anyone could name a user; write those of the proxy")
    return network


def _header_name(text: str) -> str:
    if not re.fullmatch("[A-Za-z0-9-]+", text):
        raise UserError(f"{text!r} is not the name of a header; write it like X-Forwarded-User")
    return text


network = ValueParser("CIDR", _network)
header_name = ValueParser("NAME", _header_name)


def size(least: str, most: str) -> ValueParser[int]:
    """Parse to bytes."""
    return _within("SIZE", _bytes, least, most)


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if not found:
        raise UserError(f"{text!r} is not a size; write bytes or a unit, such as 512KiB or 16MiB")
    return int(found[1]) * _BYTES[found[2] or ""]


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the end of an error message: the nearest known word, or else what to do instead."""
    from difflib import get_close_matches

    nearest = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {nearest[0]}?" if nearest else otherwise


NATIVE = "native"
_FORM = "write HOST:PORT or :PORT, such as :19400, 127.0.0.1:19400 or [::1]:19400"
_HOST = re.compile(r"[A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Address:
    """An empty host means every interface, and port 0 any free port."""

    host: str
    port: int
    dialect: str = NATIVE

    @classmethod
    def parse(cls, text: str) -> "Address":
        place, equals, dialect = text.partition("=")
        if equals and not dialect:
            raise UserError(f"{text!r} names no dialect after '='; write {place}=DIALECT or leave out the '='")
        host, colon, port = place.rpartition(":")
        if not colon:
            advice = f"write :{place}" if place.isdigit() else _FORM
            raise UserError(f"{text!r} has no port; {advice}")
        return cls(_host(host, text), _port(port, text), dialect or NATIVE)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" + ("" if self.dialect == NATIVE else f"={self.dialect}")


def _host(host: str, text: str) -> str:
    if host.startswith("[") and host.endswith("]"):
        return _version_6(host[1:-1], text)
    if ":" in host and "/" not in host:
        raise UserError(f"{text!r} is not an address; put an IPv6 address in brackets, such as [::1]:19400")
    if not _HOST.fullmatch(host):
        raise UserError(f"{text!r} is not an address; {_FORM}")
    return host


def _version_6(host: str, text: str) -> str:
    from ipaddress import IPv6Address

    try:
        IPv6Address(host)
    except ValueError:
        raise UserError(f"{text!r} holds no IPv6 address between the brackets; {_FORM}") from None
    return host


def _port(port: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise UserError(f"{text!r} has no valid port; it must be a number from 0 to 65535")
    return int(port)
