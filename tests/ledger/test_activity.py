"""Who was active: on instances, where nobody can be seen, and in times that nobody watched."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from podgpu.ledger.band import Period
from podgpu.ledger.book import book
from podgpu.ledger.cycle import CycleBooks, Interval, TenantKey
from podgpu.ledger.residency import Evidence
from podgpu.ledger.samples import SAMPLE_US
from podgpu.model import (
    SEES_ALL,
    Ability,
    BusyWindow,
    Claim,
    ContainerRef,
    Device,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    Process,
    Reading,
    Slice,
    SwitchLog,
)
from tests.ledger.test_book import Case, cases
from tests.tree import WATCHED

GPU = "GPU-1"
A, B = (ContainerRef("ns", f"pod-{name}", "main", f"uid-{name}") for name in "ab")
HOLDERS = {1: Holder(pid=1, kind="pod", container=A), 2: Holder(pid=2, kind="pod", container=B)}


def instance(gpu: int, compute: int = 0, activity: float | None = None, *, size: int = 20) -> Instance:
    readings = (
        ()
        if activity is None
        else (Reading("graphics_engine_active_ratio", activity), Reading("sm_active_ratio", activity))
    )
    mig = MigInstance(
        uuid=f"MIG-{gpu}-{compute}", gpu_instance_id=gpu, compute_instance_id=compute, multiprocessors=size
    )
    return Instance(mig=mig, readings=readings)


def on(pid: int, gpu: int, compute: int = 0) -> Process:
    return Process(pid=pid, kinds=("compute",), memory_bytes=1, gpu_instance_id=gpu, compute_instance_id=compute)


def split_card(*instances: Instance, processes: tuple[Process, ...] = ()) -> Device:
    gpu = Gpu(uuid=GPU, index=0, mig_enabled=True, multiprocessors=100)
    return Device(gpu=gpu, ability=WATCHED, instances=instances, processes=processes)


def claim(container: ContainerRef, mig: str = "", share: float = 1.0) -> Claim:
    return Claim(gpu=GPU, mig=mig, container=container, share=share)


def of(sheet: CycleBooks, container: ContainerRef, mig: str = "") -> tuple[int, int, str]:
    entry = sheet.bookings[TenantKey(GPU, mig, container)]
    return entry.busy_us, entry.energy_mj, entry.method


CYCLE = Interval(elapsed_us=1000, energy_mj=1000)


def test_compute_instances_of_one_gpu_instance_share_what_it_did() -> None:
    """The counters are the GPU instance's: that the first compute instance tells them does not make them its own."""
    card = split_card(instance(1, 0, 0.6, size=20), instance(1, 1, size=40), processes=(on(1, 1, 0), on(2, 1, 1)))
    claims = [claim(A, "MIG-1-0"), claim(B, "MIG-1-1")]
    sheet = book(card, CYCLE, claims, HOLDERS)
    assert sheet.busy_us == 360
    assert of(sheet, A, "MIG-1-0") == (120, 333, "weighted")
    assert of(sheet, B, "MIG-1-1") == (240, 667, "weighted")
    entry = sheet.bookings[TenantKey(GPU, "MIG-1-0", A)]
    assert (entry.sm_ratio, entry.instance_ratio) == (0.12, None)


def test_the_only_user_of_a_gpu_instance_did_all_of_it() -> None:
    card = split_card(instance(1, 0, 0.5), instance(1, 1), processes=(on(2, 1, 1),))
    sheet = book(card, CYCLE, [claim(A, "MIG-1-0"), claim(B, "MIG-1-1")], HOLDERS)
    assert of(sheet, B, "MIG-1-1") == (200, 1000, "instance")
    user, holder = sheet.bookings[TenantKey(GPU, "MIG-1-1", B)], sheet.bookings[TenantKey(GPU, "MIG-1-0", A)]
    assert (user.sm_ratio, user.instance_ratio) == (0.2, 0.5), "of the card, and of the instance"
    assert of(sheet, A, "MIG-1-0")[0] == 0
    assert (holder.sm_ratio, holder.instance_ratio) == (0.0, None)


def test_without_profiling_size_stands_in_for_the_activity_of_those_who_are_there() -> None:
    """Cards before Hopper tell nothing of an instance's activity."""
    card = split_card(instance(1, size=60), instance(2, size=20), instance(3), processes=(on(1, 1), on(2, 2)))
    sheet = book(card, CYCLE, [], HOLDERS)
    assert of(sheet, A, "MIG-1-0") == (0, 750, "reserved")
    assert of(sheet, B, "MIG-2-0") == (0, 250, "reserved")
    assert [booking.sm_ratio for booking in sheet.bookings.values()] == [None] * len(sheet.bookings)


def test_an_instance_that_tells_nothing_adds_to_nobodys_bill() -> None:
    card = split_card(instance(1, activity=0.5), instance(2), processes=(on(1, 1), on(2, 2)))
    sheet = book(card, CYCLE, [], HOLDERS)
    assert of(sheet, B, "MIG-2-0")[1] == 0
    assert of(sheet, A, "MIG-1-0")[1] == 333
    assert sheet.bookings["unknown"].energy_mj == 667
    assert sheet.bookings[TenantKey(GPU, "MIG-2-0", B)].sm_ratio is None


def test_instances_of_unknown_size_are_booked_to_nobody() -> None:
    """A dcgm-exporter page does not give the number of multiprocessors: neither shares nor parts are known."""
    unsized = [
        Instance(mig=replace(sized.mig, multiprocessors=None), readings=sized.readings)
        for sized in (instance(1, activity=0.5), instance(2, activity=1.0))
    ]
    card = replace(split_card(*unsized), ability=Ability())
    sheet = book(card, replace(CYCLE, idle_mj=100), [claim(A, "MIG-1-0"), claim(B, "MIG-2-0")], {})
    for container, mig in ((A, "MIG-1-0"), (B, "MIG-2-0")):
        entry = sheet.bookings[TenantKey(GPU, mig, container)]
        assert (entry.share, entry.sm_ratio, entry.method) == (None, None, "")
        assert (entry.busy_us, entry.energy_mj, entry.allocated_us) == (0, 0, 0)
        assert [held.mig for held in entry.claims] == [mig]
    assert sheet.bookings[TenantKey(GPU, "MIG-1-0", A)].instance_ratio == 0.5
    assert sheet.bookings["unknown"].energy_mj == 1000
    assert not sheet.knows_busy


def test_two_claimants_without_a_process_do_not_both_have_the_instances_activity() -> None:
    sheet = book(
        replace(split_card(instance(1, activity=0.5)), ability=Ability()),
        CYCLE,
        [claim(A, "MIG-1-0", 0.5), claim(B, "MIG-1-0", 0.5)],
        {},
    )
    entries = [sheet.bookings[TenantKey(GPU, "MIG-1-0", container)] for container in (A, B)]
    assert [(entry.sm_ratio, entry.instance_ratio) for entry in entries] == [(0.05, None)] * 2
    assert of(sheet, A, "MIG-1-0") == (50, 500, "weighted")


def test_a_pod_that_came_in_a_gap_is_booked_nothing_of_it() -> None:
    """An hour without a look: who held the card then is not known."""
    gap = Interval(elapsed_us=3_600_000_000, energy_mj=1000, idle_mj=400, is_gap=True)
    sheet = book(Device(gpu=Gpu(uuid=GPU, index=0), ability=WATCHED), gap, [claim(A, share=0.5)], {})
    entry = sheet.bookings[TenantKey(GPU, "", A)]
    assert (entry.energy_mj, entry.allocated_us, entry.busy_us) == (0, 0, 0)
    assert (sheet.bookings["idle"].energy_mj, sheet.bookings["unknown"].energy_mj) == (200, 800)


def test_what_an_instance_does_now_says_nothing_about_a_gap() -> None:
    gap = Interval(elapsed_us=3_600_000_000, is_gap=True)
    assert book(split_card(instance(1, activity=1.0)), gap, [], {}).busy_us == 0


@pytest.mark.parametrize(
    "ability", [Ability(), Ability(knows_owners=True), SEES_ALL], ids=["neither", "no list", "no owners"]
)
def test_where_no_process_can_be_seen_the_claimant_is_the_user(ability: Ability) -> None:
    """A driver may still list PIDs of another namespace: they are no reason to take the card from its holder."""
    card = Device(gpu=Gpu(uuid=GPU, index=0), ability=ability, processes=(Process(pid=9, sm_busy_us=800),))
    unseen = {9: Holder(pid=9, kind="unknown", reason="no_host_pid")}
    interval = Interval(elapsed_us=1000, energy_mj=1000, busy_us=800)
    sheet = book(card, interval, [claim(A)], unseen)
    assert of(sheet, A) == (800, 1000, "exclusive")


def test_what_a_log_proves_of_each_is_booked_with_it() -> None:
    """The card was busy for half of the time: what one of them could not have had, the other had."""
    slices = (Slice(1, 0, 600_000), Slice(2, 600_000, 1_000_000))
    log = SwitchLog(begin_ns=0, end_ns=1_000_000, slices=slices, switches=2)
    evidence = Evidence(windows=(BusyWindow(0, 1_000_000, 500_000),), slices=slices, log=log)
    card = Device(gpu=Gpu(uuid=GPU, index=0), ability=WATCHED, processes=(Process(pid=1), Process(pid=2)))
    sheet = book(card, Interval(elapsed_us=1000, busy_us=500), [], HOLDERS, evidence=evidence)
    first, second = (sheet.bookings[TenantKey(GPU, "", container)] for container in (A, B))
    assert (first.least_us, first.most_us, second.least_us, second.most_us) == (100, 500, 0, 400)
    assert first.busy_us + second.busy_us == 500 and 100 < first.busy_us < 500


def test_of_a_process_that_was_not_sampled_nothing_is_known_where_others_may_not_be_seen() -> None:
    ability = replace(WATCHED, sees_all=False)
    processes = (Process(pid=1, kinds=("compute",)), Process(pid=2, kinds=("compute",), sm_busy_us=400))
    card = Device(gpu=Gpu(uuid=GPU, index=0), ability=ability, processes=processes)
    sheet = book(card, Interval(elapsed_us=1000, energy_mj=1000, busy_us=500), [claim(A), claim(B)], HOLDERS)
    assert of(sheet, A) == (0, 0, "") and sheet.bookings[TenantKey(GPU, "", A)].sm_ratio is None
    assert sheet.bookings["unknown"].busy_us == 500


@given(cases())
def test_the_ratios_of_all_are_the_cards_and_never_above_one(case: Case) -> None:
    """Of one base, on MIG too: parts of the whole card's time. Of whom nothing is known, nothing is booked."""
    device, interval, some_claims, found = case
    sheet = book(device, interval, some_claims, found)
    known = [entry.sm_ratio for entry in sheet.bookings.values() if entry.sm_ratio is not None]
    if not sheet.knows_busy or not interval.elapsed_us:
        assert known == []
        return
    assert all(0 <= ratio <= 1 for ratio in known)
    assert sum(known) == pytest.approx(sheet.busy_us / interval.elapsed_us)


def look(*named: tuple[int, int]) -> Device:
    """A whole card and its processes, each with the busy time of the samples that named it."""
    processes = tuple(Process(pid=pid, kinds=("compute",), memory_bytes=1, sm_busy_us=us) for pid, us in named)
    return Device(gpu=Gpu(uuid=GPU, index=0), ability=WATCHED, processes=processes)


BUSY = Interval(elapsed_us=1_000_000, energy_mj=700_000, idle_mj=80_000, busy_us=960_000)


def cycles(interval: Interval, *named: int) -> list[CycleBooks]:
    """A tenant alone on the card, one cycle after another."""
    sheets: list[CycleBooks] = []
    for us in named:
        unnamed = sheets[-1].unnamed_us if sheets else 0
        sheets.append(book(look((1, us)), replace(interval, unnamed_us=unnamed), [claim(A)], HOLDERS))
    return sheets


def test_whoever_is_alone_does_not_pay_for_a_process_that_nobody_sees() -> None:
    """The card is busy, and no look names the only process on it."""
    sheets = cycles(BUSY, 0, 0, 0)
    assert sum(of(sheet, A)[0] for sheet in sheets) == SAMPLE_US  # a look may be late
    assert of(sheets[2], A) == (0, 80_000, "measured")
    unknown = sheets[2].bookings["unknown"]
    assert (unknown.busy_us, unknown.energy_mj) == (960_000, 620_000)


@pytest.mark.parametrize("busy_us", [8000, 10_000])
def test_a_tenant_that_hardly_works_is_not_named_and_has_all_of_it(busy_us: int) -> None:
    """A sample gives whole per cents, so it may find nothing."""
    seldom = replace(BUSY, busy_us=busy_us)
    assert all(of(cycle, A) == (busy_us, 700_000, "exclusive") for cycle in cycles(seldom, *[0] * 60))


def test_whoever_is_alone_has_all_of_it_though_looks_come_late_and_are_rounded() -> None:
    for sheet in cycles(BUSY, 800_000, 1_000_000, 950_000, 950_000, 960_000, 930_000, 950_000):
        assert of(sheet, A) == (960_000, 700_000, "exclusive")


def test_looks_may_miss_one_per_cent_of_the_time_before_anything_counts_as_unnamed() -> None:
    (sheet,) = cycles(BUSY, 900_000)
    assert sheet.unnamed_us == 960_000 - 900_000 - 10_000
    (sheet,) = cycles(replace(BUSY, elapsed_us=2_000_100), 900_000)
    assert sheet.unnamed_us == 960_000 - 900_000 - 20_001


def test_of_a_busy_moment_whoever_is_alone_has_all_if_any_look_names_it() -> None:
    """A card without profiling reports how busy it was a moment ago; samples cover the whole time."""
    moment = replace(BUSY, is_sampled=True)
    assert all(of(sheet, A)[2] == "exclusive" for sheet in cycles(moment, 100_000, 20_000, 10_000))
    assert of(cycles(moment, 0, 0)[1], A)[2] == "measured"


def test_the_band_of_whoever_was_never_named_begins_at_nothing() -> None:
    period = Period()
    for sheet in cycles(BUSY, *[0] * 60):
        period.add(sheet)
    band = period.bands()[TenantKey(GPU, "", A)]
    assert band.likely_least_us < 0.02 * band.elapsed_us
    assert band.booked_us <= band.likely_most_us < 0.05 * band.elapsed_us
