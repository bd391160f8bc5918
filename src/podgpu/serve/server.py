"""The server: several addresses that share pages and limits, and an address for probes with its own limits.

podgpu has its own HTTP server, because probes and scrapes must succeed whatever other clients do. That takes
deadlines, evictions by client network and limits of memory below the request handler: see `http/`.
docs/architecture.md compares it with aiohttp.web and uvicorn.
"""

import asyncio
import errno
import os
import resource
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Required, TypedDict, Unpack

import msgspec

from podgpu.errors import UserError
from podgpu.model import Lanes, Snapshot, of_one
from podgpu.option.value import Address
from podgpu.serve import assets, event_stream
from podgpu.serve.event_stream import ChangeSource, EventBroadcaster
from podgpu.serve.guard.guard import Guard
from podgpu.serve.http.listener import ListenerGroup
from podgpu.serve.http.request import Limits
from podgpu.serve.pages import NATIVE_ALONE, BodyPart, NodePages, PageRegistry
from podgpu.serve.past import History, PastRoutes, PastState
from podgpu.serve.request_handler import Load, RequestHandler, Route
from podgpu.serve.routes import PROBED, NodeFeed, NodeRoutes
from podgpu.supervise import Supervisor
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json
from podgpu.views.facts import FactsQuery, facts_document
from podgpu.views.rows_file import RowsQuery, rows_written

BACKLOG = 4096  # the kernel's own bound is lower on older systems
# Half of what the kernel buffers for a client that does not read; its default is some MiB for each.
SEND_BYTES = 512 * 1024
# Descriptors for the driver, the kubelet, the API server, files, logs and event streams.
OWN_DESCRIPTORS = 640
LEAST_PENDING = 64

# Errors of a machine with only one of IPv4 and IPv6.
_LACKING = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_OPTION = "--web.listen-address"


async def bind(address: Address) -> list[socket.socket]:
    """Bind a listener for each IP address that the host stands for; one of them is enough. Raises UserError."""
    bound: list[socket.socket] = []
    lacking: OSError | None = None
    for family, (host, _, *scope) in await _resolve(address):
        # Port 0 means any port, but the same one for IPv4 and IPv6.
        port = bound[0].getsockname()[1] if bound else address.port
        try:
            listener = socket.create_server((host, port, *scope), family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno not in _LACKING:
                for listener in bound:
                    listener.close()
                raise _cannot_listen(address, error) from None
            lacking = error
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)  # each connection inherits it
            bound.append(listener)
    if lacking is not None and not bound:
        raise _cannot_listen(address, lacking)
    return bound


async def _resolve(address: Address) -> list[tuple[int, tuple[str | int | bytes, ...]]]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(
            address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror:
        raise UserError(
            f"cannot listen on {address}: the name does not resolve; give {_OPTION} an IP address"
        ) from None
    return list(dict.fromkeys((family, place) for family, _, _, _, place in found))


def _cannot_listen(address: Address, error: OSError) -> UserError:
    why = {
        errno.EADDRINUSE: f"the port is in use; stop what listens there or choose another with {_OPTION}",
        errno.EACCES: f"ports below 1024 need privileges; choose a higher one with {_OPTION}",
        errno.EADDRNOTAVAIL: f"this machine has no such address; give {_OPTION} one of its own or none",
        errno.EAFNOSUPPORT: f"this machine lacks that IP version; choose another address with {_OPTION}",
    }
    number = error.errno or 0
    return UserError(f"cannot listen on {address}: {why.get(number) or os.strerror(number)}")


def spare_descriptors(connections: int, *, wanted: int) -> int:
    """Raise the soft limit as far as needed and allowed. Return how many descriptors there are, up to `wanted`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = OWN_DESCRIPTORS + connections + wanted
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(min(LEAST_PENDING, wanted), min(wanted, soft - OWN_DESCRIPTORS - connections))


Object = dict[str, Any]

_ABSENT = object()


class NodeChanges:
    def __init__(self, feed: NodeFeed, pages: NodePages) -> None:
        self._feed = feed
        self._pages = pages
        self._last: tuple[Snapshot, Object] | None = None

    @property
    def state(self) -> Snapshot:
        return self._feed.snapshot

    async def changed(self, seen: Snapshot) -> Snapshot:
        return await self._feed.changed(seen)

    async def document(self, state: Snapshot) -> Sequence[BodyPart]:
        return (BodyPart(self._pages.json(state, gzipped=False).body),)

    async def change(self, before: Snapshot, after: Snapshot) -> Sequence[Sequence[BodyPart]]:
        last, new = self._last, json.plain(after)
        old = last[1] if last is not None and last[0] is before else json.plain(before)
        self._last = after, new  # the next change starts from it
        return ((BodyPart(msgspec.json.encode(changes(old, new))),),)

    def forget(self) -> None:
        self._last = None


def changes(before: Object, after: Object) -> Object:
    """Return what turns one document into the other: a JSON merge patch (RFC 7396), with one addition.

    An object changes elements of an array by their number; an array of another length is replaced.
    Null removes a key. It is never a value: what is unknown is absent from our documents.
    """
    patch: Object = {}
    for key, new in after.items():
        old = before.get(key, _ABSENT)
        if old != new:
            patch[key] = _change(old, new)
    return patch | dict.fromkeys(before.keys() - after.keys())


def _change(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return changes(old, new)
    if _are_alike(old, new):
        pairs = enumerate(zip(old, new, strict=True))
        return {str(number): changes(before, after) for number, (before, after) in pairs if before != after}
    return new


def _are_alike(old: Any, new: Any) -> bool:
    """Whether both are lists of objects, of the same length."""
    return (
        isinstance(old, list)
        and isinstance(new, list)
        and len(old) == len(new)
        and all(isinstance(item, dict) for item in (*old, *new))
    )


# Time to begin requests that were sent before the stop.
LAST_CALL_SECONDS = 0.05
PENDING_PER_CONNECTION = 16


class ServerCaps(TypedDict, total=False):
    """What limits and guards a server, whatever it serves."""

    max_connections: Required[int]
    max_streams: Required[int]
    limits: Limits
    guard: Guard | None
    supervisor: Supervisor | None


class HttpServer:
    """Addresses, limits and the guard, whatever is served.

    `table` returns the routes of an address whose `/metrics` speaks one of the `dialects`. Events tell the `changes`.
    """

    def __init__(
        self,
        table: Callable[[str], Mapping[str, Route]],
        dialects: Sequence[str],
        changes: ChangeSource[Any],
        load: Load,
        **caps: Unpack[ServerCaps],
    ) -> None:
        self._supervisor = caps.get("supervisor") or Supervisor()
        self._limits = caps.get("limits") or Limits()
        self._guard = caps.get("guard") or Guard()
        self._load = load
        most = caps["max_connections"]
        places = spare_descriptors(most, wanted=PENDING_PER_CONNECTION * most)
        self._listeners = ListenerGroup(self._limits, most, places)
        self._probe_listeners = ListenerGroup(self._limits, most, places)
        self._groups = (self._listeners, self._probe_listeners)
        self._routes_of = table
        self._dialects = dialects
        self._events = EventBroadcaster(changes, caps["max_streams"], self._supervisor)
        self._files = assets.routes()
        self._sweeper: asyncio.Task[None] | None = None
        self.addresses: tuple[Address, ...] = ()
        self.probe_address: Address | None = None

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(address.port for address in self.addresses)

    @property
    def clients(self) -> int:
        """How many clients are connected, whether they have sent a request or not."""
        return sum(map(len, self._groups))

    @property
    def scheme(self) -> str:
        return "http" if self._guard.context is None else "https"

    async def start(self, addresses: Sequence[Address], probe_address: Address | None = None) -> None:
        """Listen. In `self.addresses`, a port 0 is replaced by the port that was chosen.

        The `probe_address` answers probes and scrapes alone, and no client of another address can fill its places.
        """
        for address in addresses:
            self._check_dialect(address, "--web.listen-address")
        try:
            for address in addresses:
                bound = await self._listen(address, self._table(address.dialect), self._listeners)
                self.addresses += (bound,)
            if probe_address is not None:
                self._check_dialect(probe_address, "--web.probe-address")
                table = self._routes_of(probe_address.dialect)
                probed = {path: table[path] for path in PROBED}
                self.probe_address = await self._listen(probe_address, probed, self._probe_listeners)
        except BaseException:
            await self.stop()
            raise
        self._sweeper = self._supervisor.supervise("server", self._sweep)

    async def stop(self) -> None:
        """Accept nothing more, let requests in progress finish, then close."""
        self._load.stopping = True
        self._events.close()
        for group in self._groups:
            group.close()
        if self.clients:
            await asyncio.sleep(LAST_CALL_SECONDS)
            seconds = self._limits.stop_seconds
            await asyncio.gather(*(group.connections.tasks.finish(seconds) for group in self._groups))
        for group in self._groups:
            group.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self._guard.close()
        await asyncio.sleep(0)

    def _check_dialect(self, address: Address, option: str) -> None:
        if address.dialect not in self._dialects:
            known = ", ".join(self._dialects)
            raise UserError(f"{option}={address}: there is no dialect {address.dialect!r}; choose one of: {known}")

    def _table(self, dialect: str) -> Mapping[str, Route]:
        # Vital: a stream takes no page's place, and the broadcaster limits their number.
        events = Route(self._events.respond, ("GET",), vital=True)
        return {**self._routes_of(dialect), event_stream.PATH: events, **self._files}

    async def _listen(self, address: Address, table: Mapping[str, Route], group: ListenerGroup) -> Address:
        listeners = await bind(address)
        group.open(listeners, RequestHandler(table, self._load, self._guard), lambda: self._guard.context)
        return replace(address, port=listeners[0].getsockname()[1])

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._limits.sweep_seconds)
            for group in self._groups:
                group.sweep(loop.time())
            if self._guard.reload():
                self._events.disconnect()  # credentials are checked by request, and a stream is one without an end


def _past_document(past: PastState[Snapshot, Any]) -> Iterable[bytes]:
    return (json.encode(past.whole()),)


def _past_rows(past: PastState[Snapshot, Any], query: RowsQuery) -> Iterable[bytes]:
    return (rows_written(of_one(past.whole()), query),)


def _past_facts(past: PastState[Snapshot, Any], asked: FactsQuery) -> Iterable[bytes]:
    return (facts_document(of_one(past.whole()), asked),)


def _recorded(past: PastState[Snapshot, Any]) -> Iterable[bytes]:
    return (cluster_json.encode(of_one(past.whole())),)


class NodeServer(HttpServer):
    def __init__(
        self,
        feed: NodeFeed,
        *,
        series_limit: int,
        max_requests: int,
        registry: PageRegistry = NATIVE_ALONE,
        history: History[PastState[Snapshot, Any]] | None = None,
        lanes: Callable[[str], Lanes | None] | None = None,
        **caps: Unpack[ServerCaps],
    ) -> None:
        pages, load, guard = NodePages(series_limit, registry), Load(max_requests), caps.get("guard")
        routes = NodeRoutes(feed, pages, load, guard.hosts if guard else None)
        past = PastRoutes(history, _past_document, _past_rows, _past_facts, _recorded, lanes=lanes)
        super().__init__(
            lambda dialect: past.over(routes.table(dialect)),
            registry.dialects,
            NodeChanges(feed, pages),
            load,
            **caps,
        )
