"""Where pods with certain labels answer, on one node or on all: their addresses, by the API server."""

import ipaddress
import time
from collections import Counter
from collections.abc import Mapping

import msgspec

from podgpu.kube.apiserver import ApiFault, ApiServer
from podgpu.kube.pages import Page, pages
from podgpu.kube.pod_object import Label, Subdomain
from podgpu.model import Fault

LIST_SECONDS = 30.0  # between two looks for new pods
SOON = 10.0  # the same as long as there are none
PAGE = 500
MOST_PAGES = 100
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


class Endpoints:
    """Lists anew now and then. While the API server is away the last list holds.

    Anybody who may run a pod with these labels is believed, so better name the `namespace` they are in. Of too many
    on a node the oldest are asked: the real one is mostly there before anybody who pretends. Without a `node`, those of
    all nodes are.
    """

    def __init__(
        self, api: ApiServer, *, node: str | None, selector: str, namespace: str = "", port: int, path: str
    ) -> None:
        self._api = api
        self._node = node
        self._selector = selector
        self._namespace = namespace
        self._port = port
        self._path = path
        self._nodes: Mapping[str, str] = {}
        self._fault: Fault | None = None
        self._list_due = 0.0

    async def find(self) -> tuple[Mapping[str, str], Fault | None]:
        """Return the addresses, each with its node, and why there are none if there are none."""
        if time.monotonic() >= self._list_due:
            await self._look()
            self._list_due = time.monotonic() + (LIST_SECONDS if self._nodes else SOON)
        return self._nodes, None if self._nodes else self._fault

    async def close(self) -> None:
        await self._api.close()

    async def _look(self) -> None:
        try:
            self._nodes = self._chosen(await self._listed())
            self._fault = Fault(reason="no_exporter", detail=self._nobody())
        except ApiFault as fault:
            self._fault = Fault(reason=fault.reason, detail=f"API server: {fault.detail}")

    async def _listed(self) -> list[Item]:
        within = f"/namespaces/{self._namespace}" if self._namespace else ""
        there = "" if self._node is None else f"spec.nodeName={self._node},"
        query = {
            "labelSelector": self._selector,
            "fieldSelector": f"{there}status.phase=Running",
        }
        found = pages(
            self._api,
            f"/api/v1{within}/pods",
            Page[Item],
            query,
            size=PAGE,
            most=MOST_PAGES,
            freshness={"resourceVersion": "0"},
        )
        return [item async for page in found for item in page.items or ()]

    def _chosen(self, items: list[Item]) -> dict[str, str]:
        """Return addresses with their nodes, of each node only so many."""
        nodes: dict[str, str] = {}
        asked: Counter[str] = Counter()
        for item in sorted(filter(self._is_meant, items), key=lambda item: _age(item.metadata)):
            url, node = self._url(item), item.spec.node_name
            if url and url not in nodes and asked[node] < MOST_PODS:
                asked[node] += 1
                nodes[url] = node
        return nodes

    def _is_meant(self, item: Item) -> bool:
        """The server's cache may not have heard the question out; on another node there are other GPUs."""
        return (
            self._node in (None, item.spec.node_name)
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
        on = "any node" if self._node is None else f"node {self._node}"
        return f"no running pod with {self._selector} on {on}{where}"


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
