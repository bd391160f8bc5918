import time
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from podgpu.model import SEES_ALL, Device, Gpu, Instance, MigInstance, Process, Report, XidEvent
from podgpu.sources.simulator import NAME
from podgpu.sources.simulator.cast import CARDS
from podgpu.sources.simulator.layout import SimulatedCard
from podgpu.sources.simulator.motion import ROUND, Window
from podgpu.sources.simulator.readings import card_readings, slice_readings
from podgpu.sources.simulator.tape import Activity, Moment, Tape
from podgpu.sources.simulator.turns import busy_windows, switch_log

DRIVER_VERSION = "580.159.04"
NVML_VERSION = "13.580.159.04"
MMU_FAULT = 31

ABLE = replace(SEES_ALL, hears_xids=True)


class Simulator:
    """The demo node. What it shows depends on the seed and on when it is read, as with a real card.

    Use and power are means since the previous reading, at first since the start. Each XID event is reported once, and
    `wall` dates it.
    """

    name = NAME
    demo = True

    def __init__(
        self, *, seed: int, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._tapes = tuple(Tape(card, seed) for card in CARDS)
        self._clock = clock
        self._started = clock()
        self._started_at = wall()
        self._read_at = 0.0

    async def read(self) -> Report:
        elapsed = self._clock() - self._started
        before, self._read_at = self._read_at, elapsed
        # Without any time in between there is no mean.
        window = Window(before if before < elapsed else elapsed - 1, elapsed)
        return Report(
            devices=tuple(_logged(_device(tape.at(window), elapsed), tape, window) for tape in self._tapes),
            events=tuple(
                XidEvent(uuid=card.uuid, xid=MMU_FAULT, at=self._started_at + second)
                for card in CARDS
                for second in _faults(card, after=before, until=elapsed)
            ),
            driver_version=DRIVER_VERSION,
            nvml_version=NVML_VERSION,
        )

    async def release(self, seconds: float) -> bool:
        """Agree at once: there is no hardware to let go of."""
        return True

    async def close(self) -> None:
        """Nothing is open."""


def _faults(card: SimulatedCard, *, after: float, until: float) -> Iterator[int]:
    for start in range(int(after // ROUND) * ROUND, int(until) + 1, ROUND):
        yield from (start + second for second in card.xid_at if after < start + second <= until)


def _device(moment: Moment, elapsed: float) -> Device:
    return Device(
        gpu=_gpu(moment.card),
        at=elapsed,
        ability=ABLE,
        readings=card_readings(moment),
        instances=tuple(_instances(moment)),
        processes=tuple(_process(activity) for activity in moment.activities),
    )


def _logged(device: Device, tape: Tape, window: Window) -> Device:
    if not tape.card.logs_switches:
        return device
    return replace(device, windows=busy_windows(tape, window), log=switch_log(tape, window))


def _gpu(card: SimulatedCard) -> Gpu:
    return Gpu(
        uuid=card.uuid,
        index=card.index,
        minor=card.index,
        model="NVIDIA H200",
        pci_bus_id=card.pci_bus_id,
        architecture="Hopper",
        compute_capability="9.0",
        vbios="96.00.CF.00.01",
        multiprocessors=132,
        mig_enabled=bool(card.slices),
    )


def _instances(moment: Moment) -> Iterator[Instance]:
    for part in moment.card.slices:
        mig = MigInstance(
            uuid=moment.card.slice_uuid(part.gpu_instance_id),
            gpu_instance_id=part.gpu_instance_id,
            compute_instance_id=0,
            profile=part.profile.name,
            multiprocessors=part.profile.multiprocessors,
        )
        yield Instance(mig=mig, readings=slice_readings(moment, part))


def _process(activity: Activity) -> Process:
    resident = activity.resident
    if resident.instance is not None:
        # The driver reports no process's utilisation once a card is partitioned.
        return Process(
            pid=resident.pid,
            kinds=resident.kinds,
            memory_bytes=activity.memory_bytes,
            gpu_instance_id=resident.instance,
            compute_instance_id=0,
        )
    return Process(
        pid=resident.pid,
        kinds=resident.kinds,
        memory_bytes=activity.memory_bytes,
        sm_busy_us=activity.busy_us,
        sm_ratio=activity.load,
        memory_ratio=activity.load * resident.work.dram,
        encoder_ratio=0.0,
        decoder_ratio=activity.load * resident.work.decoder,
    )
