"""Keeps what the API server knows of the whole cluster up to date: one watch per kind, and nothing else."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from podgpu.kube.api import Api
from podgpu.kube.object_cache import ObjectCache
from podgpu.kube.object_watch import ObjectWatch, WatchTiming
from podgpu.kube.pod_watch import PodWatch
from podgpu.kube.whole.books import ClaimBook, NodeBook, SliceBook
from podgpu.kube.workloads import UNKNOWN_SECONDS, Workloads
from podgpu.model import KubeObjects, PartStatus, Pod, Workload
from podgpu.supervise import Supervisor, Work

NODES = "/api/v1/nodes"
DYNAMIC = [f"/apis/resource.k8s.io/{version}" for version in ("v1", "v1beta2", "v1beta1")]
TIMING = WatchTiming(relist=3600.0)
LOOK_SECONDS = 0.2  # between two looks at whether anything has changed
FIRST_LOOK_SECONDS = 0.01
OWNER_SECONDS = 86_400.0  # the owner of a UID never changes

CORE, RESOURCE = '""', "resource.k8s.io"

T = TypeVar("T")


def grant(group: str, resource: str) -> str:
    rule = f'{{apiGroups: [{group}], resources: [{resource}], verbs: ["list", "watch"]}}'
    return f"add this rule to a ClusterRole of the account: {rule}"


class Wanted(Struct, frozen=True, kw_only=True):
    """What of the objects is needed. `pod` cuts off what is not, or returns None for a pod that nobody needs.

    `notes` are prefixes of the annotations of pods to keep.
    """

    pod: Callable[[Pod], Pod | None]
    notes: tuple[str, ...]
    node_annotations: Collection[str]
    node_label: Callable[[str], bool]


class ClusterReader:
    """A failure keeps the last lists and shows in `statuses`."""

    def __init__(
        self,
        api: Api,
        wanted: Wanted,
        *,
        workload_labels: Collection[str] = (),
        nearest_owner: bool = False,
        timing: WatchTiming = TIMING,
    ) -> None:
        self._api = api
        self._nodes, self._claims, self._slices = (
            NodeBook(wanted.node_annotations, wanted.node_label),
            ClaimBook(),
            SliceBook(),
        )
        self.pods = PodWatch(
            api, None, trim=wanted.pod, notes=wanted.notes, timing=timing, grant=grant(CORE, "pods")
        )
        self.nodes = self._watch(self._nodes, [NODES], "nodes", CORE, timing)
        self._dynamic = tuple(
            self._watch(book, [f"{root}/{plural}" for root in DYNAMIC], plural, RESOURCE, timing)
            for plural, book in (("resourceclaims", self._claims), ("resourceslices", self._slices))
        )
        self._workloads = Workloads(
            api, name_labels=tuple(workload_labels), nearest=nearest_owner, known_seconds=OWNER_SECONDS
        )
        self._owners: dict[str, Workload] = {}
        self._made: KubeObjects | None = None

    def _watch(
        self, book: ObjectCache[T], paths: Sequence[str], plural: str, group: str, timing: WatchTiming
    ) -> ObjectWatch[T]:
        rule = grant(group, plural)
        return ObjectWatch(self._api, paths, book, name=plural, timing=timing, grant=rule, from_cache=False)

    @property
    def _watches(self) -> tuple[ObjectWatch[Any], ...]:
        return self.pods, self.nodes, *self._dynamic

    def statuses(self) -> tuple[PartStatus, ...]:
        """List those of the parts that this cluster has."""
        return tuple(one.status() for one in self._watches if not one.is_absent)

    @property
    def is_complete(self) -> bool:
        """Whether every list was read, or cannot be."""
        return all(one.has_listed or _has_failed(one.status()) for one in self._watches)

    def objects(self) -> KubeObjects:
        """Return the same objects for as long as nothing changes."""
        pods, nodes = self.pods.pods() or (), self._nodes.items()
        claims, devices = self._claims.items(), self._slices.devices()
        made = self._made
        if made is None or (made.pods, made.nodes, made.claims, made.devices, made.workloads) != (
            pods, nodes, claims, devices, self._owners,
        ):  # fmt: skip
            self._made = made = KubeObjects(
                at=time.time(),
                nodes=nodes,
                pods=pods,
                claims=claims,
                devices=devices,
                workloads=dict(self._owners),
            )
        return made

    async def changed(self, seen: KubeObjects) -> KubeObjects:
        """Return the newest objects once they are others than `seen`."""
        while (found := self.objects()) is seen:  # noqa: ASYNC110 - as below
            await asyncio.sleep(LOOK_SECONDS)
        return found

    async def complete(self) -> KubeObjects:
        """Return the objects once every list was read, or cannot be."""
        while not self.is_complete:  # noqa: ASYNC110 - several watches, none of which knows of the others
            await asyncio.sleep(FIRST_LOOK_SECONDS)
        return self.objects()

    async def run(self, supervisor: Supervisor) -> None:
        """Work until cancelled."""
        watches: list[tuple[str, Work]] = [(one.name, one.run) for one in self._watches]
        await supervisor.run([*watches, (self._workloads.name, self._keep_owners)])

    async def close(self) -> None:
        await self._workloads.close()

    async def _keep_owners(self) -> None:
        """Ask for owners a few at a time: a thousand pods of a rollout have one owner, and a thousand jobs can wait."""
        seen: tuple[Pod, ...] = ()
        due = 0.0
        while True:
            pods = self.pods.pods() or ()
            if pods is not seen or time.monotonic() >= due:
                seen, self._owners = pods, await self._workloads.resolve(pods)
                is_over = self._workloads.knows_all(pods)
                due = time.monotonic() + (UNKNOWN_SECONDS if is_over else LOOK_SECONDS)
            await asyncio.sleep(LOOK_SECONDS)


def _has_failed(status: PartStatus) -> bool:
    return status.fault is not None and status.fault.reason != "starting"
