"""What a proxy in front says of its clients: from which address they come, and who has logged in there."""

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from podgpu.serve.http.request import Request

MAX_USER = 128


class TrustedProxies:
    """Believes headers that come from the `networks`. Any other client could send the same.

    Only `user_header` names the user. A proxy removes it from what its clients send, but passes on others like it.
    """

    def __init__(self, networks: Sequence[IPv4Network | IPv6Network] = (), user_header: str = "") -> None:
        self._networks = tuple(networks)
        self._user_header = user_header.lower()

    def __bool__(self) -> bool:
        return bool(self._networks)

    def seen(self, request: Request) -> Request:
        """Return the request with the client's address and user, if a trusted proxy passed it on."""
        proxy = _address(request.remote or "")
        if proxy is None or not self._trusts(proxy):
            return request
        return replace(request, remote=self._client(request, proxy), user=self._user(request))

    def _client(self, request: Request, proxy: IPv4Address | IPv6Address) -> str:
        """Each proxy adds to the right whom it heard, so the last that is no trusted proxy is the client."""
        client = proxy
        for hop in reversed(request.headers.get("x-forwarded-for", "").split(",")):
            heard = _address(hop.strip())
            if heard is None:
                break
            client = heard
            if not self._trusts(client):
                break
        return str(client)

    def _user(self, request: Request) -> str:
        name = request.headers.get(self._user_header, "")
        try:
            name = name.encode("latin-1").decode()
        except UnicodeDecodeError:
            return ""
        # A comma joins repeated headers: then it is not known which of them the proxy wrote.
        return name if name.isprintable() and "," not in name and len(name) <= MAX_USER else ""

    def _trusts(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._networks)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
