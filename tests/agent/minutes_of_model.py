"""Plays the tenants of the model through the real books, cycle by cycle, and returns what each minute claimed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace

from podgpu.agent.books import CardBooks
from podgpu.ledger.book import Checked, book
from podgpu.ledger.cycle import CycleBooks, Interval
from podgpu.ledger.residency import Evidence
from podgpu.model import (
    SEES_ALL,
    Band,
    BusyWindow,
    ContainerRef,
    Device,
    Gpu,
    Holder,
    Process,
    Sampling,
    Slice,
    SpotLog,
    SwitchLog,
)
from tests.tenant_model import SAMPLE, SECOND, ModelRun

ABLE = replace(SEES_ALL, knows_owners=True)
CARD = Gpu(uuid="GPU-model", index=0)
MINUTE = 60 * SECOND
CHECK = 3 * SECOND // 10
STRETCH = 12 * (CHECK + SECOND // 4)  # the log is open for a quarter of a second longer


@dataclass(frozen=True)
class TenantMinute:
    """What was true of one tenant in one minute, in microseconds, and what the books say."""

    tenant: int
    minute: int
    true_us: float
    resident_us: float  # with its part of the switching
    card_us: int
    band: Band
    sampling: Sampling | None
    method: str

    @property
    def is_within_bounds(self) -> bool:
        return self.band.least_us - 2 <= self.true_us <= self.band.most_us + 2

    @property
    def is_likely(self) -> bool:
        return self.band.likely_least_us - 2 <= self.true_us <= self.band.likely_most_us + 2

    @property
    def points(self) -> float:
        """By how many hundredths of the card's time the booking is off."""
        return 100 * (self.band.booked_us - self.true_us) / self.band.elapsed_us


def minutes(
    made: ModelRun, *, switches: str = "off", cycle: float = 5.0, chance: Random | None = None
) -> Iterator[TenantMinute]:
    """`switches` is `off`, `check` or `auto`, as the option."""
    books, step = CardBooks(), round(cycle * SECOND)
    spots = list(_spots(made, chance or Random(0))) if switches == "check" else []
    for number, begin in enumerate(range(0, made.length - step + 1, step)):
        end = begin + step
        logs = [log for at, log in spots if begin <= at < end]
        checked = Checked(logs=logs, corrections=books.corrections()) if switches == "check" else None
        evidence = _evidence(made, begin, end) if switches == "auto" else None
        sheet = book(
            _device(made, begin, end), _interval(made, begin, end), (), _holders(made), (), evidence, checked=checked
        )
        books.post(sheet, _interval(made, begin, end), number * cycle, number * cycle)
        _balanced(sheet)
        if end % MINUTE == 0:
            yield from _judged(made, books, end)


def _judged(made: ModelRun, books: CardBooks, end: int) -> Iterator[TenantMinute]:
    assert books.last_period is not None
    card_us = books.last_period.booked_us
    busy, resident = made.busy(end - MINUTE, end), made.resident(end - MINUTE, end)
    # A change of contexts counts as busy, and is divided like the rest.
    scale = card_us / (sum(busy) or 1)
    for key, totals in books.tenants.items():
        tenant = int(key.container.pod_uid)
        assert totals.band is not None and totals.booking is not None
        yield TenantMinute(
            tenant=tenant,
            minute=end // MINUTE,
            true_us=busy[tenant] * scale,
            resident_us=resident[tenant] * 60e6 / (sum(resident) or 1),
            card_us=card_us,
            band=totals.band,
            sampling=totals.booking.sampling,
            method=totals.method,
        )


def _balanced(sheet: CycleBooks) -> None:
    assert sum(booking.busy_us for booking in sheet.bookings.values()) == sheet.busy_us
    assert sum(booking.energy_mj for booking in sheet.bookings.values()) == sheet.energy_mj


def _interval(made: ModelRun, begin: int, end: int) -> Interval:
    busy_us = _busy(made, begin, end) // 1000
    idle_mj, active_mj = (end - begin) // 10_000_000, busy_us // 2000
    return Interval(
        elapsed_us=(end - begin) // 1000,
        busy_us=busy_us,
        energy_mj=idle_mj + active_mj,
        energy_us=(end - begin) // 1000,
        idle_mj=idle_mj,
    )


def _busy(made: ModelRun, begin: int, end: int) -> int:
    """The card does not tell work from a change of contexts between two that have work."""
    worked = sum(made.busy(begin, end))
    idle = sum(
        max(0, min(turn.end, end) - max(turn.worked, begin))
        for turn in made.within(begin, end)
        if turn.end > turn.worked
    )
    return max(worked, min(end - begin, end - begin - idle))


def _device(made: ModelRun, begin: int, end: int) -> Device:
    samples = [sample for sample in made.samples if begin <= sample.at < end]
    processes = tuple(
        Process(
            pid=1 + tenant,
            kinds=("compute",),
            sm_busy_us=round(sum(sample.busy for sample in samples if sample.tenant == tenant) * SAMPLE / 1000),
        )
        for tenant in range(made.tenants)
    )
    return Device(gpu=CARD, ability=ABLE, processes=processes)


def _holders(made: ModelRun) -> dict[int, Holder]:
    refs = [ContainerRef("model", f"tenant-{tenant}", "main", f"{tenant}") for tenant in range(made.tenants)]
    return {1 + tenant: Holder(pid=1 + tenant, kind="pod", container=ref) for tenant, ref in enumerate(refs)}


def _slices(made: ModelRun, begin: int, end: int) -> Sequence[Slice]:
    found: list[Slice] = []
    for turn in made.within(begin, end):
        piece = Slice(1 + turn.tenant, max(turn.begin, begin), min(turn.end, end))
        if found and found[-1].pid == piece.pid and found[-1].end_ns == piece.begin_ns:
            found[-1] = Slice(piece.pid, found[-1].begin_ns, piece.end_ns)
        elif piece.end_ns > piece.begin_ns:
            found.append(piece)
    return found


def _evidence(made: ModelRun, begin: int, end: int) -> Evidence:
    slices = tuple(_slices(made, begin, end))
    windows = tuple(
        BusyWindow(at, at + SAMPLE, _busy(made, at, at + SAMPLE)) for at in range(begin, end - SAMPLE + 1, SAMPLE)
    )
    log = SwitchLog(begin_ns=begin, end_ns=end, slices=slices, switches=len(slices))
    return Evidence(windows=windows, slices=slices, log=log)


def _spots(made: ModelRun, chance: Random) -> Iterator[tuple[int, SpotLog]]:
    """Checks as the reading process makes them: nothing is known of one without a switch within a second."""
    for begin in range(0, made.length - STRETCH + 1, STRETCH):
        at = begin + round(chance.random() * (STRETCH - SECOND))
        slices = _slices(made, at, at + CHECK)
        is_quiet = len(_slices(made, at, at + 3 * SECOND // 4)) < 2
        yield at, SpotLog(stands_for=STRETCH / 1e9, slices=() if is_quiet else tuple(slices))
