"""The addresses of pods with certain labels, on one node or on all nodes, from the API server."""

import ipaddress
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

import msgspec

from podgpu.kube.api import ApiFault, ApiServer, ListPage, list_pages
from podgpu.kube.pod_object import Label, OwnerEntry, Subdomain
from podgpu.model import Fault

LIST_SECONDS = 30.0  # between two lists
RETRY_SECONDS = 10.0  # the same while no pod is found
LOOK_SECONDS = 300.0  # between two looks at the pods of other namespaces, while some are found in the right one
PAGE = 500
MOST_PAGES = 100
MOST_PODS = 4  # per node: usually there is a single pod, and a second while it is replaced
MOST_NAMED = 3
PORT_NAME = "metrics"
NONE_FOUND = "no_exporter"
NOT_BELIEVED = "not_believed"


class EndpointPort(msgspec.Struct, rename="camel"):
    container_port: int = 0
    name: str = ""


class EndpointContainer(msgspec.Struct):
    ports: list[EndpointPort] | None = None


class EndpointSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: list[EndpointContainer] | None = None


class EndpointStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")


class EndpointMetadata(msgspec.Struct, rename="camel"):
    name: Subdomain
    namespace: Label
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    owner_references: list[OwnerEntry] | None = None

    @property
    def daemon_set(self) -> str:
        """The name of the DaemonSet that runs the pod, if one does."""
        owners = self.owner_references or ()
        return next((owner.name for owner in owners if owner.controller and owner.kind == "DaemonSet"), "")


class EndpointPod(msgspec.Struct):
    metadata: EndpointMetadata
    spec: EndpointSpec = msgspec.field(default_factory=EndpointSpec)
    status: EndpointStatus = msgspec.field(default_factory=EndpointStatus)


@dataclass(eq=False)
class Endpoints:
    """Lists the pods from time to time. While the API server does not answer, the last list holds.

    Any tenant can write labels. A pod may speak for its node only if a DaemonSet runs it in the `namespace`, the one
    called `daemon_set` if that is given. Other pods with the labels are named in the fault. If a node has too many, the
    oldest are used. Without a `node`, the pods of all nodes are used. `port` is for
    pods that have no port called `port_name`, or with `fixed` for all. With `proxied`, the addresses are paths of the
    API server, which passes requests on to the pods.
    """

    api: ApiServer
    _: KW_ONLY
    node: str | None
    selector: str
    namespace: str
    daemon_set: str = ""
    port: int
    path: str
    port_name: str = PORT_NAME
    fixed: bool = False
    proxied: bool = False
    scheme: str = "http"
    _nodes: Mapping[str, str] = field(init=False, default_factory=dict)
    _fault: Fault | None = field(init=False, default=None)
    _list_due: float = field(init=False, default=0.0)
    _look_due: float = field(init=False, default=0.0)
    _not_believed: str = field(init=False, default="")

    async def find(self) -> tuple[Mapping[str, str], Fault | None]:
        """Return the addresses, each with its node, and a fault if there are none or others pretend to be some."""
        if time.monotonic() >= self._list_due:
            await self._relist()
            self._list_due = time.monotonic() + (LIST_SECONDS if self._nodes else RETRY_SECONDS)
        return self._nodes, self._fault

    async def close(self) -> None:
        await self.api.close()

    async def _relist(self) -> None:
        try:
            self._nodes = self._chosen(await self._listed(self.namespace))
            if not self._nodes or time.monotonic() >= self._look_due:
                self._not_believed = await self._others()
                self._look_due = time.monotonic() + LOOK_SECONDS
        except ApiFault as fault:
            if not self._nodes:
                self._fault = Fault(reason=fault.reason, detail=f"API server: {fault.detail}")
            return
        reason = NOT_BELIEVED if self._not_believed else NONE_FOUND
        missing = "" if self._nodes else self._none_found()
        detail = "; ".join(filter(None, (missing, self._not_believed)))
        self._fault = Fault(reason=reason, detail=detail) if detail else None

    async def _listed(self, namespace: str) -> list[EndpointPod]:
        """List the pods of a namespace, or of all."""
        within = f"/namespaces/{namespace}" if namespace else ""
        on_node = "" if self.node is None else f"spec.nodeName={self.node},"
        query = {"labelSelector": self.selector, "fieldSelector": f"{on_node}status.phase=Running"}
        pages = list_pages(
            self.api,
            f"/api/v1{within}/pods",
            ListPage[EndpointPod],
            query,
            size=PAGE,
            most=MOST_PAGES,
            # From its cache the server sends a list in one piece, which for all nodes may be too large.
            freshness=None if self.node is None else {"resourceVersion": "0"},
        )
        return [item async for page in pages for item in page.items or ()]

    def _chosen(self, items: list[EndpointPod]) -> dict[str, str]:
        """Return addresses with their nodes, at most MOST_PODS per node."""
        nodes: dict[str, str] = {}
        chosen: Counter[str] = Counter()
        believed = (item for item in items if self._is_running(item) and self._may_speak(item))
        for item in sorted(believed, key=lambda item: _age(item.metadata)):
            url, node = self._url(item), item.spec.node_name
            if url and url not in nodes and chosen[node] < MOST_PODS:
                chosen[node] += 1
                nodes[url] = node
        return nodes

    def _may_speak(self, item: EndpointPod) -> bool:
        metadata = item.metadata
        runs_it = metadata.daemon_set == self.daemon_set if self.daemon_set else metadata.daemon_set != ""
        return runs_it and metadata.namespace == self.namespace

    def _is_running(self, item: EndpointPod) -> bool:
        """Check again: the server answers from a cache that may be outdated, and other nodes have other GPUs."""
        return (
            self.node in (None, item.spec.node_name)
            and item.status.phase == "Running"
            and item.metadata.deletion_timestamp is None
        )

    def _url(self, item: EndpointPod) -> str:
        """Return the pod's address, or nothing if it would not lead to the pod but, for example, to ourselves."""
        port = self.port if self.fixed else self._own_port(item) or self.port
        if self.proxied:
            pods = f"/api/v1/namespaces/{item.metadata.namespace}/pods"
            secured = "https:" if self.scheme == "https" else ""
            return f"{pods}/{secured}{item.metadata.name}:{port}/proxy{self.path}"
        address = _address(item.status.pod_ip)
        if address is None or any(
            (address.is_loopback, address.is_unspecified, address.is_multicast, address.is_link_local)
        ):
            return ""
        host = f"[{address}]" if address.version == 6 else str(address)
        return f"{self.scheme}://{host}:{port}{self.path}"

    def _own_port(self, item: EndpointPod) -> int:
        ports = [port for container in item.spec.containers or () for port in container.ports or ()]
        named = (port.container_port for port in ports if port.name == self.port_name)
        return next((port for port in named if 0 < port < 1 << 16), 0)

    def _none_found(self) -> str:
        on = "any node" if self.node is None else f"node {self.node}"
        owner = f"DaemonSet {self.daemon_set}" if self.daemon_set else "a DaemonSet"
        return f"no running pod with {self.selector} of {owner} on {on} in namespace {self.namespace}"

    async def _others(self) -> str:
        """Name the pods that have the labels and are not used: they may be the user's, or pretend to be."""
        try:
            listed = await self._listed("")
        except ApiFault:  # the account may have rights in this namespace alone
            return ""
        others = [item.metadata for item in listed if self._is_running(item) and not self._may_speak(item)]
        names = sorted({f"{metadata.namespace}/{metadata.daemon_set or metadata.name}" for metadata in others})
        if not names:
            return ""
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return f"{', '.join(names[:MOST_NAMED])}{more} have these labels and are not asked"


def _age(metadata: EndpointMetadata) -> tuple[str, str, str]:
    return metadata.creation_timestamp, metadata.namespace, metadata.name


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return None for text that is no address, and for an address with a zone, which no pod has. IPv6 may wrap IPv4."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return address
    return None if address.scope_id else address.ipv4_mapped or address
