"""The demo's Kubernetes: pods, device ids and owners for the simulator's tenants, as demo.yaml has them."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from uuid import NAMESPACE_OID, uuid5

import msgspec
from msgspec import Struct

from podgpu.catalog import agent_parts
from podgpu.model import (
    Allocation,
    ContainerRef,
    DynamicAllocation,
    Fault,
    Holder,
    Owner,
    PartStatus,
    Pod,
    PodContainer,
    Workload,
)
from podgpu.sources.simulator.scenario import CARDS, SimulatedProcess

_UUID = re.compile(r"\{card (?P<card>\d+)(?: instance (?P<instance>\d+))?\}")
_RANGE = re.compile(r"\{(?P<first>\d+)\.\.(?P<last>\d+)\}")


class DemoAllocations(Struct, frozen=True):
    devices: tuple[Allocation, ...]
    allocatable: tuple[tuple[str, str], ...]
    dynamic: tuple[DynamicAllocation, ...] = ()
    awaited: frozenset[tuple[str, str]] = frozenset()


ADDRESS = "192.0.2.10"  # reserved for documentation
_LOADING_SECONDS = 20.0  # from the start of a pod to that of its process on the card


class ScriptedPod(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`workload` is KIND/NAME, `team` the value of the label of that name.

    `hours` is for how long it has run when the demo starts.
    """

    team: str
    hours: float
    workload: str = ""
    annotations: dict[str, str] = {}


class ScriptedDevice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`to` is the NAMESPACE/POD/CONTAINER that the device is allocated to, if any."""

    resource: str
    id: str
    to: str = ""


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What demo.yaml holds. The keys of `pods` are NAMESPACE/POD."""

    pods: dict[str, ScriptedPod]
    allocated: tuple[ScriptedDevice, ...]
    allocatable: tuple[ScriptedDevice, ...]


class DemoPart:
    """A part of the agent that never fails."""

    name: str

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)


class DemoKubelet(DemoPart):
    name = agent_parts.PODRESOURCES.name

    async def read(self) -> DemoAllocations:
        return _allocations()


class DemoPods(DemoPart):
    name = agent_parts.PODS_API.name

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._started_at = wall()

    async def run(self) -> None:
        return

    def pods(self) -> tuple[Pod, ...]:
        return tuple(
            _pod(tenant, self._started_at) for tenant in dict.fromkeys(device.to for device in script().allocated)
        )

    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]:
        return {pod.uid: _workload(pod.namespace, pod.name) for pod in pods}


class DemoProcesses:
    name = agent_parts.PROCFS.name

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._started_at = wall()

    def holders(self, pids: Iterable[int], seen_at: Mapping[int, float]) -> dict[int, Holder]:
        simulated = {process.pid: process for card in CARDS for process in card.processes}
        return {pid: _holder(simulated[pid], self._started_at) for pid in pids if pid in simulated}

    def mps(self, holders: Iterable[Holder]) -> dict[int, str | None]:
        return {}

    def fault(self) -> Fault | None:
        return None


@cache
def script() -> Script:
    return msgspec.yaml.decode(files(__package__).joinpath("demo.yaml").read_bytes(), type=Script)


@cache
def _allocations() -> DemoAllocations:
    devices = (_allocation(device, id_) for device in script().allocated for id_ in _ids(device.id))
    allocatable = ((device.resource, id_) for device in script().allocatable for id_ in _ids(device.id))
    return DemoAllocations(tuple(devices), tuple(allocatable))


def _allocation(device: ScriptedDevice, device_id: str) -> Allocation:
    namespace, pod, container = device.to.split("/")
    return Allocation(namespace=namespace, pod=pod, container=container, resource=device.resource, device_id=device_id)


def _ids(pattern: str) -> Iterator[str]:
    """Write out a range, if there is one."""
    named = _named(pattern)
    found = _RANGE.search(named)
    numbers = range(int(found["first"]), int(found["last"]) + 1) if found else ("",)
    return (_RANGE.sub(str(number), named) for number in numbers)


def _named(pattern: str) -> str:
    """Put UUIDs where cards and instances are named."""
    return _UUID.sub(lambda found: _uuid(int(found["card"]), found["instance"]), pattern)


def _uuid(index: int, instance: str | None) -> str:
    card = CARDS[index]
    return card.uuid if instance is None else card.instance_uuid(int(instance))


def _pod(tenant: str, demo_started_at: float) -> Pod:
    namespace, name, container = tenant.split("/")
    scripted = script().pods[f"{namespace}/{name}"]
    image = f"registry.example/{_workload(namespace, name).name}:1"
    return Pod(
        namespace=namespace,
        name=name,
        uid=_uid(tenant),
        phase="Running",
        started_at=_pod_start(f"{namespace}/{name}", demo_started_at),
        labels={"app": _workload(namespace, name).name, "team": scripted.team},
        annotations={key: _named(note) for key, note in scripted.annotations.items()},
        host_ip=ADDRESS,
        qos="burstable",
        containers=(PodContainer(name=container, container_id=_container_id(tenant), image=image, running=True),),
    )


def _pod_start(pod: str, demo_started_at: float) -> float:
    return demo_started_at - script().pods[pod].hours * 3600


def _workload(namespace: str, pod: str) -> Workload:
    scripted = script().pods[f"{namespace}/{pod}"]
    kind, _, name = (scripted.workload or f"Pod/{pod}").partition("/")
    return Workload(kind=kind, name=name)


def _holder(process: SimulatedProcess, demo_started_at: float) -> Holder:
    if process.tenant.startswith("host:"):
        return Holder(pid=process.pid, kind="host", start_time=0, cgroup="0::/system.slice/video-index.service")
    namespace, pod, container = process.tenant.split("/")
    uid, container_id = _uid(process.tenant), _container_id(process.tenant)
    slice_ = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
    return Holder(
        pid=process.pid,
        kind="pod",
        start_time=100 * process.pid,
        started_at=_pod_start(f"{namespace}/{pod}", demo_started_at) + _LOADING_SECONDS,
        owner=Owner(pod_uid=uid, container_id=container_id, runtime="containerd", qos="burstable"),
        container=ContainerRef(namespace, pod, container, uid),
        cgroup=f"0::/kubepods.slice/kubepods-burstable.slice/{slice_}/cri-containerd-{container_id}.scope",
    )


def _uid(tenant: str) -> str:
    return str(uuid5(NAMESPACE_OID, f"podgpu demo {tenant}"))


def _container_id(tenant: str) -> str:
    return (uuid5(NAMESPACE_OID, f"{tenant} 1").hex + uuid5(NAMESPACE_OID, f"{tenant} 2").hex)[:64]
