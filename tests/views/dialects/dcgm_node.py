"""A node with every quirk that the pages of dcgm-exporter must tell or survive."""

from podgpu.model import (
    Booking,
    Claim,
    ClaimUse,
    ContainerRef,
    Device,
    Fault,
    Gpu,
    Instance,
    MigInstance,
    PartStatus,
    Pod,
    PodContainer,
    Reading,
    Snapshot,
)

GIB = 2**30


def uuid(number: int) -> str:
    return f"GPU-00000000-0000-4000-8000-{number:012d}"


def mig_uuid(number: int) -> str:
    return f"MIG-00000000-0000-5000-8000-{number:012d}"


def card(index: int, *, model: str = "NVIDIA H200", mig_enabled: bool = False) -> Gpu:
    bus = f"00000000:{0x18 + index:02X}:00.0"
    # The number of /dev/nvidiaN is another one.
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
    """All that the default counters tell."""
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
        mig=MigInstance(
            uuid=mig_uuid(number), gpu_instance_id=place, compute_instance_id=compute, profile=profile
        ),
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

EXCLUSIVE = Device(
    gpu=card(0),
    readings=(
        *readings(0.97),
        Reading("xid_last_code", 31),
        Reading("xid_errors_total", 2, ("31",)),
        Reading("xid_errors_total", 1, ("13",)),
    ),
)
IDLE = Device(gpu=card(1), readings=readings(0.0))
SHARED = Device(gpu=card(2), readings=readings(0.8))
SPLIT = Device(
    gpu=card(3, mig_enabled=True),
    # A card in MIG mode tells no utilisation. Its memory is not that of its instances.
    readings=tuple(one for one in readings(0.5) if one.metric != "utilization_ratio"),
    instances=(
        instance(1, 3, "2g.35gb", 10 * GIB),
        instance(2, 5, "1c.2g.35gb", 8 * GIB),
        instance(3, 5, "1c.2g.35gb", 8 * GIB, compute=1),
        instance(4, 9, "1g.18gb", 0.25 * GIB),
    ),
)
DYNAMIC = Device(gpu=card(4, model='a "quoted"\\\nname'), readings=readings(0.1))
STUCK = Device(gpu=card(5), fault=Fault(reason="timeout", call="nvmlDeviceGetPowerUsage"))
EMPTY_MIG = Device(gpu=card(6, mig_enabled=True), readings=(Reading("power_watts", 70.0),))

CLAIMS = (
    Claim(gpu=uuid(0), container=TRAIN, system="exclusive"),
    Claim(gpu=uuid(2), container=CHAT, share=0.25, system="replicas"),
    Claim(gpu=uuid(2), container=CHAT, share=0.25, system="replicas"),
    Claim(gpu=uuid(2), container=BATCH, share=0.25, system="replicas"),
    Claim(gpu=uuid(3), mig=mig_uuid(1), container=SLICE, system="mig"),
    # Two containers on the two halves of one GPU instance.
    Claim(gpu=uuid(3), mig=mig_uuid(2), container=CHAT, system="mig"),
    Claim(gpu=uuid(3), mig=mig_uuid(3), container=BATCH, system="mig"),
    Claim(
        gpu=uuid(3), mig=mig_uuid(4), container=PART, system="dra", resource="gpu.nvidia.com",
        device_id="pool/a/gpu-3-mig-1g18gb-19-0",
    ),
    Claim(
        gpu=uuid(4), container=CLAIMANT, system="dra", resource="gpu.nvidia.com", device_id="gpu-node-1/gpu-4"
    ),
)  # fmt: skip

BOOKINGS = (
    Booking(gpu=uuid(0), container=TRAIN, memory_bytes=30 * GIB, sm_ratio=0.9, power_watts=600.0),
    Booking(gpu=uuid(2), container=CHAT, memory_bytes=20 * GIB, sm_ratio=0.504, power_watts=300.25),
    Booking(gpu=uuid(2), container=BATCH, memory_bytes=None, sm_ratio=None, power_watts=50.0),
    Booking(gpu=uuid(2), container=STRANGER, memory_bytes=2 * GIB, sm_ratio=0.2),
    Booking(gpu=uuid(2), container=TRAIN, memory_bytes=GIB, sm_ratio=0.5, ended=True),
    # Outside Kubernetes.
    Booking(gpu=uuid(2), container=ContainerRef("", "", "docker/web"), memory_bytes=GIB),
    Booking(gpu=uuid(3), mig=mig_uuid(2), container=CHAT, memory_bytes=5 * GIB, power_watts=20.0),
    Booking(gpu=uuid(3), mig=mig_uuid(3), container=BATCH, memory_bytes=2 * GIB, power_watts=10.0),
)

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
    devices=(EXCLUSIVE, IDLE, SHARED, SPLIT, DYNAMIC, STUCK, EMPTY_MIG),
    claims=CLAIMS,
    bookings=BOOKINGS,
    pods=PODS,
    parts=(PartStatus(name="nvml", up=True),),
)
