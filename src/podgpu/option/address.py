"""An address to listen on, and the dialect of its /metrics."""

import re
from dataclasses import dataclass

from podgpu.errors import UserError

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
            raise UserError(
                f"{text!r} names no dialect after '='; write {place}=DIALECT or leave out the '='"
            )
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
    if "/" in host:
        raise UserError(f"{text!r} is not an address; {_FORM}")
    if ":" in host:
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
