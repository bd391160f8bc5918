import time
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from podgpu.model import SEES_ALL, Device, Gpu, Instance, MigInstance, Process, Report, XidEvent
from podgpu.sources.simulator import NAME
from podgpu.sources.simulator.context_switches import busy_windows, spot_logs, switch_log
from podgpu.sources.simulator.readings import card_readings, instance_readings
from podgpu.sources.simulator.scenario import CARDS, SimulatedCard, SimulatedInstance
from podgpu.sources.simulator.timeline import MULTIPROCESSORS, ROUND, Activity, CardTimeline, ReadingWindow

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
        self._timelines = tuple(CardTimeline(card, seed) for card in CARDS)
        self._clock = clock
        self._started = clock()
        self._started_at = wall()
        self._read_at = 0.0

    async def read(self) -> Report:
        elapsed = self._clock() - self._started
        before, self._read_at = self._read_at, elapsed
        # Without any time in between there is no mean.
        window = ReadingWindow(before if before < elapsed else elapsed - 1, elapsed)
        return Report(
            devices=tuple(_device(timeline, window) for timeline in self._timelines),
            events=tuple(
                XidEvent(uuid=card.uuid, xid=MMU_FAULT, at=self._started_at + second)
                for card in CARDS
                for second in _faults(card, after=before, until=elapsed)
            ),
            driver_version=DRIVER_VERSION,
            nvml_version=NVML_VERSION,
        )

    async def release(self, seconds: float) -> bool:
        """Return True at once: there is no hardware."""
        return True

    async def close(self) -> None:
        """Nothing is open."""


def _faults(card: SimulatedCard, *, after: float, until: float) -> Iterator[int]:
    for start in range(int(after // ROUND) * ROUND, int(until) + 1, ROUND):
        yield from (start + second for second in card.xid_at if after < start + second <= until)


def _device(timeline: CardTimeline, window: ReadingWindow) -> Device:
    card, activities = timeline.card, timeline.activities(window)
    return Device(
        gpu=Gpu(
            uuid=card.uuid,
            index=card.index,
            minor=card.index,
            model="NVIDIA H200",
            pci_bus_id=f"00000000:{0x18 + 0x11 * card.index:02X}:00.0",
            architecture="Hopper",
            compute_capability="9.0",
            vbios="96.00.CF.00.01",
            multiprocessors=MULTIPROCESSORS,
            mig_enabled=bool(card.instances),
        ),
        at=window.end,
        ability=ABLE,
        readings=card_readings(timeline, window, activities),
        instances=tuple(_instance(card, instance, activities) for instance in card.instances),
        processes=tuple(map(_process, activities)),
        windows=busy_windows(timeline, window) if card.logs_switches else (),
        log=switch_log(timeline, window) if card.logs_switches else None,
        checks=spot_logs(timeline, window) if card.checks_switches else None,
    )


def _instance(card: SimulatedCard, instance: SimulatedInstance, activities: Iterable[Activity]) -> Instance:
    mig = MigInstance(
        uuid=card.instance_uuid(instance.gpu_instance_id),
        gpu_instance_id=instance.gpu_instance_id,
        compute_instance_id=0,
        profile=instance.profile.name,
        multiprocessors=instance.profile.multiprocessors,
    )
    return Instance(mig=mig, readings=instance_readings(instance, activities))


def _process(activity: Activity) -> Process:
    simulated = activity.process
    process = Process(pid=simulated.pid, kinds=("compute",), memory_bytes=activity.memory_bytes)
    if simulated.instance is not None:
        # The driver reports no process's utilization once a card is partitioned.
        return replace(process, gpu_instance_id=simulated.instance, compute_instance_id=0)
    return replace(
        process,
        sm_busy_us=activity.named_us,
        sm_ratio=activity.named_load,
        memory_ratio=activity.load * simulated.mix.dram,
        encoder_ratio=0.0,
        decoder_ratio=activity.load * simulated.mix.decoder,
    )
