"""Decides which requests get a response. Passwords are checked in a thread, since bcrypt takes long."""

import asyncio
import ssl
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path

from podgpu.serve.guard.checks import (
    CheckLimits,
    CredentialChecks,
    Rate,
    ReviewUnavailable,
    TokenAccess,
    TokenAuthority,
    Tokens,
    TooManyChecks,
    reviewed_path,
)
from podgpu.serve.guard.tls import WebConfigWatcher
from podgpu.serve.http.connections import client_network
from podgpu.serve.http.request import Request
from podgpu.serve.http.response import Response, busy_response, text_response

RIGHT_SECONDS = 3600.0
WRONG_SECONDS = 60.0
THREADS = 4  # one for each rank
LIMITS = CheckLimits(most=32, each=2, familiar=4, at_once=1, rate=Rate(8, 0.1), total=Rate(32, 2.0))

_BCRYPT_BYTES = 72  # of a password count; Prometheus' own library ignores the rest too
_COST = slice(4, 6)  # of a hash such as $2b$10$…


class Passwords:
    """Results are remembered, so that a known client gets in even while others try wrong passwords."""

    def __init__(self) -> None:
        self._checks: CredentialChecks[bool] = CredentialChecks(
            lambda right: RIGHT_SECONDS if right else WRONG_SECONDS, is_good=bool, limits=LIMITS
        )
        self._threads: ThreadPoolExecutor | None = None

    async def right(self, users: Mapping[str, bytes], shown: str, client: str) -> bool:
        """Check what follows the word Basic in a request, with at least one user. Raises TooManyChecks."""
        name, colon, password = _decoded(shown).partition(":")
        if not colon:
            return False
        dearest = max(users.values(), key=_cost)
        # An unknown name is checked too: the time must not reveal which names exist.
        hashed = users.get(name) or dearest

        async def check() -> bool:
            self._threads = self._threads or ThreadPoolExecutor(THREADS, "password")
            checking = asyncio.get_running_loop().run_in_executor(
                self._threads, _matches, password, hashed, _cost(dearest)
            )
            return await checking and name in users

        return await self._checks.result((name, hashed.decode(), password), client, check)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _matches(password: str, hashed: bytes, cost: int) -> bool:
    """Return whether the password is right. A wrong one takes as long to check as with a hash of that cost."""
    import bcrypt

    secret = password.encode()[:_BCRYPT_BYTES]
    try:
        if bcrypt.checkpw(secret, hashed):
            return True
        # Each step takes twice as long as the one before, so these and the check above take 2**cost together.
        for step in range(_cost(hashed), cost):
            bcrypt.checkpw(secret, hashed[: _COST.start] + b"%02d" % step + hashed[_COST.stop :])
    except ValueError:  # a password that bcrypt cannot have hashed
        pass
    return False


def _cost(hashed: bytes) -> int:
    return int(hashed[_COST])


def _decoded(shown: str) -> str:
    try:
        return b64decode(shown, validate=True).decode()
    except (NotBase64, ValueError):
        return ""


_LOCAL = "localhost"
_OWN_SITES = ("", "none", "same-origin")
MAX_USER = 128  # characters


class Hosts:
    """The host names by which clients may address the server.

    Another site can let its own name resolve to this server's address, so that its scripts may read the responses
    (DNS rebinding). The browser still sends that name as Host. Without `allowed` names, any is accepted. IP addresses
    and localhost always are: no other site has such a name.
    """

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = frozenset(name.lower().rstrip(".") for name in allowed)

    def allows(self, headers: Mapping[str, str]) -> bool:
        name = _name(headers)
        return not self._allowed or name in self._allowed or _is_local(name) or _address(name) is not None

    def may_change(self, headers: Mapping[str, str]) -> bool:
        """Whether the request comes from a program on this machine, and not from another site's page in a browser."""
        if "origin" in headers or headers.get("sec-fetch-site", "").lower() not in _OWN_SITES:
            return False
        name = _name(headers)
        address = _address(name)
        if address is not None:
            return address.is_loopback
        return name in self._allowed or _is_local(name)


class TrustedProxies:
    """Believes headers from the `networks` alone: any client could send them.

    Only `user_header` names the user. A proxy removes that one from what its clients send, but no similar ones.
    """

    def __init__(self, networks: Sequence[IPv4Network | IPv6Network] = (), user_header: str = "") -> None:
        self._networks = tuple(networks)
        self._user_header = user_header.lower()

    def __bool__(self) -> bool:
        return bool(self._networks)

    def seen(self, request: Request) -> Request:
        """Return the request with the client's address and user, if a trusted proxy passed it on."""
        proxy = peer_address(request.remote)
        if proxy is None or not self._trusts(proxy):
            return request
        return replace(request, remote=self._client(request, proxy), user=self._user(request))

    def _client(self, request: Request, proxy: IPv4Address | IPv6Address) -> str:
        """Each proxy appends the address of its client, so the last that is no trusted proxy is the client."""
        client = proxy
        for hop in reversed(request.headers.get("x-forwarded-for", "").split(",")):
            address = peer_address(hop.strip())
            if address is None:
                break
            client = address
            if not self._trusts(client):
                break
        return str(client)

    def _user(self, request: Request) -> str:
        name = request.headers.get(self._user_header, "")
        try:
            name = name.encode("latin-1").decode()
        except UnicodeDecodeError:
            return ""
        # A comma joins repeated headers, of which the proxy may have written any.
        return name if name.isprintable() and "," not in name and len(name) <= MAX_USER else ""

    def _trusts(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._networks)


class Guard:
    """Without any setting, every request gets a response.

    A password, a token that the `authority` knows, or a user whom a trusted proxy names: each is enough.
    """

    def __init__(
        self,
        web_config: Path | None = None,
        authority: TokenAuthority | None = None,
        hosts: Sequence[str] = (),
        proxies: TrustedProxies | None = None,
    ) -> None:
        self.hosts = Hosts(hosts)
        self.proxies = proxies or TrustedProxies()
        self._watcher = WebConfigWatcher(web_config)
        self._passwords = Passwords()
        self._tokens = Tokens(authority) if authority else None

    @property
    def context(self) -> ssl.SSLContext | None:
        """What a new connection begins with: None means plain HTTP."""
        return self._watcher.context

    @property
    def headers(self) -> Mapping[str, str]:
        return self._watcher.config.headers

    @property
    def takes_secrets(self) -> bool:
        return bool(self._watcher.config.users) or self._tokens is not None

    def reload(self) -> bool:
        """Read the files again if they have changed, and return whether the configuration is another now."""
        return self._watcher.reload()

    async def refusal(self, request: Request) -> Response | None:
        """Return the response to a request that is refused; None if it is not."""
        if not self.hosts.allows(request.headers):
            return text_response(421, "this server has another name; --web.allowed-hosts lists its names")
        if self._watcher.config.needs_certificate and not request.certified:
            return text_response(403, "this page needs a client certificate; present one")
        if request.user or not (self.takes_secrets or self.proxies):
            return None
        try:
            return await self._check_credentials(request)
        except TooManyChecks:
            return busy_response("too many logins at once; try again in a second")
        except ReviewUnavailable:
            return busy_response("the token cannot be checked now; see the log of podgpu")

    async def close(self) -> None:
        self._passwords.close()
        if self._tokens is not None:
            await self._tokens.close()

    async def _check_credentials(self, request: Request) -> Response | None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        users, secret = self._watcher.config.users, shown.strip()
        client = client_network(request.remote)
        match scheme.lower():
            case "basic" if users:
                if await self._passwords.right(users, secret, client):
                    return None
            case "bearer" if self._tokens is not None and secret:
                access = await self._tokens.access(secret, request.method, request.path, client)
                if access is TokenAccess.ALLOWED:
                    return None
                if access is TokenAccess.FORBIDDEN:
                    needed = reviewed_path(request.path)
                    advice = f"give it a ClusterRole with {needed!a} among its nonResourceURLs"
                    return text_response(403, f"this account may not read this page; {advice}")
        if not self.takes_secrets:
            return text_response(403, "log in at the proxy in front of this page; --web.trusted-proxy says which")
        schemes = {"Basic": users, "Bearer": self._tokens}
        offered = ", ".join(f'{name} realm="podgpu"' for name, is_offered in schemes.items() if is_offered)
        return text_response(401, "log in to read this page", {"WWW-Authenticate": offered})


def _name(headers: Mapping[str, str]) -> str:
    """Return the host without its port. It may be missing in HTTP/1.0, which no browser speaks."""
    host = headers.get("host", "").strip().lower()
    if host.startswith("["):
        return host.partition("]")[0][1:]
    return host.partition(":")[0].rstrip(".")


def _is_local(name: str) -> bool:
    return not name or name == _LOCAL or name.endswith(f".{_LOCAL}")


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None


def peer_address(text: str) -> IPv4Address | IPv6Address | None:
    address = _address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address
