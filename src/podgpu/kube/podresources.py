"""What the kubelet gave to whom: its pod-resources socket. It knows names, not UIDs."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from msgspec import Struct

from podgpu.kube import kubelet_socket
from podgpu.kube._gen.podresources_pb2 import AllocatableResponse, DeviceEntry, ListResponse
from podgpu.kube.condition import Condition
from podgpu.model import Allocation, DynamicAllocation, PartStatus

LIST = "/v1.PodResourcesLister/List"
OLD_LIST = "/v1alpha1.PodResourcesLister/List"  # same numbers, fewer fields
ALLOCATABLE = "/v1.PodResourcesLister/GetAllocatableResources"
ALLOCATABLE_SECONDS = 60.0
LONGEST_PAUSE = 30.0

_ID = re.compile(rb"[\x21-\x7e]{1,253}")
_NAME = re.compile(rb"[\x21-\x7e]{1,317}")  # a resource's name: a domain, a slash and a word


class Allocated(Struct, frozen=True, kw_only=True):
    """`allocatable` are (resource, device id) pairs: the healthy devices, given to somebody or not."""

    devices: tuple[Allocation, ...] = ()
    dynamic: tuple[DynamicAllocation, ...] = ()
    allocatable: tuple[tuple[str, str], ...] = ()


class PodResources:
    """A failure keeps the last map and shows in `status`."""

    name = "podresources"

    def __init__(
        self, kubelet: Path, *, deadline: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._socket = kubelet / "pod-resources" / "kubelet.sock"
        self._deadline = deadline
        self._clock = clock
        self._allocated = Allocated()
        self._condition = Condition(self.name, clock=clock)
        self.errors = self._condition.errors
        self._asked = LIST
        self._allocatable_at: float | None = None
        self._pause = 0.0
        self._resume_at = 0.0

    async def read(self) -> Allocated:
        """Ask the kubelet, at most `deadline` long. While it limits our rate, return what is known."""
        started = self._clock()
        if self._pause and started < self._resume_at:
            return self._allocated
        try:
            async with asyncio.timeout(self._deadline):
                await self._refresh()
        except Exception as error:
            self._note(error)
        else:
            self._pause = 0.0
        self._condition.seconds = self._clock() - started
        return self._allocated

    def status(self) -> PartStatus:
        return self._condition.status()

    async def close(self) -> None:
        """Nothing is held between two readings."""

    async def _refresh(self) -> None:
        current, answer = await self._list()
        devices = tuple(_allocations(self._texts(_given(answer))))
        dynamic = tuple(_dynamic_allocations(self._texts(_claimed(answer))))
        changed = (devices, dynamic) != (self._allocated.devices, self._allocated.dynamic)
        self._allocated = msgspec.structs.replace(self._allocated, devices=devices, dynamic=dynamic)
        self._condition.worked()
        if current and (changed or self._allocatable_due()):
            await self._refresh_allocatable()

    async def _list(self) -> tuple[bool, ListResponse]:
        """Return whether the kubelet speaks v1, and its answer."""
        try:
            return True, ListResponse.FromString(await self._ask(LIST))
        except GRPCError as error:
            if error.status is not Status.UNIMPLEMENTED:
                raise
        return False, ListResponse.FromString(await self._ask(OLD_LIST))

    async def _ask(self, method: str) -> bytes:
        self._asked = method
        return await kubelet_socket.answer(self._socket, method)

    def _allocatable_due(self) -> bool:
        return self._allocatable_at is None or self._clock() - self._allocatable_at >= ALLOCATABLE_SECONDS

    async def _refresh_allocatable(self) -> None:
        """Without this answer the map is whole, so its failure is counted and takes nothing down."""
        self._allocatable_at = self._clock()
        try:
            answer = AllocatableResponse.FromString(await self._ask(ALLOCATABLE))
        except Exception as error:
            self.errors[kubelet_socket.fault(error, ALLOCATABLE).reason] += 1
            return
        rows = self._texts(_pairs(answer.devices))
        pairs = tuple((resource, device_id) for resource, device_id in rows)
        self._allocated = msgspec.structs.replace(
            self._allocated, allocatable=(*pairs, *self._awaited(pairs))
        )

    def _awaited(self, offered: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
        """List what plugins offered that have not registered again after a kubelet's restart, but are in use."""
        silent = {each.resource for each in self._allocated.devices} - {resource for resource, _ in offered}
        return [pair for pair in self._allocated.allocatable if pair[0] in silent]

    def _note(self, error: Exception) -> None:
        fault = kubelet_socket.fault(error, self._asked)
        self._condition.failed(fault)
        if fault.reason == "rate_limited":
            self._pause = min(2 * self._pause or 1.0, LONGEST_PAUSE)
            self._resume_at = self._clock() + self._pause

    def _texts(self, rows: Iterable[tuple[bytes, ...]]) -> list[tuple[str, ...]]:
        """Sort rows, each once: the kubelet lists a device once per NUMA node, in random order."""
        distinct = set(rows)
        sound = sorted(row for row in distinct if _sound(row))
        if len(sound) < len(distinct):
            self.errors["bad_id"] += len(distinct) - len(sound)
        return [tuple(each.decode("ascii") for each in row) for row in sound]


def _sound(row: tuple[bytes, ...]) -> bool:
    *names, device_id = row
    return _ID.fullmatch(device_id) is not None and all(_NAME.fullmatch(name) for name in names)


def _given(answer: ListResponse) -> Iterator[tuple[bytes, ...]]:
    for pod in answer.pods:
        for container in pod.containers:
            owner = pod.namespace, pod.name, container.name
            yield from ((*owner, resource, each_id) for resource, each_id in _pairs(container.devices))


def _pairs(devices: Iterable[DeviceEntry]) -> Iterator[tuple[bytes, bytes]]:
    return ((each.resource, device_id) for each in devices for device_id in each.ids)


def _claimed(answer: ListResponse) -> Iterator[tuple[bytes, ...]]:
    for pod in answer.pods:
        for container in pod.containers:
            owner = pod.namespace, pod.name, container.name
            for claim in container.claims:
                for each in claim.devices:
                    if each.device:  # a kubelet before 1.31 names only the claim
                        yield *owner, claim.namespace, claim.name, each.driver, each.pool, each.device


def _allocations(rows: Iterable[tuple[str, ...]]) -> Iterator[Allocation]:
    for namespace, pod, container, resource, device_id in rows:
        yield Allocation(
            namespace=namespace, pod=pod, container=container, resource=resource, device_id=device_id
        )


def _dynamic_allocations(rows: Iterable[tuple[str, ...]]) -> Iterator[DynamicAllocation]:
    for namespace, pod, container, claim_namespace, claim_name, driver, pool, device in rows:
        yield DynamicAllocation(
            namespace=namespace,
            pod=pod,
            container=container,
            claim_namespace=claim_namespace,
            claim_name=claim_name,
            driver=driver,
            pool=pool,
            device=device,
        )
