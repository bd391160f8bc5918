"""The demo node: eight cards and the processes on them. Data only.

`tenant` is `namespace/pod/container`, or `host:NAME` for a process outside any pod.
"""

from dataclasses import dataclass, replace
from uuid import NAMESPACE_OID, uuid5

GIB = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class LoadPattern:
    """Periods of `every` seconds: up to `busy` for about the `duty` part of each, then `rest`.

    `spread` is how much periods differ from one another, 0 to 1. `every` divides the length of a round.
    """

    busy: float
    every: int = 300
    duty: float = 1.0
    rest: float = 0.0
    spread: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelMix:
    """What a mix of kernels does to a whole card in one fully busy second: ratios, watts and bytes."""

    watts: int
    occupancy: float
    dram: float
    tensor: float = 0.0
    fp64: float = 0.0
    fp32: float = 0.0
    fp16: float = 0.0
    integer: float = 0.0
    decoder: float = 0.0
    pcie_transmit: int = 0
    pcie_receive: int = 0
    nvlink: int = 0


@dataclass(frozen=True, slots=True)
class SimulatedProcess:
    """A process on a card. It holds `memory_bytes`, and up to `swing_bytes` more that come and go slowly.

    `instance` is the id of the GPU instance it runs in. `keeps_time` says that it works on a frame whenever the driver
    takes a sample.
    """

    pid: int
    tenant: str
    memory_bytes: int
    mix: KernelMix
    load: LoadPattern
    swing_bytes: int = 0
    instance: int | None = None
    keeps_time: bool = False


@dataclass(frozen=True, slots=True)
class SimulatedProfile:
    name: str
    multiprocessors: int
    memory_bytes: int
    decoders: int


@dataclass(frozen=True, slots=True)
class SimulatedInstance:
    """A MIG device: one GPU instance with one compute instance over all of it."""

    gpu_instance_id: int
    profile: SimulatedProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCard:
    """`xid_at` are the seconds of each round at which the driver raises XID 31.

    `warmth` is by how many degrees the air that cools it is too warm. `logs_switches` says that the driver's log of
    context switches is read, `checks_switches` that it is read at random moments.
    """

    index: int
    processes: tuple[SimulatedProcess, ...]
    instances: tuple[SimulatedInstance, ...] = ()
    corrected_errors: int = 0
    xid_at: tuple[int, ...] = ()
    warmth: int = 0
    logs_switches: bool = False
    checks_switches: bool = False

    @property
    def uuid(self) -> str:
        return f"GPU-{uuid5(NAMESPACE_OID, f'podgpu demo card {self.index}')}"

    def instance_uuid(self, gpu_instance_id: int) -> str:
        return f"MIG-{uuid5(NAMESPACE_OID, f'podgpu demo card {self.index} instance {gpu_instance_id}')}"


TRAINING = KernelMix(
    watts=645, occupancy=0.14, dram=0.30, tensor=0.90, integer=0.02, fp32=0.03,
    pcie_transmit=90 * MIB, pcie_receive=640 * MIB, nvlink=85 * GIB,
)  # fmt: skip
# NVLink is off once a card is partitioned.
TUNING = replace(TRAINING, nvlink=0)
LOADING = KernelMix(watts=180, occupancy=0.05, dram=0.20, integer=0.1, decoder=0.3, pcie_receive=900 * MIB)
CHAT = KernelMix(
    watts=470, occupancy=0.25, dram=0.62, tensor=0.48, fp16=0.12, integer=0.04,
    pcie_transmit=12 * MIB, pcie_receive=25 * MIB,
)  # fmt: skip
SCORING = KernelMix(
    watts=420, occupancy=0.35, dram=0.40, tensor=0.30, fp32=0.22, integer=0.05,
    pcie_transmit=60 * MIB, pcie_receive=310 * MIB,
)  # fmt: skip
NOTEBOOK = KernelMix(
    watts=330, occupancy=0.40, dram=0.28, fp64=0.04, fp32=0.35, integer=0.08,
    pcie_transmit=30 * MIB, pcie_receive=80 * MIB,
)  # fmt: skip
VIDEO = KernelMix(
    watts=240, occupancy=0.22, dram=0.18, fp16=0.15, integer=0.12, decoder=0.85,
    pcie_transmit=140 * MIB, pcie_receive=220 * MIB,
)  # fmt: skip

# A training step pauses now and then to write its checkpoint; a server follows its callers, mostly in short bursts.
STEPS = LoadPattern(0.97, every=300, duty=0.94, rest=0.04, spread=0.02)
FEED = LoadPattern(0.02, every=60, duty=0.9, spread=0.4)
CALLS = LoadPattern(0.82, every=12, duty=0.55, rest=0.03, spread=0.8)
SIDE_CALLS = LoadPattern(0.08, every=12, duty=0.6, spread=0.5)
BATCHES = LoadPattern(0.46, every=40, duty=0.65, spread=0.5)
CELLS = LoadPattern(0.55, every=100, duty=0.22, spread=0.9)
TRICKLE = LoadPattern(0.24, every=20, duty=0.8, rest=0.05, spread=0.5)
BURSTS = LoadPattern(0.7, every=4, duty=0.3, spread=0.9)
FINE_TUNING = LoadPattern(0.93, every=200, duty=0.92, rest=0.05, spread=0.05)
EXPERIMENTS = LoadPattern(0.3, every=60, duty=0.3, spread=0.8)
CAMERA = LoadPattern(0.055)
SPEECH = LoadPattern(0.75, every=24, rest=0.6, spread=0.4)
INDEXING = LoadPattern(0.22, every=240, duty=0.6, spread=0.3)
NOTHING = LoadPattern(0.0, spread=0.0)

# As `nvidia-smi mig -lgip` names them on this card.
ONE = SimulatedProfile("1g.18gb", 16, 16 * GIB, decoders=1)
THREE = SimulatedProfile("3g.71gb", 60, 69 * GIB + 256 * MIB, decoders=3)

CHAT_SERVER = "assist/chat-6f9c8d7b5-x2klm/server"
SCORER = "search/score-nightly-28841-kd5vt/scorer"


def _training(index: int, tenant: str, pid: int, *, warmth: int = 0) -> SimulatedCard:
    trainer = SimulatedProcess(pid, tenant, 118 * GIB, TRAINING, STEPS)
    loader = SimulatedProcess(pid + 44, tenant, 874 * MIB, LOADING, FEED)
    return SimulatedCard(index=index, processes=(trainer, loader), warmth=warmth)


CARDS = (
    _training(0, "research/pretrain-0/trainer", 20411),
    _training(1, "research/pretrain-1/trainer", 20873, warmth=22),
    SimulatedCard(
        index=2,
        xid_at=(3, 420, 820),
        processes=(
            SimulatedProcess(31552, CHAT_SERVER, 126 * GIB, CHAT, CALLS),
            SimulatedProcess(31610, CHAT_SERVER, 2304 * MIB, SCORING, SIDE_CALLS),
        ),
    ),
    SimulatedCard(
        index=3,
        instances=(
            SimulatedInstance(2, THREE),
            *(SimulatedInstance(number, ONE) for number in (7, 8, 9, 10)),
        ),
        processes=(
            SimulatedProcess(40120, "vision/finetune-wq7rp/worker", 58 * GIB, TUNING, FINE_TUNING, instance=2),
            SimulatedProcess(40977, "search/embed-5d8f7c-9hzt4/server", 9 * GIB, SCORING, CALLS, 2 * GIB, instance=7),
            SimulatedProcess(41233, "lab/notebook-1/jupyter", 5 * GIB, NOTEBOOK, CELLS, 6 * GIB, instance=8),
            SimulatedProcess(41380, "lab/notebook-2/jupyter", 11 * GIB, NOTEBOOK, NOTHING, instance=9),
        ),
    ),
    SimulatedCard(
        index=4,
        logs_switches=True,
        processes=(
            SimulatedProcess(52001, "lab/notebook-3/jupyter", 14 * GIB, NOTEBOOK, CELLS, 9 * GIB),
            SimulatedProcess(52440, "lab/notebook-4/jupyter", 8 * GIB, NOTEBOOK, EXPERIMENTS, 5 * GIB),
            SimulatedProcess(52718, SCORER, 21 * GIB, SCORING, BATCHES),
            SimulatedProcess(52719, SCORER, 21 * GIB, SCORING, BATCHES),
        ),
    ),
    SimulatedCard(
        index=5,
        processes=(
            SimulatedProcess(60310, "assist/rerank-7c4b9-m8wqs/server", 28 * GIB, CHAT, TRICKLE, 4 * GIB),
            # Its limit is 40 GiB.
            SimulatedProcess(60655, "assist/guard-84fdd-t6n2c/server", 38 * GIB + 900 * MIB, SCORING, BURSTS),
            SimulatedProcess(61102, "vision/camera-0/detector", 11 * GIB, VIDEO, CAMERA, keeps_time=True),
        ),
    ),
    SimulatedCard(
        index=6,
        corrected_errors=3,
        checks_switches=True,
        processes=(
            SimulatedProcess(70541, "vision/camera-1/detector", 11 * GIB, VIDEO, CAMERA, keeps_time=True),
            SimulatedProcess(1874, "host:video-index", 3 * GIB, VIDEO, INDEXING),
            SimulatedProcess(70220, "speech/asr-0/server", 24 * GIB, CHAT, SPEECH, 3 * GIB),
        ),
    ),
    SimulatedCard(
        index=7,
        processes=(SimulatedProcess(81999, "lab/notebook-5/jupyter", 60 * GIB, NOTEBOOK, NOTHING),),
    ),
)
