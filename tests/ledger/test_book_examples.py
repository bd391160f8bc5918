"""Who is booked what, by example."""

from msgspec.structs import replace

from podgpu.ledger.account import Account, Interval
from podgpu.ledger.book import book
from podgpu.model import Claim, ContainerRef, Device, Gpu, Holder, Instance, MigInstance, Process, Reading
from tests.tree import WATCHED

GPU = "GPU-1"
A, B = (ContainerRef("ns", f"pod-{pod}", "main", f"uid-{pod}") for pod in range(2))


def plain(*processes: Process, used: int = 0) -> Device:
    return Device(
        gpu=Gpu(uuid=GPU, index=0),
        ability=WATCHED,
        processes=processes,
        readings=(Reading("memory_used_bytes", float(used)),),
    )


def holds(pid: int, container: ContainerRef) -> dict[int, Holder]:
    return {pid: Holder(pid=pid, kind="pod", container=container)}


def test_a_container_alone_on_a_card_is_booked_all_of_it() -> None:
    device = plain(Process(pid=1, kinds=("compute",), memory_bytes=70, sm_busy_us=10), used=100)
    sheet = book(
        device,
        Interval(elapsed_us=1000, energy_mj=500, idle_mj=100, busy_us=800),
        [Claim(gpu=GPU, container=A)],
        holds(1, A),
    )
    entry = sheet.entries[Account(GPU, "", A)]
    assert (entry.busy_us, entry.energy_mj, entry.memory_bytes) == (800, 500, 70)
    assert entry.method == "exclusive"
    assert sheet.entries["overhead"].memory_bytes == 30


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
    one, two = sheet.entries[Account(GPU, "", A)], sheet.entries[Account(GPU, "", B)]
    assert (one.busy_us, two.busy_us, sheet.entries["unknown"].busy_us) == (600, 200, 200)
    # idle: half, a quarter and a quarter unreserved of 200; active: six, two and two tenths of 800
    assert (one.energy_mj, two.energy_mj) == (100 + 480, 50 + 160)
    assert sheet.entries["idle"].energy_mj == 50
    assert sheet.entries["unknown"].energy_mj == 160


def test_an_idle_holder_pays_for_the_idle_power_it_reserved() -> None:
    sheet = book(
        plain(Process(pid=1, kinds=("compute",), memory_bytes=5, sm_busy_us=0), used=5),
        Interval(elapsed_us=1000, energy_mj=400, idle_mj=100, busy_us=0),
        [Claim(gpu=GPU, container=A)],
        holds(1, A),
    )
    assert sheet.entries[Account(GPU, "", A)].energy_mj == 400


def test_memory_nobody_can_measure_is_absent_and_its_bytes_unknown() -> None:
    sheet = book(
        plain(Process(pid=1, kinds=("compute",), memory_bytes=None, sm_busy_us=0), used=100),
        Interval(elapsed_us=1000),
        [],
        holds(1, A),
    )
    assert sheet.entries[Account(GPU, "", A)].memory_bytes is None
    assert sheet.entries["unknown"].memory_bytes == 100


def test_a_gap_is_nobodys() -> None:
    sheet = book(
        plain(Process(pid=1, kinds=("compute",), memory_bytes=0, sm_busy_us=500)),
        Interval(elapsed_us=10**8, energy_mj=1000, idle_mj=300, is_gap=True),
        [],
        holds(1, A),
    )
    assert sheet.entries["unknown"].energy_mj == 700
    assert sheet.entries["idle"].energy_mj == 300
    assert sheet.entries[Account(GPU, "", A)].energy_mj == 0


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
    one, two = sheet.entries[Account(GPU, "MIG-0", A)], sheet.entries[Account(GPU, "MIG-1", B)]
    assert (one.busy_us, two.busy_us, sheet.busy_us) == (300, 200, 500)
    assert (one.energy_mj, two.energy_mj) == (600, 400)
    assert (one.share, one.allocated_us, one.sm_ratio, one.method) == (0.6, 600, 0.5, "instance")


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
    assert sheet.entries[Account(GPU, "", A)].energy_mj == 100
    assert sheet.entries["unknown"].energy_mj == 800


def test_nobody_is_alone_on_a_card_whose_processes_could_not_all_be_listed() -> None:
    device = plain(Process(pid=1, kinds=("graphics",), memory_bytes=10, sm_busy_us=100), used=100)
    sheet = book(
        replace(device, ability=replace(device.ability, sees_all=False)),
        Interval(elapsed_us=1000, energy_mj=1000, idle_mj=0, busy_us=1000),
        [],
        holds(1, A),
    )
    entry = sheet.entries[Account(GPU, "", A)]
    assert (entry.busy_us, entry.energy_mj, entry.memory_bytes) == (100, 100, 10)
    rest = sheet.entries["unknown"]
    assert (rest.busy_us, rest.energy_mj, rest.memory_bytes) == (900, 900, 90)
