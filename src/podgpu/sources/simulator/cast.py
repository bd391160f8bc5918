"""The cast: eight cards and who is on them. Data only."""

from dataclasses import replace

from podgpu.sources.simulator.layout import (
    Profile,
    Rhythm,
    SimulatedCard,
    SimulatedProcess,
    SimulatedSlice,
    Work,
)

GIB = 1 << 30
MIB = 1 << 20

TRAINING = Work(
    watts=645, occupancy=0.14, dram=0.30, tensor=0.90, integer=0.02, fp32=0.03,
    pcie_transmit=90 * MIB, pcie_receive=640 * MIB, nvlink=85 * GIB,
)  # fmt: skip
# NVLink is off once a card is partitioned.
TUNING = replace(TRAINING, nvlink=0)
LOADING = Work(watts=180, occupancy=0.05, dram=0.20, integer=0.1, decoder=0.3, pcie_receive=900 * MIB)
CHAT = Work(
    watts=470, occupancy=0.25, dram=0.62, tensor=0.48, fp16=0.12, integer=0.04,
    pcie_transmit=12 * MIB, pcie_receive=25 * MIB,
)  # fmt: skip
SCORING = Work(
    watts=420, occupancy=0.35, dram=0.40, tensor=0.30, fp32=0.22, integer=0.05,
    pcie_transmit=60 * MIB, pcie_receive=310 * MIB,
)  # fmt: skip
NOTEBOOK = Work(
    watts=330, occupancy=0.40, dram=0.28, fp64=0.04, fp32=0.35, integer=0.08,
    pcie_transmit=30 * MIB, pcie_receive=80 * MIB,
)  # fmt: skip
VIDEO = Work(
    watts=240, occupancy=0.22, dram=0.18, fp16=0.15, integer=0.12, decoder=0.85,
    pcie_transmit=140 * MIB, pcie_receive=220 * MIB,
)  # fmt: skip

# A training step pauses now and then to write its checkpoint; a server follows its callers, mostly in short bursts.
STEPS = Rhythm(0.97, every=300, duty=0.94, rest=0.04, spread=0.02)
FEED = Rhythm(0.02, every=60, duty=0.9, spread=0.4)
CALLS = Rhythm(0.82, every=12, duty=0.55, rest=0.03, spread=0.8)
BATCHES = Rhythm(0.46, every=40, duty=0.65, spread=0.5)
CELLS = Rhythm(0.55, every=100, duty=0.22, spread=0.9)
TRICKLE = Rhythm(0.24, every=20, duty=0.8, rest=0.05, spread=0.5)
BURSTS = Rhythm(0.7, every=4, duty=0.3, spread=0.9)
NOTHING = Rhythm(0.0, spread=0.0)

# As `nvidia-smi mig -lgip` names them on this card.
ONE = Profile("1g.18gb", 16, 16 * GIB, decoders=1)
THREE = Profile("3g.71gb", 60, 69 * GIB + 256 * MIB, decoders=3)


def _training(index: int, tenant: str, pid: int, *, warmth: int = 0) -> SimulatedCard:
    trainer = SimulatedProcess(pid=pid, tenant=tenant, memory_bytes=118 * GIB, work=TRAINING, rhythm=STEPS)
    loader = SimulatedProcess(pid=pid + 44, tenant=tenant, memory_bytes=874 * MIB, work=LOADING, rhythm=FEED)
    return SimulatedCard(index=index, processes=(trainer, loader), warmth=warmth)


CARDS = (
    _training(0, "research/pretrain-0/trainer", 20411),
    _training(1, "research/pretrain-1/trainer", 20873, warmth=22),
    SimulatedCard(
        index=2,
        xid_at=(3, 420, 820),
        processes=(
            SimulatedProcess(
                pid=31552,
                tenant="assist/chat-6f9c8d7b5-x2klm/server",
                memory_bytes=126 * GIB,
                work=CHAT,
                rhythm=CALLS,
            ),
            SimulatedProcess(
                pid=31610,
                tenant="assist/chat-6f9c8d7b5-x2klm/server",
                memory_bytes=2304 * MIB,
                work=SCORING,
                rhythm=Rhythm(0.08, every=12, duty=0.6, spread=0.5),
            ),
        ),
    ),
    SimulatedCard(
        index=3,
        slices=(
            SimulatedSlice(2, THREE),
            SimulatedSlice(7, ONE),
            SimulatedSlice(8, ONE),
            SimulatedSlice(9, ONE),
            SimulatedSlice(10, ONE),
        ),
        processes=(
            SimulatedProcess(
                pid=40120,
                tenant="vision/finetune-wq7rp/worker",
                memory_bytes=58 * GIB,
                work=TUNING,
                rhythm=Rhythm(0.93, every=200, duty=0.92, rest=0.05, spread=0.05),
                instance=2,
            ),
            SimulatedProcess(
                pid=40977,
                tenant="search/embed-5d8f7c-9hzt4/server",
                memory_bytes=9 * GIB,
                swing_bytes=2 * GIB,
                work=SCORING,
                rhythm=CALLS,
                instance=7,
            ),
            SimulatedProcess(
                pid=41233,
                tenant="lab/notebook-1/jupyter",
                memory_bytes=5 * GIB,
                swing_bytes=6 * GIB,
                work=NOTEBOOK,
                rhythm=CELLS,
                instance=8,
            ),
            SimulatedProcess(
                pid=41380,
                tenant="lab/notebook-2/jupyter",
                memory_bytes=11 * GIB,
                work=NOTEBOOK,
                rhythm=NOTHING,
                instance=9,
            ),
        ),
    ),
    SimulatedCard(
        index=4,
        logs_switches=True,
        processes=(
            SimulatedProcess(
                pid=52001,
                tenant="lab/notebook-3/jupyter",
                memory_bytes=14 * GIB,
                swing_bytes=9 * GIB,
                work=NOTEBOOK,
                rhythm=CELLS,
            ),
            SimulatedProcess(
                pid=52440,
                tenant="lab/notebook-4/jupyter",
                memory_bytes=8 * GIB,
                swing_bytes=5 * GIB,
                work=NOTEBOOK,
                rhythm=Rhythm(0.3, every=60, duty=0.3, spread=0.8),
            ),
            SimulatedProcess(
                pid=52718,
                tenant="search/score-nightly-28841-kd5vt/scorer",
                memory_bytes=21 * GIB,
                work=SCORING,
                rhythm=BATCHES,
            ),
            SimulatedProcess(
                pid=52719,
                tenant="search/score-nightly-28841-kd5vt/scorer",
                memory_bytes=21 * GIB,
                work=SCORING,
                rhythm=BATCHES,
            ),
        ),
    ),
    SimulatedCard(
        index=5,
        processes=(
            SimulatedProcess(
                pid=60310,
                tenant="assist/rerank-7c4b9-m8wqs/server",
                memory_bytes=28 * GIB,
                swing_bytes=4 * GIB,
                work=CHAT,
                rhythm=TRICKLE,
            ),
            SimulatedProcess(
                pid=60655,
                tenant="assist/guard-84fdd-t6n2c/server",
                # Its limit is 40 GiB.
                memory_bytes=38 * GIB + 900 * MIB,
                work=SCORING,
                rhythm=BURSTS,
            ),
            SimulatedProcess(
                pid=61102,
                tenant="vision/ocr-0/worker",
                memory_bytes=11 * GIB,
                work=VIDEO,
                rhythm=Rhythm(0.3, every=50, duty=0.7, spread=0.4),
            ),
        ),
    ),
    SimulatedCard(
        index=6,
        corrected_errors=3,
        processes=(
            SimulatedProcess(
                pid=70220,
                tenant="speech/asr-0/server",
                memory_bytes=24 * GIB,
                work=CHAT,
                rhythm=BURSTS,
            ),
            SimulatedProcess(
                pid=70541,
                tenant="speech/asr-1/server",
                memory_bytes=24 * GIB,
                swing_bytes=3 * GIB,
                work=CHAT,
                rhythm=Rhythm(0.5, every=24, duty=0.5, spread=0.7),
            ),
            SimulatedProcess(
                pid=1874,
                tenant="host:video-index",
                memory_bytes=3 * GIB,
                work=VIDEO,
                rhythm=Rhythm(0.22, every=240, duty=0.6, spread=0.3),
            ),
        ),
    ),
    SimulatedCard(
        index=7,
        processes=(
            SimulatedProcess(
                pid=81999,
                tenant="lab/notebook-5/jupyter",
                memory_bytes=60 * GIB,
                work=NOTEBOOK,
                rhythm=NOTHING,
            ),
        ),
    ),
)
