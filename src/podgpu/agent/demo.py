"""The demo's Kubernetes: pods, device ids and owners for the simulator's tenants."""

from collections import Counter
from collections.abc import Iterable, Iterator
from uuid import NAMESPACE_OID, uuid5

from msgspec import Struct

from podgpu.agent.attribution import Attribution
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
from podgpu.sources.simulator import CARDS, Card, Resident

REPLICAS = 4
UNITS, UNITS_EACH = 140, 40  # GiB of a card, and what each gpushare pod asked for
HAMI_MIB, HAMI_CORES = 40_960, 30  # what each HAMi pod asked for
WORKLOADS = {
    "chat": "Deployment",
    "embed": "Deployment",
    "rerank": "Deployment",
    "guard": "Deployment",
    "score-nightly": "CronJob",
    "finetune": "Job",
    "pretrain": "Job",
    "ocr": "StatefulSet",
    "asr": "StatefulSet",
}


class Given(Struct, frozen=True):
    devices: tuple[Allocation, ...]
    allocatable: tuple[tuple[str, str], ...]
    dynamic: tuple[DynamicAllocation, ...] = ()


def demo_attribution(interval: float, pod_labels: Iterable[str]) -> Attribution:
    pods = DemoPods()
    return Attribution(
        interval=interval,
        allocations=DemoKubelet(),
        pod_sources=[pods],
        processes=DemoProcesses(),
        workloads=pods,
        pod_labels=tuple(pod_labels),
    )


class DemoKubelet:
    name = "podresources"

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()

    async def read(self) -> Given:
        return Given(tuple(_allocations()), tuple(_offered()))

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)


class DemoPods:
    name = "pods-api"

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()

    async def run(self) -> None:
        return

    def pods(self) -> tuple[Pod, ...]:
        found = {resident.tenant: _pod(card, resident) for card, resident in _tenants()}
        return tuple(found.values())

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)

    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]:
        return {pod.uid: _workload(pod.name) for pod in pods}


class DemoProcesses:
    def holders(self, pids: Iterable[int]) -> dict[int, Holder]:
        residents = {resident.pid: resident for card in CARDS for resident in card.residents}
        return {pid: _holder(residents[pid]) for pid in pids if pid in residents}

    def fault(self) -> Fault | None:
        return None


def _tenants() -> Iterator[tuple[Card, Resident]]:
    for card in CARDS:
        for resident in card.residents:
            if not resident.tenant.startswith("host:"):
                yield card, resident


def _allocations() -> Iterator[Allocation]:
    """Device ids per tenant and card, in the form of the card's sharing system."""
    seen: dict[tuple[int, str], None] = {}
    for card, resident in _tenants():
        if (card.index, resident.tenant) in seen:
            continue
        replica = sum(index == card.index for index, _ in seen)
        seen[card.index, resident.tenant] = None
        namespace, pod, container = resident.tenant.split("/")
        for resource, device_id in _device_ids(card, resident, replica):
            yield Allocation(
                namespace=namespace, pod=pod, container=container, resource=resource, device_id=device_id
            )


def _device_ids(card: Card, resident: Resident, replica: int) -> list[tuple[str, str]]:
    if card.sharing == "exclusive":
        return [("nvidia.com/gpu", card.uuid)]
    if card.sharing == "mig" and resident.instance is not None:
        return [("nvidia.com/mig", card.slice_uuid(resident.instance))]
    if card.sharing == "gpushare":
        first = replica * UNITS_EACH
        return [("aliyun.com/gpu-mem", f"{card.uuid}-_-{unit}") for unit in range(first, first + UNITS_EACH)]
    if card.sharing == "hami":
        return [("nvidia.com/gpu", f"{card.uuid}-{replica}")]
    if card.sharing == "time-slicing":
        return [("nvidia.com/gpu.shared", f"{card.uuid}::{replica}")]
    return []


def _offered() -> Iterator[tuple[str, str]]:
    for card in CARDS:
        if card.sharing == "gpushare":
            yield from (("aliyun.com/gpu-mem", f"{card.uuid}-_-{unit}") for unit in range(UNITS))
        if card.sharing == "time-slicing":
            yield from (("nvidia.com/gpu.shared", f"{card.uuid}::{number}") for number in range(REPLICAS))


def _pod(card: Card, resident: Resident) -> Pod:
    namespace, name, container = resident.tenant.split("/")
    note = f"{card.uuid},NVIDIA,{HAMI_MIB},{HAMI_CORES}:;"
    return Pod(
        namespace=namespace,
        name=name,
        uid=_uid(resident.tenant),
        phase="Running",
        labels={"app": _workload(name).name},
        annotations={"hami.io/vgpu-devices-allocated": note} if card.sharing == "hami" else {},
        containers=(PodContainer(name=container, container_id=_container_id(resident.tenant), running=True),),
    )


def _workload(pod: str) -> Workload:
    stem = next((stem for stem in WORKLOADS if pod.startswith(f"{stem}-")), "")
    return Workload(kind=WORKLOADS[stem], name=stem) if stem else Workload(kind="Pod", name=pod)


def _holder(resident: Resident) -> Holder:
    if resident.tenant.startswith("host:"):
        return Holder(
            pid=resident.pid, kind="host", start_time=0, cgroup="0::/system.slice/video-index.service"
        )
    namespace, pod, container = resident.tenant.split("/")
    uid, container_id = _uid(resident.tenant), _container_id(resident.tenant)
    slice_ = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
    return Holder(
        pid=resident.pid,
        kind="pod",
        start_time=100 * resident.pid,
        owner=Owner(pod_uid=uid, container_id=container_id, runtime="containerd", qos="burstable"),
        container=ContainerRef(namespace, pod, container, uid),
        cgroup=f"0::/kubepods.slice/kubepods-burstable.slice/{slice_}/cri-containerd-{container_id}.scope",
    )


def _uid(tenant: str) -> str:
    return str(uuid5(NAMESPACE_OID, f"podgpu demo {tenant}"))


def _container_id(tenant: str) -> str:
    return (uuid5(NAMESPACE_OID, f"{tenant} 1").hex + uuid5(NAMESPACE_OID, f"{tenant} 2").hex)[:64]
