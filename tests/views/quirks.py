"""A node with every quirk a view must survive."""

from podgpu.agent.join import unattributed
from podgpu.insight import conclude
from podgpu.model import (
    ENDED,
    Allocation,
    Balance,
    Band,
    Booking,
    Claim,
    ContainerRef,
    ErrorCount,
    Fault,
    Holder,
    Owner,
    PartStatus,
    Pod,
    Process,
    Rest,
    Snapshot,
    Tenant,
    Workload,
)
from tests.tree import SETTINGS, card, held
from tests.views import hardware

GIB = hardware.GIB
MIG_A, MIG_B = (instance.mig.uuid for instance in hardware.SPLIT.instances)

LLAMA = ContainerRef("ml", "llama-0", "server", "11111111-aaaa-4000-8000-000000000001")
NOTEBOOK = ContainerRef("team-b", "notebook-7c9d8f6b5f-x2x7k", "jupyter", "22222222-aaaa-4000-8000-000000000002")
FORMER = ContainerRef("ml", "llama-0", "server", "11111111-aaaa-4000-8000-000000000000")
SLICE = ContainerRef("ml", "embed-5d8c7b9f4-qqqqq", "main", "33333333-aaaa-4000-8000-000000000003")
IDLER = ContainerRef("team-c", "dev-0", "shell", "44444444-aaaa-4000-8000-000000000004")
EVIL = ContainerRef("<b>", '"\\\n\x1b[31m\ud800', "[red]" + "x" * 300, "evil")


def band(booked: float, least: float | None = None, most: float | None = None) -> Band:
    """Of the last full minute, as parts of it, by samples. Without a range there is no doubt."""
    times = [round(60_000_000 * (booked if part is None else part)) for part in (booked, least, most)]
    energies = [time // 200 for time in times]
    return Band(
        elapsed_us=60_000_000,
        booked_us=times[0],
        least_us=times[1] if least is None else 0,
        most_us=times[2] if most is None else 57_000_000,
        likely_least_us=times[1],
        likely_most_us=times[2],
        booked_mj=energies[0],
        least_mj=energies[1] if least is None else 0,
        most_mj=energies[2] if most is None else 285_000,
        likely_least_mj=energies[1],
        likely_most_mj=energies[2],
        certainty="exact" if least is None else "estimated",
        rests_on="" if least is None else "samples",
    )


def _cgroup(container: ContainerRef, number: int) -> str:
    uid = container.pod_uid.replace("-", "_")
    return (
        "0::/kubepods.slice/kubepods-burstable.slice/"
        f"kubepods-burstable-pod{uid}.slice/cri-containerd-{number:064x}.scope"
    )


def _holder(pid: int, container: ContainerRef) -> Holder:
    owner = Owner(pod_uid=container.pod_uid, container_id=f"{pid:064x}", runtime="containerd", qos="burstable")
    return Holder(
        pid=pid,
        kind="pod",
        start_time=pid * 1000,
        started_at=1759900000.0 + pid,
        owner=owner,
        container=container,
        cgroup=_cgroup(container, pid),
    )


def _small(pid: int) -> Process:
    return Process(pid=pid, kinds=("compute",), memory_bytes=GIB // 100)


BUSY = card(
    hardware.BUSY,
    tenants=(
        Tenant(
            container=LLAMA,
            workload=Workload(kind="StatefulSet", name="llama"),
            claims=(
                Claim(
                    gpu=hardware.BUSY.gpu.uuid,
                    container=LLAMA,
                    share=0.5,
                    memory_limit_bytes=70 * GIB,
                    core_limit_ratio=0.5,
                    resource="nvidia.com/gpu.shared",
                    device_id=f"{hardware.BUSY.gpu.uuid}::1",
                    system="time-slicing",
                    source="podresources",
                ),
            ),
            processes=(
                held(
                    Process(pid=424, kinds=("compute",), memory_bytes=20 * GIB, sm_ratio=0.8),
                    _holder(424, LLAMA),
                ),
            ),
            booking=Booking(
                method="measured",
                processes=1,
                memory_bytes=20 * GIB,
                memory_limit_bytes=70 * GIB,
                sm_ratio=0.8,
                power_watts=512.25,
                band=band(0.78, 0.61, 0.9),
                allocated_ratio=0.5,
                busy_us=100_000,
                energy_mj=100,
                allocated_us=1_800_000_001,
                last_active_at=1760000000.25,
            ),
            idle=False,
        ),
        # Used without having been given.
        Tenant(
            container=NOTEBOOK,
            workload=Workload(kind="Deployment", name="notebook"),
            processes=(
                held(
                    Process(pid=425, kinds=("compute", "graphics"), memory_bytes=10 * GIB, sm_ratio=0.15),
                    _holder(425, NOTEBOOK),
                ),
            ),
            booking=Booking(
                method="measured",
                processes=1,
                memory_bytes=10 * GIB,
                sm_ratio=0.15,
                power_watts=8.125,
                band=band(0.12, 0.0, 0.3),
                busy_us=200_000,
                energy_mj=200,
            ),
            idle=False,
        ),
    ),
    # Ended, and made again under its name: both have one series.
    ended=(Tenant(container=FORMER, booking=Booking(busy_us=7, energy_mj=9_000_001, allocated_us=5)),),
    rest=(
        Rest(reason="idle", energy_mj=84_000, power_watts=84.625),
        Rest(reason="overhead", memory_bytes=GIB // 2 - 10 * (GIB // 100)),
        Rest(
            reason="host",
            processes=(
                held(
                    Process(pid=426, kinds=("mps",)),
                    Holder(pid=426, kind="host", start_time=7, cgroup="0::/system.slice/nvidia-mps.service"),
                ),
            ),
            sm_ratio=0.02,
            power_watts=85.0,
            band=band(0.04, 0.01, 0.1),
            busy_us=3,
            energy_mj=4,
        ),
        Rest(
            reason="container",
            memory_bytes=4 * (GIB // 100),
            processes=tuple(
                held(_small(pid), Holder(pid=pid, kind="container", owner=Owner(container_id="d" * 64)))
                for pid in range(1000, 1004)
            ),
        ),
        Rest(
            reason="unknown",
            memory_bytes=6 * (GIB // 100),
            processes=(
                held(_small(1004), Holder(pid=1004, kind="unknown", reason="exited")),
                *(held(_small(pid), None) for pid in range(1005, 1010)),
            ),
            busy_us=999_999,
        ),
        Rest(reason=ENDED, busy_us=11, energy_mj=22),
    ),
    balance=Balance(
        memory_bytes=30 * GIB + GIB // 2,
        busy_ratio=0.97,
        busy_us=1_300_020,
        energy_mj=9_084_327,
        band=band(0.94),
    ),
)

SPLIT = card(
    hardware.SPLIT,
    tenants=(
        Tenant(
            container=SLICE,
            mig=MIG_A,
            workload=Workload(kind="Deployment", name="embed"),
            claims=(
                Claim(
                    gpu=hardware.SPLIT.gpu.uuid,
                    mig=MIG_A,
                    container=SLICE,
                    resource="nvidia.com/mig-3g.71gb",
                    device_id=MIG_A,
                    system="mig",
                    source="podresources",
                ),
            ),
            processes=(
                held(
                    Process(
                        pid=77,
                        kinds=("compute",),
                        memory_bytes=16 * GIB,
                        gpu_instance_id=2,
                        compute_instance_id=0,
                    ),
                    _holder(77, SLICE),
                    MIG_A,
                ),
            ),
            booking=Booking(
                method="instance",
                processes=1,
                memory_bytes=16 * GIB,
                sm_ratio=0.2,
                instance_ratio=0.5,
                power_watts=90.0,
                band=band(0.2),
                allocated_ratio=3 / 7,
                busy_us=1,
                energy_mj=1,
                allocated_us=1,
            ),
            idle=False,
        ),
        # Held, and whether it is used is not known: the container of one process is not.
        Tenant(
            container=IDLER,
            mig=MIG_B,
            workload=Workload(kind="Pod", name="dev-0"),
            held_since=1759900000.0,
            claims=(
                Claim(
                    gpu=hardware.SPLIT.gpu.uuid,
                    mig=MIG_B,
                    container=IDLER,
                    device_id=MIG_B,
                    system="mig",
                    source="podresources",
                ),
            ),
            booking=Booking(
                allocated_ratio=1 / 7,
                power_watts=11.5,
                energy_mj=123_456_789_012,
                allocated_us=86_400_000_000,
                last_active_at=1759990000.0,
            ),
            idle=None,
        ),
    ),
    rest=(
        Rest(reason="overhead", memory_bytes=GIB + GIB // 4),
        Rest(
            reason="unknown",
            processes=(
                held(
                    Process(pid=78, kinds=("compute",), gpu_instance_id=5, compute_instance_id=0),
                    Holder(pid=78, kind="pod", owner=Owner(pod_uid=SLICE.pod_uid), reason="no container id"),
                ),
            ),
        ),
    ),
)

STUCK = unattributed(hardware.STUCK)

HOSTILE = card(
    hardware.HOSTILE,
    counts_busy=False,
    counts_energy=False,
    tenants=(
        Tenant(
            container=EVIL,
            booking=Booking(method="<i>", sm_ratio=0.5, processes=0, allocated_ratio=0.5),
            held_since=1759900000.0,
            idle=True,
        ),
    ),
)


PODS = (
    Pod(
        namespace="ml",
        name="llama-0",
        uid=LLAMA.pod_uid,
        phase="Running",
        labels={"app": "llama", "app.kubernetes.io/name": "llama", "app-kubernetes-io/name": "other"},
        annotations={"kubectl.kubernetes.io/last-applied-configuration": "password: hunter2"},
        workload=Workload(kind="StatefulSet", name="llama"),
    ),
    Pod(
        namespace="team-b",
        name=NOTEBOOK.pod,
        uid=NOTEBOOK.pod_uid,
        phase="Running",
        labels={"app": "nb"},
        workload=Workload(kind="Deployment", name="notebook"),
    ),
    Pod(
        namespace="ml",
        name=SLICE.pod,
        uid=SLICE.pod_uid,
        phase="Running",
        workload=Workload(kind="Deployment", name="embed"),
    ),
    Pod(
        namespace="team-c",
        name="dev-0",
        uid=IDLER.pod_uid,
        phase="Running",
        workload=Workload(kind="Pod", name="dev-0"),
    ),
    Pod(namespace=EVIL.namespace, name=EVIL.pod, uid="evil", labels={"ü\n{}": '"\\\n\ud800'}),
)

SNAPSHOT = conclude(
    Snapshot(
        node="gpu-node-1",
        taken_at=1760000000.25,
        watched_since=1759800000.0,
        interval_seconds=5.0,
        version="0.1.0",
        driver_version="580.159.04",
        nvml_version="13.580.159.04",
        cards=(BUSY, SPLIT, STUCK, HOSTILE),
        pods=PODS,
        unclaimed=(
            Allocation(
                namespace="team-c",
                pod="dev-0",
                container="shell",
                resource="example.com/gpu",
                device_id="slot-7",
            ),
        ),
        parts=(
            PartStatus(name="nvml", up=True, duration_seconds=0.0415, age_seconds=0.2),
            PartStatus(
                name="podresources",
                up=False,
                fault=Fault(reason="no_socket", call="List", detail="<socket> missing", seconds=90.0),
                duration_seconds=0.001,
            ),
            PartStatus(name="apiserver", up=True, duration_seconds=0.012, age_seconds=4.0),
            PartStatus(name="procfs", up=True, duration_seconds=0.0021, age_seconds=0.1),
            PartStatus(
                name="pods-api",
                up=False,
                fault=Fault(reason="unavailable", call="ListPods", detail="connection refused", seconds=4000.0),
                age_seconds=4000.0,
            ),
        ),
        errors=(
            ErrorCount(source="nvml", reason="timeout", count=3),
            ErrorCount(source="podresources", reason="no_socket", count=18),
        ),
    ),
    SETTINGS,
)

DROPPED = {"podgpu_gpu_clock_event": 42}
