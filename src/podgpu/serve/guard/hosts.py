"""The names by which a client may call the server.

A page of another site can make its own name mean this server's address, and its script then reads the answers as its
own (DNS rebinding). The browser still sends that name as Host.
"""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

_LOCAL = "localhost"
_OWN_SITES = ("", "none", "same-origin")


class Hosts:
    """Without `allowed` names, any is fine. IP addresses and localhost always are: no other site can be called so."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = frozenset(name.lower().rstrip(".") for name in allowed)

    def welcomes(self, headers: Mapping[str, str]) -> bool:
        name = _name(headers)
        return not self._allowed or name in self._allowed or _is_own(name) or _address(name) is not None

    def may_change(self, headers: Mapping[str, str]) -> bool:
        """Whether the request comes from a program here, and from no other site's page in a browser here."""
        if "origin" in headers or headers.get("sec-fetch-site", "").lower() not in _OWN_SITES:
            return False
        name = _name(headers)
        address = _address(name)
        if address is not None:
            return address.is_loopback
        return name in self._allowed or _is_own(name)


def _name(headers: Mapping[str, str]) -> str:
    """Return the host without its port. HTTP/1.0 may lack it, which no browser speaks."""
    host = headers.get("host", "").strip().lower()
    if host.startswith("["):
        return host.partition("]")[0][1:]
    return host.partition(":")[0].rstrip(".")


def _is_own(name: str) -> bool:
    return not name or name == _LOCAL or name.endswith(f".{_LOCAL}")


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None
