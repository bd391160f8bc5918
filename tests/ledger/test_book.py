"""The books balance, whatever goes in."""

from collections.abc import Mapping

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.ledger.book import book
from podgpu.ledger.cycle import CycleBooking, CycleBooks, Interval, Party, TenantKey
from podgpu.model import (
    SEES_ALL,
    Ability,
    Claim,
    ContainerRef,
    Device,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    Process,
    Reading,
)
from tests.tree import WATCHED

GPU = "GPU-1"
CONTAINERS = [ContainerRef("ns", f"pod-{pod}", "main", f"uid-{pod}") for pod in range(4)] + [
    ContainerRef("ns", "pod-0", "main", "another-uid"),
    ContainerRef("ns", "pod-0", "sidecar", "uid-0"),
]
KINDS = ("host", "container", "unknown")

Case = tuple[Device, Interval, list[Claim], dict[int, Holder]]

bytes_ = st.integers(0, 2**40)
microseconds = st.integers(0, 10_000_000)


@st.composite
def holders(draw: st.DrawFn, pids: list[int]) -> dict[int, Holder]:
    found = {}
    for pid in pids:
        whose = draw(st.sampled_from([*CONTAINERS, *KINDS, None]))
        if isinstance(whose, ContainerRef):
            found[pid] = Holder(pid=pid, kind="pod", container=whose)
        elif whose is not None:
            found[pid] = Holder(pid=pid, kind=whose)
    return found


@st.composite
def plain_device(draw: st.DrawFn) -> Device:
    is_measured = draw(st.booleans())
    pids = draw(st.lists(st.integers(1, 50), unique=True, max_size=8))
    processes = [
        Process(
            pid=pid,
            kinds=draw(st.sampled_from([("compute",), ("compute", "graphics"), ()])),
            memory_bytes=draw(st.none() | bytes_),
            sm_busy_us=draw(microseconds) if is_measured else None,
            sm_ratio=draw(st.floats(0, 1)) if is_measured else None,
        )
        for pid in pids
    ]
    used = draw(st.none() | bytes_)
    readings = () if used is None else (Reading("memory_used_bytes", float(used)),)
    return Device(
        gpu=Gpu(uuid=GPU, index=0),
        processes=tuple(processes),
        ability=Ability(sees_processes=True, sees_all=draw(st.booleans()), knows_owners=True),
        readings=readings,
    )


@st.composite
def mig_device(draw: st.DrawFn) -> Device:
    plain = draw(plain_device())
    instances = [
        Instance(
            mig=MigInstance(uuid=f"MIG-{n}", gpu_instance_id=n // 2, compute_instance_id=n % 2, multiprocessors=16),
            readings=tuple(
                Reading("graphics_engine_active_ratio", ratio) for ratio in draw(st.lists(st.floats(0, 1), max_size=1))
            ),
        )
        for n in range(draw(st.integers(1, 7)))
    ]
    processes = [
        replace(
            process,
            gpu_instance_id=draw(st.integers(0, 4)),
            compute_instance_id=draw(st.integers(0, 1)),
            sm_busy_us=None,
            sm_ratio=None,
        )
        for process in plain.processes
    ]
    gpu = Gpu(uuid=GPU, index=0, mig_enabled=True, multiprocessors=132)
    return replace(plain, gpu=gpu, instances=tuple(instances), processes=tuple(processes))


devices = plain_device() | mig_device()


def _possible(interval: Interval) -> Interval:
    """Nothing is busy for longer than there was time."""
    if interval.busy_us is None:
        return interval
    return replace(interval, busy_us=min(interval.busy_us, interval.elapsed_us))


intervals = st.builds(
    Interval,
    elapsed_us=st.integers(0, 10_000_000),
    energy_mj=st.none() | st.integers(0, 10**7),
    idle_mj=st.integers(0, 10**6),
    busy_us=st.none() | microseconds,
    is_gap=st.booleans(),
).map(_possible)

claims = st.lists(
    st.builds(
        Claim,
        gpu=st.just(GPU),
        mig=st.sampled_from(["", "MIG-0", "MIG-1", "MIG-9"]),
        container=st.sampled_from(CONTAINERS),
        share=st.floats(0, 1),
        memory_limit_bytes=st.none() | bytes_,
    ),
    max_size=8,
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Processes can be seen and their owners known, or not; where they can, the list may be incomplete."""
    device = draw(devices)
    found = draw(holders([process.pid for process in device.processes]))
    unable = st.sampled_from([Ability(), SEES_ALL])
    able = replace(device, ability=draw(st.just(device.ability) | unable))
    return able, draw(intervals), draw(claims), found


def total(entries: Mapping[Party, CycleBooking], name: str) -> int:
    return sum(getattr(entry, name) or 0 for entry in entries.values())


def _in_order(sheet: CycleBooks) -> CycleBooks:
    """Claims are listed as they came in, which is no part of the books."""
    for entry in sheet.bookings.values():
        entry.claims.sort(key=str)
    return sheet


def of(sheet: CycleBooks, container: ContainerRef) -> list[CycleBooking]:
    return [
        entry
        for party, entry in sheet.bookings.items()
        if isinstance(party, TenantKey) and party.container == container
    ]


@given(cases())
def test_containers_and_the_rest_make_up_the_device_exactly(
    case: Case,
) -> None:
    device, interval, some_claims, found = case
    sheet = book(device, interval, some_claims, found)
    assert total(sheet.bookings, "busy_us") == sheet.busy_us
    assert total(sheet.bookings, "energy_mj") == sheet.energy_mj == (interval.energy_mj or 0)
    if sheet.memory_bytes is not None:
        assert total(sheet.bookings, "memory_bytes") == sheet.memory_bytes


@given(cases())
def test_no_entry_is_negative_or_above_its_device(
    case: Case,
) -> None:
    device, interval, some_claims, found = case
    sheet = book(device, interval, some_claims, found)
    for entry in sheet.bookings.values():
        assert 0 <= entry.busy_us <= sheet.busy_us <= interval.elapsed_us
        assert 0 <= entry.energy_mj <= sheet.energy_mj
        assert 0 <= entry.allocated_us <= interval.elapsed_us
        if entry.memory_bytes is not None and sheet.memory_bytes is not None:
            assert 0 <= entry.memory_bytes <= sheet.memory_bytes


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_what_comes_in_does_not_matter(case: Case, random: st.DrawFn) -> None:
    device, interval, some_claims, found = case
    once = book(device, interval, some_claims, found)
    processes, turned = list(device.processes), list(some_claims)
    random.shuffle(processes)  # type: ignore[attr-defined]
    turned.reverse()
    again = book(
        replace(device, processes=tuple(processes)),
        interval,
        turned,
        dict(reversed(found.items())),
    )
    assert _in_order(again) == _in_order(once)


@given(cases(), st.integers(1000, 1010), bytes_, microseconds)
def test_a_foreign_process_never_raises_what_another_pod_is_booked(
    case: Case, pid: int, memory: int, busy: int
) -> None:
    device, interval, some_claims, found = case
    assume(device.ability.sees_processes and device.ability.knows_owners)
    is_measured = all(process.sm_busy_us is not None for process in device.processes)
    foreign = Process(
        pid=pid,
        kinds=("compute",),
        memory_bytes=memory,
        sm_busy_us=busy if is_measured and not device.instances else None,
        gpu_instance_id=0 if device.instances else None,
        compute_instance_id=0 if device.instances else None,
    )
    stranger = ContainerRef("ns", "stranger", "main", "uid-stranger")
    more = replace(device, processes=(*device.processes, foreign))
    before = book(device, interval, some_claims, found)
    after = book(more, interval, some_claims, {**found, pid: Holder(pid=pid, kind="pod", container=stranger)})
    for container in CONTAINERS:
        for name in ("busy_us", "energy_mj", "memory_bytes"):
            was = sum(getattr(entry, name) or 0 for entry in of(before, container))
            now = sum(getattr(entry, name) or 0 for entry in of(after, container))
            # Largest remainder may move a single unit.
            assert now <= was + 1, (name, container)


@given(cases())
def test_two_pods_of_one_name_never_merge(
    case: Case,
) -> None:
    device, interval, some_claims, found = case
    sheet = book(device, interval, some_claims, found)
    for uid in ("uid-0", "another-uid"):
        mine = {pid for pid, holder in found.items() if holder.container == ContainerRef("ns", "pod-0", "main", uid)}
        listed = sum(process.pid in mine and bool(process.kinds) for process in device.processes)
        booked = sum(entry.running for entry in of(sheet, ContainerRef("ns", "pod-0", "main", uid)))
        assert booked == listed


def plain(*processes: Process, used: int = 0) -> Device:
    return Device(
        gpu=Gpu(uuid=GPU, index=0),
        ability=WATCHED,
        processes=processes,
        readings=(Reading("memory_used_bytes", float(used)),),
    )


def holds(pid: int, container: ContainerRef) -> dict[int, Holder]:
    return {pid: Holder(pid=pid, kind="pod", container=container)}


A, B = CONTAINERS[0], CONTAINERS[1]


def test_a_container_alone_on_a_card_is_booked_all_of_it() -> None:
    device = plain(Process(pid=1, kinds=("compute",), memory_bytes=70, sm_busy_us=10), used=100)
    sheet = book(
        device,
        Interval(elapsed_us=1000, energy_mj=500, idle_mj=100, busy_us=800),
        [Claim(gpu=GPU, container=A)],
        holds(1, A),
    )
    entry = sheet.bookings[TenantKey(GPU, "", A)]
    assert (entry.busy_us, entry.energy_mj, entry.memory_bytes) == (800, 500, 70)
    assert entry.method == "exclusive"
    assert sheet.bookings["overhead"].memory_bytes == 30


def test_two_tenants_are_booked_by_their_measured_time() -> None:
    device = plain(
        Process(pid=1, kinds=("compute",), memory_bytes=0, sm_busy_us=600),
        Process(pid=2, kinds=("compute",), memory_bytes=0, sm_busy_us=200),
    )
    sheet = book(
        device,
        Interval(elapsed_us=1000, energy_mj=1000, idle_mj=200, busy_us=1000),
        [Claim(gpu=GPU, container=A, share=0.5), Claim(gpu=GPU, container=B, share=0.25)],
        holds(1, A) | holds(2, B),
    )
    of_a, of_b = sheet.bookings[TenantKey(GPU, "", A)], sheet.bookings[TenantKey(GPU, "", B)]
    assert (of_a.busy_us, of_b.busy_us, sheet.bookings["unknown"].busy_us) == (600, 200, 200)
    # idle: half, a quarter and a quarter unreserved of 200; active: six, two and two tenths of 800
    assert (of_a.energy_mj, of_b.energy_mj) == (100 + 480, 50 + 160)
    assert sheet.bookings["idle"].energy_mj == 50
    assert sheet.bookings["unknown"].energy_mj == 160


def test_an_idle_holder_pays_for_the_idle_power_it_reserved() -> None:
    sheet = book(
        plain(Process(pid=1, kinds=("compute",), memory_bytes=5, sm_busy_us=0), used=5),
        Interval(elapsed_us=1000, energy_mj=400, idle_mj=100, busy_us=0),
        [Claim(gpu=GPU, container=A)],
        holds(1, A),
    )
    assert sheet.bookings[TenantKey(GPU, "", A)].energy_mj == 400


def test_memory_nobody_can_measure_is_absent_and_its_bytes_unknown() -> None:
    sheet = book(
        plain(Process(pid=1, kinds=("compute",), memory_bytes=None, sm_busy_us=0), used=100),
        Interval(elapsed_us=1000),
        [],
        holds(1, A),
    )
    assert sheet.bookings[TenantKey(GPU, "", A)].memory_bytes is None
    assert sheet.bookings["unknown"].memory_bytes == 100


def test_a_gap_is_nobodys() -> None:
    sheet = book(
        plain(Process(pid=1, kinds=("compute",), memory_bytes=0, sm_busy_us=500)),
        Interval(elapsed_us=10**8, energy_mj=1000, idle_mj=300, is_gap=True),
        [],
        holds(1, A),
    )
    assert sheet.bookings["unknown"].energy_mj == 700
    assert sheet.bookings["idle"].energy_mj == 300
    assert sheet.bookings[TenantKey(GPU, "", A)].energy_mj == 0


def test_instances_are_weighed_by_activity_and_size() -> None:
    def instance(number: int, multiprocessors: int, activity: float) -> Instance:
        return Instance(
            mig=MigInstance(
                uuid=f"MIG-{number}",
                gpu_instance_id=number,
                compute_instance_id=0,
                multiprocessors=multiprocessors,
            ),
            readings=(
                Reading("graphics_engine_active_ratio", activity),
                Reading("sm_active_ratio", activity),
            ),
        )

    device = Device(
        gpu=Gpu(uuid=GPU, index=0, mig_enabled=True, multiprocessors=100),
        ability=WATCHED,
        instances=(instance(0, 60, 0.5), instance(1, 20, 1.0)),
        processes=(
            Process(pid=1, kinds=("compute",), memory_bytes=1, gpu_instance_id=0, compute_instance_id=0),
            Process(pid=2, kinds=("compute",), memory_bytes=1, gpu_instance_id=1, compute_instance_id=0),
        ),
    )
    sheet = book(
        device,
        Interval(elapsed_us=1000, energy_mj=1000, idle_mj=0),
        [Claim(gpu=GPU, mig="MIG-0", container=A), Claim(gpu=GPU, mig="MIG-1", container=B)],
        holds(1, A) | holds(2, B),
    )
    of_a, of_b = sheet.bookings[TenantKey(GPU, "MIG-0", A)], sheet.bookings[TenantKey(GPU, "MIG-1", B)]
    assert (of_a.busy_us, of_b.busy_us, sheet.busy_us) == (300, 200, 500)
    assert (of_a.energy_mj, of_b.energy_mj) == (600, 400)
    assert (of_a.share, of_a.allocated_us, of_a.method) == (0.6, 600, "instance")
    assert (of_a.sm_ratio, of_a.instance_ratio, of_b.sm_ratio, of_b.instance_ratio) == (0.3, 0.5, 0.2, 1.0)


def test_energy_far_above_idle_is_nobodys_when_nobody_was_seen_at_work() -> None:
    """Two looks at a card may miss a burst between them: its energy is not the idle holders'."""
    device = plain(
        Process(pid=1, kinds=("compute",), memory_bytes=0, sm_busy_us=0),
        Process(pid=2, kinds=("compute",), memory_bytes=0, sm_busy_us=0),
    )
    sheet = book(
        device,
        Interval(elapsed_us=1000, energy_mj=1000, idle_mj=100, busy_us=0),
        [Claim(gpu=GPU, container=A, share=0.5), Claim(gpu=GPU, container=B, share=0.5)],
        holds(1, A) | holds(2, B),
    )
    assert sheet.bookings[TenantKey(GPU, "", A)].energy_mj == 100
    assert sheet.bookings["unknown"].energy_mj == 800


def test_nobody_is_alone_on_a_card_whose_processes_could_not_all_be_listed() -> None:
    device = plain(Process(pid=1, kinds=("graphics",), memory_bytes=10, sm_busy_us=100), used=100)
    sheet = book(
        replace(device, ability=replace(device.ability, sees_all=False)),
        Interval(elapsed_us=1000, energy_mj=1000, idle_mj=0, busy_us=1000),
        [],
        holds(1, A),
    )
    entry = sheet.bookings[TenantKey(GPU, "", A)]
    assert (entry.busy_us, entry.energy_mj, entry.memory_bytes) == (100, 100, 10)
    rest = sheet.bookings["unknown"]
    assert (rest.busy_us, rest.energy_mj, rest.memory_bytes) == (900, 900, 90)
