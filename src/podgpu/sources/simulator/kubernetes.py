"""The demo's Kubernetes: the pods, device ids and owners in demo.yaml, for the processes of the simulator."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from uuid import NAMESPACE_OID, uuid5

import msgspec
from msgspec import Struct

from podgpu.catalog import parts
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
from podgpu.sources.simulator.cast import CARDS
from podgpu.sources.simulator.layout import SimulatedProcess

_UUID = re.compile(r"\{card (?P<card>\d+)(?: instance (?P<instance>\d+))?\}")
_RANGE = re.compile(r"\{(?P<first>\d+)\.\.(?P<last>\d+)\}")


class Given(Struct, frozen=True):
    devices: tuple[Allocation, ...]
    allocatable: tuple[tuple[str, str], ...]
    dynamic: tuple[DynamicAllocation, ...] = ()


class ScriptedPod(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`workload` is KIND/NAME."""

    workload: str = ""
    annotations: dict[str, str] = {}


class ScriptedDevice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`to` is NAMESPACE/POD/CONTAINER, or empty if no container has the device."""

    resource: str
    id: str
    to: str = ""


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of demo.yaml. The keys of `pods` are NAMESPACE/POD."""

    pods: dict[str, ScriptedPod]
    given: tuple[ScriptedDevice, ...]
    allocatable: tuple[ScriptedDevice, ...]


class DemoKubelet:
    name = parts.PODRESOURCES.name

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()

    async def read(self) -> Given:
        return _given()

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)


class DemoPods:
    name = parts.PODS_API.name

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()

    async def run(self) -> None:
        return

    def pods(self) -> tuple[Pod, ...]:
        processes = (process for card in CARDS for process in card.processes)
        tenants = dict.fromkeys(one.tenant for one in processes if not one.tenant.startswith("host:"))
        return tuple(map(_pod, tenants))

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)

    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]:
        return {pod.uid: _workload(pod.namespace, pod.name) for pod in pods}


class DemoProcesses:
    name = parts.PROCFS.name

    def holders(self, pids: Iterable[int]) -> dict[int, Holder]:
        processes = {process.pid: process for card in CARDS for process in card.processes}
        return {pid: _holder(processes[pid]) for pid in pids if pid in processes}

    def fault(self) -> Fault | None:
        return None


@cache
def script() -> Script:
    return msgspec.yaml.decode(files(__package__).joinpath("demo.yaml").read_bytes(), type=Script)


@cache
def _given() -> Given:
    devices = (_allocation(one, each) for one in script().given for each in _ids(one.id))
    offered = ((one.resource, each) for one in script().allocatable for each in _ids(one.id))
    return Given(tuple(devices), tuple(offered))


def _allocation(device: ScriptedDevice, device_id: str) -> Allocation:
    namespace, pod, container = device.to.split("/")
    return Allocation(
        namespace=namespace, pod=pod, container=container, resource=device.resource, device_id=device_id
    )


def _ids(pattern: str) -> Iterator[str]:
    """Yield an id for each number of the range, or a single id if there is no range."""
    named = _named(pattern)
    found = _RANGE.search(named)
    numbers = range(int(found["first"]), int(found["last"]) + 1) if found else ("",)
    return (_RANGE.sub(str(number), named) for number in numbers)


def _named(pattern: str) -> str:
    """Replace the names of cards and instances by their UUIDs."""
    return _UUID.sub(lambda found: _uuid(int(found["card"]), found["instance"]), pattern)


def _uuid(index: int, instance: str | None) -> str:
    card = CARDS[index]
    return card.uuid if instance is None else card.slice_uuid(int(instance))


def _pod(tenant: str) -> Pod:
    namespace, name, container = tenant.split("/")
    scripted = script().pods.get(f"{namespace}/{name}", ScriptedPod())
    return Pod(
        namespace=namespace,
        name=name,
        uid=_uid(tenant),
        phase="Running",
        labels={"app": _workload(namespace, name).name},
        annotations={key: _named(note) for key, note in scripted.annotations.items()},
        containers=(PodContainer(name=container, container_id=_container_id(tenant), running=True),),
    )


def _workload(namespace: str, pod: str) -> Workload:
    scripted = script().pods.get(f"{namespace}/{pod}", ScriptedPod())
    kind, _, name = (scripted.workload or f"Pod/{pod}").partition("/")
    return Workload(kind=kind, name=name)


def _holder(process: SimulatedProcess) -> Holder:
    if process.tenant.startswith("host:"):
        return Holder(
            pid=process.pid, kind="host", start_time=0, cgroup="0::/system.slice/video-index.service"
        )
    namespace, pod, container = process.tenant.split("/")
    uid, container_id = _uid(process.tenant), _container_id(process.tenant)
    slice_ = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
    return Holder(
        pid=process.pid,
        kind="pod",
        start_time=100 * process.pid,
        owner=Owner(pod_uid=uid, container_id=container_id, runtime="containerd", qos="burstable"),
        container=ContainerRef(namespace, pod, container, uid),
        cgroup=f"0::/kubepods.slice/kubepods-burstable.slice/{slice_}/cri-containerd-{container_id}.scope",
    )


def _uid(tenant: str) -> str:
    return str(uuid5(NAMESPACE_OID, f"podgpu demo {tenant}"))


def _container_id(tenant: str) -> str:
    return (uuid5(NAMESPACE_OID, f"{tenant} 1").hex + uuid5(NAMESPACE_OID, f"{tenant} 2").hex)[:64]
