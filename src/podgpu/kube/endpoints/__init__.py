"""Where pods with certain labels answer on this node: their addresses, by the API server."""

import ipaddress
import time

import msgspec

from podgpu.kube.apiserver import PAGE_BYTES, ApiFault, ApiServer
from podgpu.kube.pod_object import Label, Subdomain
from podgpu.model import Fault

LIST_SECONDS = 30.0  # between two looks for new pods
SOON = 10.0  # the same as long as there are none
MOST_LISTED = 64
MOST_PODS = 4  # asked on one node: there is one, and one more while it is replaced
PORT_NAME = "metrics"


class Port(msgspec.Struct, rename="camel"):
    container_port: int = 0
    name: str = ""


class Container(msgspec.Struct):
    ports: list[Port] | None = None


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: list[Container] | None = None


class Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")


class Metadata(msgspec.Struct, rename="camel"):
    name: Subdomain
    namespace: Label
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None


class Item(msgspec.Struct):
    metadata: Metadata
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


class Items(msgspec.Struct):
    items: list[Item] | None = None


class Endpoints:
    """Lists anew now and then. While the API server is away the last list holds.

    Anybody who may run a pod with these labels is believed, so better name the `namespace` they are in. Of too many
    the oldest are asked: the real one is mostly there before anybody who pretends.
    """

    def __init__(
        self, api: ApiServer, *, node: str, selector: str, namespace: str = "", port: int, path: str
    ) -> None:
        self._api = api
        self._node = node
        self._selector = selector
        self._namespace = namespace
        self._port = port
        self._path = path
        self._urls: tuple[str, ...] = ()
        self._fault: Fault | None = None
        self._list_due = 0.0

    async def find(self) -> tuple[tuple[str, ...], Fault | None]:
        """Return the addresses, and why there are none if there are none."""
        if time.monotonic() >= self._list_due:
            await self._look()
            self._list_due = time.monotonic() + (LIST_SECONDS if self._urls else SOON)
        return self._urls, None if self._urls else self._fault

    async def close(self) -> None:
        await self._api.close()

    async def _look(self) -> None:
        try:
            self._urls = await self._listed()
            self._fault = Fault(reason="no_exporter", detail=self._nobody())
        except ApiFault as fault:
            self._fault = Fault(reason=fault.reason, detail=f"API server: {fault.detail}")

    async def _listed(self) -> tuple[str, ...]:
        within = f"/namespaces/{self._namespace}" if self._namespace else ""
        query = {
            "labelSelector": self._selector,
            "fieldSelector": f"spec.nodeName={self._node},status.phase=Running",
            "limit": str(MOST_LISTED),
            "resourceVersion": "0",
        }
        found = await self._api.get(f"/api/v1{within}/pods", Items, query, limit=PAGE_BYTES)
        items = [item for item in found.items or () if self._is_meant(item)]
        items.sort(key=lambda item: _age(item.metadata))
        urls = (self._url(item) for item in items)
        return tuple(dict.fromkeys(url for url in urls if url))[:MOST_PODS]

    def _is_meant(self, item: Item) -> bool:
        """The server's cache may not have heard the question out; on another node there are other GPUs."""
        return (
            item.spec.node_name == self._node
            and item.status.phase == "Running"
            and item.metadata.deletion_timestamp is None
        )

    def _url(self, item: Item) -> str:
        """An address that leads to the pod, or nothing. Without a host, it would lead to ourselves."""
        address = _address(item.status.pod_ip)
        if address is None or any(
            (address.is_loopback, address.is_unspecified, address.is_multicast, address.is_link_local)
        ):
            return ""
        host = f"[{address}]" if address.version == 6 else str(address)
        return f"http://{host}:{self._own_port(item) or self._port}{self._path}"

    def _own_port(self, item: Item) -> int:
        ports = [port for container in item.spec.containers or () for port in container.ports or ()]
        named = (port.container_port for port in ports if port.name == PORT_NAME)
        return next((port for port in named if 0 < port < 1 << 16), 0)

    def _nobody(self) -> str:
        where = f" in namespace {self._namespace}" if self._namespace else ""
        return f"no running pod with {self._selector} on node {self._node}{where}"


def _age(metadata: Metadata) -> tuple[str, str, str]:
    return metadata.creation_timestamp, metadata.namespace, metadata.name


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """None for what is none, and for one with a zone, which no pod has. An IPv4 address may be dressed as IPv6."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return address
    return None if address.scope_id else address.ipv4_mapped or address
