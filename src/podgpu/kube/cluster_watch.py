"""Watches the nodes, pods, resource claims and resource slices of the whole cluster, and finds the pods' workloads."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podgpu.kube.api import ApiServer
from podgpu.kube.object_cache import CachedObject, ObjectCache, ObjectMetadata, cached
from podgpu.kube.object_watch import ObjectWatch, PodWatch, WatchTiming
from podgpu.kube.pod_object import Subdomain
from podgpu.kube.resource_objects import ROOTS, SliceSpec, decode_claim, decode_slice, pool_devices, to_claim
from podgpu.kube.workloads import UNKNOWN_SECONDS, Workloads
from podgpu.model import KubeNode, KubeObjects, PartStatus, Pod, PoolDevice, ResourceClaim, Workload
from podgpu.supervise import Supervisor, Work

NODES = "/api/v1/nodes"
TIMING = WatchTiming(relist=3600.0)
LOOK_SECONDS = 0.2  # between two checks for changes
FIRST_LOOK_SECONDS = 0.01

INTERNAL = "InternalIP"
CORE, RESOURCE = '""', "resource.k8s.io"

T = TypeVar("T")


class NodeMetadata(ObjectMetadata, rename="camel", kw_only=True):
    name: Subdomain
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class NodeAddress(Struct):
    type: str = ""
    address: str = ""


class NodeCondition(Struct):
    type: str = ""
    status: str = ""


class NodeStatus(Struct):
    addresses: list[NodeAddress] | None = None
    conditions: list[NodeCondition] | None = None
    allocatable: dict[str, str | int] | None = None
    capacity: dict[str, str | int] | None = None


class NodeSpec(Struct):
    unschedulable: bool | None = None


class NodeObject(Struct):
    metadata: NodeMetadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


_decode_node = msgspec.json.Decoder(NodeObject).decode


class ObjectFilter(Struct, frozen=True, kw_only=True):
    """What to keep of the objects. `pod` cuts off the rest, or returns None for a pod that is not needed at all.

    `pod_annotations` are prefixes of names.
    """

    pod: Callable[[Pod], Pod | None]
    pod_annotations: tuple[str, ...]
    node_annotations: Collection[str]
    node_label: Callable[[str], bool]


def _node(wanted: ObjectFilter, data: bytes | msgspec.Raw) -> CachedObject[KubeNode] | None:
    item = _decode_node(data)
    metadata, status = item.metadata, item.status or NodeStatus()
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    node = KubeNode(
        name=metadata.name,
        address=next((entry.address for entry in status.addresses or () if entry.type == INTERNAL), ""),
        ready=_ready(status),
        cordoned=bool(item.spec and item.spec.unschedulable),
        labels={name: value for name, value in labels.items() if wanted.node_label(name)},
        annotations={name: value for name, value in annotations.items() if name in wanted.node_annotations},
        allocatable=_extended(status.allocatable),
        capacity=_extended(status.capacity),
    )
    return cached(metadata, node)


def _ready(status: NodeStatus) -> bool | None:
    ready = next((condition.status for condition in status.conditions or () if condition.type == "Ready"), "")
    return {"True": True, "False": False}.get(ready)


def _extended(resources: dict[str, str | int] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (resources or {}).items() if "/" in name}


def _claim(data: bytes | msgspec.Raw) -> CachedObject[ResourceClaim] | None:
    item = decode_claim(data)
    return cached(item.metadata, to_claim(item))


def _slice(data: bytes | msgspec.Raw) -> CachedObject[SliceSpec] | None:
    item = decode_slice(data)
    # A Raw is a view into the whole page; a copy frees the page.
    devices = [device.copy() for device in item.spec.devices or ()]
    return cached(item.metadata, replace(item.spec, devices=devices))


class SliceCache(ObjectCache[SliceSpec]):
    def __init__(self) -> None:
        super().__init__(_slice, lambda spec: (spec.driver, spec.pool.name, spec.node_name or ""))
        self._slices: tuple[SliceSpec, ...] = ()
        self._devices: tuple[PoolDevice, ...] = ()

    def devices(self) -> tuple[PoolDevice, ...]:
        """Return the same tuple for as long as nothing changes."""
        slices = self.items()
        if slices is not self._slices:
            self._slices, self._devices = slices, tuple(pool_devices(slices, self.errors))
        return self._devices


def grant(group: str, resource: str) -> str:
    rule = f'{{apiGroups: [{group}], resources: [{resource}], verbs: ["list", "watch"]}}'
    return f"add this rule to a ClusterRole of the account: {rule}"


class ClusterWatch:
    """A failure keeps the last lists and shows in `statuses`."""

    def __init__(
        self,
        api: ApiServer,
        wanted: ObjectFilter,
        *,
        workload_labels: Collection[str] = (),
        nearest_owner: bool = False,
        timing: WatchTiming = TIMING,
    ) -> None:
        self._api = api
        self._nodes = ObjectCache(partial(_node, wanted), lambda node: (node.name,))
        self._claims = ObjectCache(_claim, lambda claim: (claim.namespace, claim.name))
        self._slices = SliceCache()
        annotations, rule = wanted.pod_annotations, grant(CORE, "pods")
        self.pods = PodWatch(api, None, trim=wanted.pod, annotations=annotations, timing=timing, grant=rule)
        self.nodes = self._watch(self._nodes, [NODES], "nodes", CORE, timing)
        self._dynamic = tuple(
            self._watch(cache, [f"{root}/{plural}" for root in ROOTS], plural, RESOURCE, timing)
            for plural, cache in (("resourceclaims", self._claims), ("resourceslices", self._slices))
        )
        self._resolver = Workloads(api, name_labels=tuple(workload_labels), nearest=nearest_owner)
        self._workloads: dict[str, Workload] = {}
        self._objects = KubeObjects(at=0.0)

    def _watch(
        self, cache: ObjectCache[T], paths: Sequence[str], plural: str, group: str, timing: WatchTiming
    ) -> ObjectWatch[T]:
        rule = grant(group, plural)
        return ObjectWatch(self._api, paths, cache, name=plural, timing=timing, grant=rule, from_cache=False)

    @property
    def _watches(self) -> tuple[ObjectWatch[Any], ...]:
        return self.pods, self.nodes, *self._dynamic

    def statuses(self) -> tuple[PartStatus, ...]:
        """Return the status of each kind that this cluster has."""
        return tuple(watch.status() for watch in self._watches if not watch.is_absent)

    @property
    def is_complete(self) -> bool:
        """Whether every list was read, or cannot be."""
        return all(watch.has_listed or _has_failed(watch.status()) for watch in self._watches)

    def objects(self) -> KubeObjects:
        """Return the same objects for as long as nothing changes."""
        newest = KubeObjects(
            at=self._objects.at,
            nodes=self._nodes.items(),
            pods=self.pods.pods() or (),
            claims=self._claims.items(),
            devices=self._slices.devices(),
            workloads=self._workloads,
        )
        if not newest.at or newest != self._objects:
            self._objects = replace(newest, at=time.time())
        return self._objects

    async def changed(self, seen: KubeObjects) -> KubeObjects:
        """Return the newest objects once they differ from `seen`."""
        while (objects := self.objects()) is seen:  # noqa: ASYNC110 - as below
            await asyncio.sleep(LOOK_SECONDS)
        return objects

    async def complete(self) -> KubeObjects:
        """Return the objects once every list was read, or cannot be."""
        while not self.is_complete:  # noqa: ASYNC110 - several watches, none of which knows of the others
            await asyncio.sleep(FIRST_LOOK_SECONDS)
        return self.objects()

    async def run(self, supervisor: Supervisor) -> None:
        """Work until cancelled."""
        watches: list[tuple[str, Work]] = [(watch.name, watch.run) for watch in self._watches]
        await supervisor.run([*watches, (self._resolver.name, self._keep_workloads)])

    async def close(self) -> None:
        await self._resolver.close()

    async def _keep_workloads(self) -> None:
        """Ask for owners a few at a time: a thousand pods of a rollout have one owner, and a thousand jobs can wait."""
        seen: tuple[Pod, ...] = ()
        due = 0.0
        while True:
            pods = self.pods.pods() or ()
            if pods is not seen or time.monotonic() >= due:
                seen, workloads = pods, await self._resolver.resolve(pods)
                self._workloads = self._workloads if workloads == self._workloads else workloads
                due = time.monotonic() + (UNKNOWN_SECONDS if self._resolver.knows_all(pods) else LOOK_SECONDS)
            await asyncio.sleep(LOOK_SECONDS)


def _has_failed(status: PartStatus) -> bool:
    return status.fault is not None and status.fault.reason != "starting"
