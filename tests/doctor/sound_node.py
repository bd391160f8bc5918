"""A node on which every check passes, and the same node with something wrong."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from podgpu import doctor
from podgpu.agent.join import unattributed
from podgpu.doctor import CHECKS, Finding, Machine
from podgpu.doctor.check import Check
from podgpu.insight import InsightSettings, conclude
from podgpu.model import (
    Booking,
    Card,
    Charge,
    Claim,
    ContainerRef,
    Device,
    Fault,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    Owner,
    PartStatus,
    Process,
    Reading,
    Rest,
    SharingStatus,
    Snapshot,
    Tenant,
)
from tests.tree import card

GIB = 2**30
NOW = 1_700_000_000.0
SETTINGS = InsightSettings(idle_after=1800.0)
CARD, CUT = "GPU-00000000-0000-4000-8000-000000000000", "GPU-00000001-0000-4000-8000-000000000000"
LLAMA = ContainerRef("ml", "llama-0", "server", "11111111-aaaa-4000-8000-000000000001")

HOLDER = Holder(pid=42, kind="pod", owner=Owner(pod_uid=LLAMA.pod_uid), container=LLAMA)
PROCESS = Process(pid=42, kinds=("compute",), memory_bytes=20 * GIB, holder=HOLDER)
TENANT = Tenant(
    container=LLAMA,
    claims=(Claim(gpu=CARD, container=LLAMA, system="exclusive", resource="nvidia.com/gpu"),),
    processes=(PROCESS,),
    booking=Booking(processes=1, memory_bytes=20 * GIB, allocated_ratio=1.0, busy_us=5, energy_mj=70, sm_ratio=0.5),
    idle=False,
)
REST = Rest(reason="unknown", memory_bytes=0, busy_us=0, energy_mj=1)

_WHOLE = card(
    Device(
        gpu=Gpu(
            uuid=CARD,
            index=0,
            model="NVIDIA H200",
            compute_capability="9.0",
            sampled_by="ProcessesUtilizationInfo",
        ),
        readings=(
            Reading("memory_used_bytes", 20 * GIB),
            Reading("sm_active_ratio", 0.5),
            Reading("recovery_action", 0),
            Reading("row_remap_pending", 0),
            Reading("pcie_link_width", 16),
            Reading("pcie_link_width_max", 16),
        ),
    ),
    tenants=(TENANT,),
    rest=(REST,),
)
assert _WHOLE.balance
WHOLE = replace(
    _WHOLE,
    balance=replace(_WHOLE.balance, switching_ratio=0.0),
    charges=(Charge(container=LLAMA, charged_bytes=20 * GIB, listed_bytes=20 * GIB),),
)
SPLIT = unattributed(
    Device(
        gpu=Gpu(uuid=CUT, index=1, model="NVIDIA H200", compute_capability="9.0", mig_enabled=True),
        instances=(
            Instance(
                mig=MigInstance(uuid="MIG-1", gpu_instance_id=7, compute_instance_id=0),
                readings=(Reading("sm_active_ratio", 0.1),),
            ),
        ),
    )
)
PARTS = ("nvml", "podresources", "pods-api", "apiserver", "log-dirs", "procfs", "resource-claims", "switches")

SOUND = Snapshot(
    node="gpu-node-1",
    taken_at=NOW,
    interval_seconds=5.0,
    version="1.2.3",
    driver_version="580.95",
    nvml_version="13.580.95",
    cards=(WHOLE, SPLIT),
    sharing=(SharingStatus(system="exclusive", claims=1),),
    parts=tuple(PartStatus(name=name, up=True, duration_seconds=0.003) for name in PARTS),
)
HERE = Machine(
    now=NOW + 1,
    kubelet="/var/lib/kubelet",
    kube_api="auto",
    in_pod=True,
    hides_processes=False,
    clock_synchronised=True,
    missing_fields=(),
    splits_shared=False,
)


def with_down(name: str, reason: str, detail: str = "") -> Snapshot:
    broken = PartStatus(name=name, up=False, fault=Fault(reason=reason, detail=detail))
    others = tuple(part for part in SOUND.parts if part.name != name)
    return replace(SOUND, parts=(*others, broken))


def without(*names: str) -> Snapshot:
    return replace(SOUND, parts=tuple(part for part in SOUND.parts if part.name not in names))


def with_readings(card: Card, **values: float) -> Card:
    kept = tuple(reading for reading in card.readings if reading.metric not in values)
    return replace(card, readings=(*kept, *(Reading(name, value) for name, value in values.items())))


def held_by(*holders: Holder) -> tuple[Card, ...]:
    """The cards, with processes of these owners and of nobody else."""
    processes = tuple(Process(pid=holder.pid, kinds=("compute",), holder=holder) for holder in holders)
    tenant = replace(TENANT, processes=())
    return replace(WHOLE, tenants=(tenant,), rest=(replace(REST, processes=processes),)), SPLIT


def examine(snapshot: Snapshot, machine: Machine, checks: Sequence[Check] = CHECKS) -> tuple[Finding, ...]:
    """What is wrong is concluded first, as an agent does."""
    return doctor.examine(conclude(snapshot, SETTINGS), machine, checks)


def found(check: str, snapshot: Snapshot = SOUND, machine: Machine = HERE, **changes: Any) -> Finding:
    """Return the one finding of that check, on the snapshot with these fields changed."""
    (finding,) = (finding for finding in examine(replace(snapshot, **changes), machine) if finding.id == check)
    return finding
