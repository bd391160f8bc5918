"""A node with every quirk that the pages of dcgm-exporter must show or survive."""

from msgspec.structs import replace

from podgpu.model import (
    SEES_ALL,
    Booking,
    Card,
    Claim,
    ClaimUse,
    ContainerRef,
    Device,
    Fault,
    Gpu,
    Instance,
    MigInstance,
    Pod,
    PodContainer,
    Reading,
    Snapshot,
    Tenant,
)
from tests.tree import card

GIB = 2**30


def uuid(number: int) -> str:
    return f"GPU-00000000-0000-4000-8000-{number:012d}"


def mig_uuid(number: int) -> str:
    return f"MIG-00000000-0000-5000-8000-{number:012d}"


def gpu(index: int, *, model: str = "NVIDIA H200", mig_enabled: bool = False) -> Gpu:
    bus = f"00000000:{0x18 + index:02X}:00.0"
    # Not the number of /dev/nvidiaN.
    return Gpu(
        uuid=uuid(index),
        index=index,
        minor=7 - index,
        model=model,
        pci_bus_id=bus,
        vbios="96.00",
        mig_enabled=mig_enabled,
    )


def readings(load: float) -> tuple[Reading, ...]:
    """All that the default counters show."""
    return (
        Reading("clock_hertz", 1_980e6, ("sm",)),
        Reading("clock_hertz", 3_201e6, ("memory",)),
        Reading("clock_hertz", 1_980e6, ("graphics",)),
        Reading("temperature_celsius", 61.0, ("memory",)),
        Reading("temperature_celsius", 56.0, ("gpu",)),
        Reading("power_watts", 90.5 + 600 * load),
        Reading("energy_joules_total", 123_456_789.012),
        Reading("pcie_replays_total", 0),
        Reading("utilization_ratio", load),
        Reading("memory_utilization_ratio", 0.29),
        Reading("encoder_utilization_ratio", 0.0),
        Reading("decoder_utilization_ratio", 0.57),
        Reading("memory_total_bytes", 141 * GIB),
        Reading("memory_free_bytes", 110.5 * GIB + 700_000),
        Reading("memory_used_bytes", 30 * GIB - 700_000),
        Reading("memory_reserved_bytes", 0.5 * GIB),
        Reading("nvlink_transmit_bytes_per_second", 2.5e9),
        Reading("nvlink_receive_bytes_per_second", 1.5e9),
        Reading("remapped_rows", 2, ("uncorrected",)),
        Reading("remapped_rows", 1, ("corrected",)),
        Reading("row_remap_failed", 0),
        Reading("vgpu_licensed", 0),
        Reading("graphics_engine_active_ratio", load),
        Reading("sm_active_ratio", 0.1 + 0.2),
        Reading("tensor_active_ratio", 0.1 + 0.2),
        Reading("dram_active_ratio", 1.53e-7),
        Reading("pcie_transmit_bytes_per_second", 4096.4),
        Reading("pcie_receive_bytes_per_second", float("nan")),
        Reading("throttle_seconds_total", 1.5, ("power",)),
        Reading("ecc_errors_total", 3, ("corrected", "volatile")),
        Reading("no_such_metric", 1.0),
    )


def instance(number: int, place: int, profile: str, used: float, compute: int = 0) -> Instance:
    return Instance(
        mig=MigInstance(uuid=mig_uuid(number), gpu_instance_id=place, compute_instance_id=compute, profile=profile),
        readings=(
            Reading("memory_total_bytes", 16 * GIB),
            Reading("memory_used_bytes", used),
            Reading("memory_free_bytes", 16 * GIB - used),
            Reading("graphics_engine_active_ratio", 0.25),
        ),
    )


TRAIN = ContainerRef("team-a", "train-0", "main", "uid-train")
CHAT = ContainerRef("team-a", "chat", "server", "uid-chat")
BATCH = ContainerRef("team-b", "batch", "main", "uid-batch")
STRANGER = ContainerRef("team-b", "stranger", "main", "uid-stranger")
SLICE = ContainerRef("team-b", "notebook", "jupyter", "uid-notebook")
CLAIMANT = ContainerRef("team-c", "dynamic", "ctr", "uid-dynamic")
PART = ContainerRef("team-c", "part", "ctr", "uid-part")

DOCKER = ContainerRef("", "", "docker/web")


def held(
    container: ContainerRef, gpu: int, *, share: float = 1.0, number: int = 1, system: str = "", mig: str = ""
) -> tuple[Claim, ...]:
    """Claims on a card, or on an instance of it."""
    return (Claim(gpu=uuid(gpu), mig=mig, container=container, share=share, system=system),) * number


def claimed(container: ContainerRef, gpu: int, device_id: str, mig: str = "") -> tuple[Claim, ...]:
    """A claim by dynamic resource allocation."""
    return (
        Claim(
            gpu=uuid(gpu),
            mig=mig,
            container=container,
            system="dra",
            resource="gpu.nvidia.com",
            device_id=device_id,
        ),
    )


def heard(device: Device, *tenants: Tenant, ended: tuple[Tenant, ...] = ()) -> Card:
    """A card of which every XID is heard."""
    able = replace(device, ability=replace(SEES_ALL, hears_xids=True))
    return card(able, tenants=tenants, ended=ended)


EXCLUSIVE = heard(
    Device(
        gpu=gpu(0),
        readings=(
            *readings(0.97),
            Reading("xid_last_code", 31),
            Reading("xid_errors_total", 2, ("31",)),
            Reading("xid_errors_total", 1, ("13",)),
        ),
    ),
    Tenant(
        container=TRAIN,
        claims=held(TRAIN, 0, system="exclusive"),
        booking=Booking(memory_bytes=30 * GIB, sm_ratio=0.9, power_watts=600.0),
    ),
)
IDLE = heard(Device(gpu=gpu(1), readings=readings(0.0)))
SHARED = heard(
    Device(gpu=gpu(2), readings=readings(0.8)),
    # Outside Kubernetes.
    Tenant(container=DOCKER, booking=Booking(memory_bytes=GIB)),
    Tenant(
        container=CHAT,
        claims=held(CHAT, 2, share=0.25, number=2, system="replicas"),
        booking=Booking(memory_bytes=20 * GIB, sm_ratio=0.504, power_watts=300.25),
    ),
    Tenant(
        container=BATCH,
        claims=held(BATCH, 2, share=0.25, system="replicas"),
        booking=Booking(power_watts=50.0),
    ),
    Tenant(container=STRANGER, booking=Booking(memory_bytes=2 * GIB, sm_ratio=0.2)),
    ended=(Tenant(container=TRAIN, booking=Booking(memory_bytes=GIB, sm_ratio=0.5)),),
)
SPLIT = heard(
    Device(
        gpu=gpu(3, mig_enabled=True),
        # A card in MIG mode reports no utilization. Its memory is not that of its instances.
        readings=tuple(reading for reading in readings(0.5) if reading.metric != "utilization_ratio"),
        instances=(
            instance(1, 3, "2g.35gb", 10 * GIB),
            instance(2, 5, "1c.2g.35gb", 8 * GIB),
            instance(3, 5, "1c.2g.35gb", 8 * GIB, compute=1),
            instance(4, 9, "1g.18gb", 0.25 * GIB),
        ),
    ),
    Tenant(container=SLICE, mig=mig_uuid(1), claims=held(SLICE, 3, mig=mig_uuid(1), system="mig")),
    # Two containers on the two halves of one GPU instance.
    Tenant(
        container=CHAT,
        mig=mig_uuid(2),
        claims=held(CHAT, 3, mig=mig_uuid(2), system="mig"),
        booking=Booking(memory_bytes=5 * GIB, power_watts=20.0),
    ),
    Tenant(
        container=BATCH,
        mig=mig_uuid(3),
        claims=held(BATCH, 3, mig=mig_uuid(3), system="mig"),
        booking=Booking(memory_bytes=2 * GIB, power_watts=10.0),
    ),
    Tenant(
        container=PART,
        mig=mig_uuid(4),
        claims=claimed(PART, 3, "pool/a/gpu-3-mig-1g18gb-19-0", mig=mig_uuid(4)),
    ),
)
DYNAMIC = heard(
    Device(gpu=gpu(4, model='a "quoted"\\\nname'), readings=readings(0.1)),
    Tenant(container=CLAIMANT, claims=claimed(CLAIMANT, 4, "gpu-node-1/gpu-4")),
)
STUCK = heard(Device(gpu=gpu(5), fault=Fault(reason="timeout", call="nvmlDeviceGetPowerUsage")))
EMPTY_MIG = heard(Device(gpu=gpu(6, mig_enabled=True), readings=(Reading("power_watts", 70.0),)))

PODS = (
    Pod(
        namespace="team-c",
        name="dynamic",
        uid="uid-dynamic",
        containers=(PodContainer(name="ctr", uses=(ClaimUse("gpu"),)),),
        resource_claims={"gpu": "dynamic-gpu-x7k2p", "other": "dynamic-other-aaaaa"},
    ),
    Pod(
        namespace="team-c",
        name="part",
        uid="uid-part",
        containers=(
            PodContainer(
                name="ctr",
                uses=(ClaimUse("one"), ClaimUse("two")),
                devices=(
                    ("claim:one/r", "gpu.nvidia.com/gpu-node-1/gpu-0"),
                    ("claim:two/r", "gpu.nvidia.com/pool/a/gpu-3-mig-1g18gb-19-0"),
                ),
            ),
        ),
        resource_claims={"one": "part-one-aaaaa", "two": "part-two-bbbbb"},
    ),
)

NODE = Snapshot(
    node="gpu-node-1",
    taken_at=1760000000.25,
    interval_seconds=5.0,
    version="0.1.0",
    driver_version="580.159.04",
    nvml_version="13.580.159.04",
    cards=(EXCLUSIVE, IDLE, SHARED, SPLIT, DYNAMIC, STUCK, EMPTY_MIG),
    pods=PODS,
)


def shared(*tenants: Tenant, number: int = 0) -> Snapshot:
    """A node with one card, and these on it."""
    return replace(NODE, cards=(heard(Device(gpu=gpu(number), readings=readings(0.8)), *tenants),))


SIDECAR = ContainerRef("team-a", "train-0", "sidecar", "uid-train")
# Two containers of one pod.
PAIR = shared(
    *(
        Tenant(
            container=ref,
            claims=held(ref, 0, share=0.5, system="replicas"),
            booking=Booking(memory_bytes=size * GIB, sm_ratio=ratio, power_watts=200.0),
        )
        for ref, size, ratio in ((TRAIN, 20, 0.5), (SIDECAR, 4, 0.1))
    )
)
# Three pods on one card in time slices.
TRIO = shared(
    *(
        Tenant(
            container=ref,
            claims=held(ref, 0, share=0.25, system="replicas"),
            booking=Booking(memory_bytes=size * GIB, sm_ratio=ratio, power_watts=100.0),
        )
        for ref, size, ratio in ((TRAIN, 12, 0.4), (CHAT, 8, 0.2), (BATCH, 1, 0.0))
    )
)
# A claim that two pods share.
TOGETHER = replace(
    shared(
        *(
            Tenant(
                container=ref,
                claims=claimed(ref, 0, "gpu-node-1/gpu-0"),
                booking=Booking(memory_bytes=4 * GIB, sm_ratio=0.3, power_watts=100.0),
            )
            for ref in (CLAIMANT, PART)
        )
    ),
    pods=tuple(
        replace(
            pod,
            labels={"app.kubernetes.io/name": "llm", "2nd": "b", "pod": "imposter"},
            containers=(PodContainer(name="ctr", uses=(ClaimUse("gpu"),)),),
            resource_claims={"gpu": "together"},
        )
        for pod in PODS
    ),
)
# A card that is split by MIG, with instances of one and of two, beside a card in time slices.
MIXED = replace(NODE, cards=(*TRIO.cards, SPLIT))
