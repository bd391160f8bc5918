"""Who is on a card: tenants there now and former ones, whether they idle, and what is left to nobody."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from podgpu.agent.books import NodeBooks
from podgpu.agent.join import Join, unattributed
from podgpu.agent.loop import Agent
from podgpu.ledger.book import book
from podgpu.ledger.cycle import Interval
from podgpu.model import (
    SEES_ALL,
    Ability,
    Booking,
    Card,
    Claim,
    ContainerRef,
    Device,
    Fault,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    Process,
    Reading,
    Report,
    VirtualGpu,
    Workload,
)
from tests.tree import SETTINGS, WATCHED

GPU = "GPU-1"
A, B = (ContainerRef("ns", f"pod-{name}", "main", f"uid-{name}") for name in "ab")
CLAIM = Claim(gpu=GPU, container=A)
RUNS = Process(pid=1, kinds=("compute",), memory_bytes=5, sm_busy_us=10)
OF_A = {1: Holder(pid=1, kind="pod", container=A)}
CYCLE = Interval(elapsed_us=1000, energy_mj=100, energy_us=1000, busy_us=500)


def device(*processes: Process, ability: Ability = WATCHED, instances: Iterable[Instance] = ()) -> Device:
    return Device(gpu=Gpu(uuid=GPU, index=0), ability=ability, processes=processes, instances=tuple(instances))


class Cycles:
    """Cycles of one card, as the agent books and joins them."""

    def __init__(self, vgpus: Iterable[VirtualGpu] = ()) -> None:
        self._accounts = NodeBooks()
        self._now = 0.0
        self._join = Join(vgpus, {A.pod_uid: Workload(kind="Job", name=A.pod)}, {A.pod_uid: 1000.0})

    def cycle(self, device: Device, holders: dict[int, Holder], *claims: Claim, interval: Interval = CYCLE) -> Card:
        self._now += 5.0
        sheets = [] if device.fault else [(book(device, interval, claims, holders), interval)]
        self._accounts.post(sheets, self._now, self._now)
        return self._join.card(device, self._accounts.cards.get(GPU), claims)


def joined(device: Device, holders: dict[int, Holder], *claims: Claim) -> Card:
    return Cycles().cycle(device, holders, *claims)


HOST = {9: Holder(pid=9, kind="host")}
STRANGE = {9: Holder(pid=9, kind="unknown", reason="unrecognised")}
OTHER = Process(pid=9, kinds=("compute",))
PARTIAL = replace(WATCHED, sees_all=False)


@pytest.mark.parametrize(
    ("card", "holders", "idle", "processes"),
    [
        (device(), {}, True, 0),
        (device(OTHER), HOST, True, 0),
        (device(RUNS), OF_A, False, 1),
        (device(RUNS, ability=PARTIAL), OF_A, False, 1),
        (device(RUNS, OTHER), OF_A | STRANGE, False, 1),
        (device(ability=PARTIAL), {}, None, None),
        (device(OTHER), STRANGE, None, None),
        (device(OTHER), {}, None, None),
        (device(ability=SEES_ALL), {}, None, None),
        (device(ability=Ability()), {}, None, None),
        (device(replace(RUNS, kinds=())), OF_A, True, 0),
    ],
    ids=[
        "nobody there",
        "somebody else there",
        "its process",
        "its process on an incomplete list",
        "its process beside an unknown one",
        "an incomplete list",
        "an unknown process",
        "a process that nobody looked up",
        "owners that cannot be looked up",
        "a source without processes",
        "its process has just ended",
    ],
)
def test_a_tenant_idles_is_at_work_or_nobody_knows(
    card: Device, holders: dict[int, Holder], idle: bool | None, processes: int | None
) -> None:
    (tenant,) = joined(card, holders, CLAIM).tenants
    assert (tenant.idle, tenant.booking.processes) == (idle, processes)


def test_on_a_silent_card_those_who_hold_it_are_there_and_nothing_is_known_of_them() -> None:
    """Whoever had processes without a claim is a former tenant: nobody knows whether he still has some."""
    books = Cycles()
    both = OF_A | {2: Holder(pid=2, kind="pod", container=B)}
    before = books.cycle(device(RUNS, replace(RUNS, pid=2)), both, CLAIM)
    silent = replace(device(), fault=Fault(reason="lost"))
    card = books.cycle(silent, {}, CLAIM)
    (tenant,), (former,) = card.tenants, card.ended
    assert (tenant.container, former.container) == (A, B)
    assert (tenant.claims, tenant.idle, tenant.processes) == ((CLAIM,), None, ())
    was = {earlier.container: earlier.booking for earlier in before.tenants}
    for kept in (tenant, former):
        counters = {name: getattr(was[kept.container], name) for name in ("busy_us", "energy_mj", "allocated_us")}
        assert kept.booking == Booking(method=was[kept.container].method, **counters)
    assert card.balance and before.balance
    assert replace(before.balance, memory_bytes=None, busy_ratio=None) == card.balance


def test_on_a_silent_card_that_was_never_booked_its_holders_are_there() -> None:
    silent = replace(device(), fault=Fault(reason="lost"))
    card = joined(silent, {}, CLAIM)
    assert [(tenant.container, tenant.booking) for tenant in card.tenants] == [(A, Booking())]
    assert card.balance is None


def test_who_left_is_a_former_tenant_with_counters_alone() -> None:
    books = Cycles()
    books.cycle(device(RUNS), OF_A, CLAIM)
    card = books.cycle(device(), {})
    assert card.tenants == ()
    (former,) = card.ended
    assert (former.container, former.claims, former.processes, former.idle) == (A, (), (), None)
    assert former.booking.busy_us == 500
    gauges = ("processes", "memory_bytes", "sm_ratio", "power_watts", "allocated_ratio", "last_active_at")
    assert {getattr(former.booking, name) for name in gauges} == {None}


def test_whoever_comes_back_is_a_tenant_again_and_counts_on() -> None:
    books = Cycles()
    books.cycle(device(RUNS), OF_A, CLAIM)
    books.cycle(device(), {})
    card = books.cycle(device(RUNS), OF_A, CLAIM)
    assert card.ended == ()
    assert [tenant.booking.busy_us for tenant in card.tenants] == [1000]


def split(*compute_instances: int) -> list[Instance]:
    """One GPU instance, cut into these compute instances."""
    return [
        Instance(mig=MigInstance(uuid=f"MIG-{number}", gpu_instance_id=7, compute_instance_id=number))
        for number in compute_instances
    ]


@pytest.mark.parametrize(
    ("instances", "compute", "place"),
    [
        (split(3), None, "MIG-3"),
        (split(0, 1), None, ""),
        (split(0, 1), 1, "MIG-1"),
        (split(0, 1), 5, ""),
        ([], None, ""),
    ],
    ids=["the only one", "one of two", "named", "not there", "gone"],
)
def test_a_process_that_names_its_gpu_instance_alone_is_on_its_only_compute_instance(
    instances: list[Instance], compute: int | None, place: str
) -> None:
    process = replace(RUNS, gpu_instance_id=7, compute_instance_id=compute)
    (tenant,) = joined(device(process, instances=instances), OF_A).tenants
    assert tenant.mig == place
    assert [listed.mig for listed in tenant.processes] == [place]


def test_a_claim_on_an_instance_is_where_its_process_is() -> None:
    process = replace(RUNS, gpu_instance_id=7, compute_instance_id=None)
    claim = replace(CLAIM, mig="MIG-3")
    (tenant,) = joined(device(process, instances=split(3)), OF_A, claim).tenants
    assert (tenant.mig, tenant.claims, tenant.idle) == ("MIG-3", (claim,), False)


def test_who_holds_a_card_holds_it_since_its_pod_started() -> None:
    """Whoever uses a card without having been given it holds nothing."""
    (tenant,) = joined(device(), {}, CLAIM).tenants
    assert (tenant.held_since, tenant.booking.last_active_at) == (1000.0, None)
    (user,) = joined(device(RUNS), OF_A).tenants
    assert (user.held_since, user.booking.last_active_at) == (None, 5.0)


def test_the_cards_busy_time_is_that_of_all_on_it() -> None:
    card = joined(device(RUNS, replace(OTHER, sm_busy_us=30)), OF_A | HOST, CLAIM)
    ratios = {rest.reason: rest.sm_ratio for rest in card.rest if rest.sm_ratio is not None}
    assert card.balance and card.balance.busy_ratio == 0.5
    assert [tenant.booking.sm_ratio for tenant in card.tenants] == [0.01]
    assert ratios == {"host": 0.03, "unknown": 0.46}


def test_tenants_stand_by_instance_and_name_and_the_largest_process_first() -> None:
    processes = [replace(RUNS, pid=pid, memory_bytes=size) for pid, size in ((1, 5), (2, 9), (3, 9), (4, 1))]
    holders = {pid: Holder(pid=pid, kind="pod", container=A) for pid in (1, 2, 3)}
    holders[4] = Holder(pid=4, kind="pod", container=B)
    card = joined(device(*processes), holders, replace(CLAIM, container=B))
    assert [tenant.container for tenant in card.tenants] == [A, B]
    assert [[process.pid for process in tenant.processes] for tenant in card.tenants] == [[2, 3, 1], [4]]
    assert [tenant.workload for tenant in card.tenants] == [Workload(kind="Job", name="pod-a"), None]


def test_of_two_processes_too_the_largest_stands_first() -> None:
    small, large = (replace(RUNS, pid=pid, memory_bytes=size) for pid, size in ((1, 5), (2, 9)))
    holders = {pid: Holder(pid=pid, kind="pod", container=A) for pid in (1, 2)}
    (tenant,) = joined(device(small, large), holders).tenants
    assert [process.pid for process in tenant.processes] == [2, 1]


def test_what_belongs_to_nobody_stands_by_reason_with_its_processes() -> None:
    card = joined(device(OTHER), HOST)
    assert [rest.reason for rest in card.rest] == sorted(rest.reason for rest in card.rest)
    assert {rest.reason: [process.pid for process in rest.processes] for rest in card.rest if rest.processes} == {
        "host": [9]
    }


def test_a_librarys_file_counts_where_its_container_is_a_tenant() -> None:
    told = VirtualGpu(gpu=GPU, pod_uid=A.pod_uid, container=A.container)
    elsewhere = replace(told, gpu="GPU-2")
    (tenant,) = Cycles([elsewhere, told]).cycle(device(), {}, CLAIM).tenants
    assert tenant.vgpu == told
    (other,) = Cycles([told]).cycle(device(), {}, replace(CLAIM, container=B)).tenants
    assert other.vgpu is None


@pytest.mark.parametrize(
    ("readings", "counts"),
    [
        ((), (False, False)),
        ((Reading("energy_joules_total", 5.0),), (False, True)),
        ((Reading("utilization_ratio", 0.0),), (True, False)),
        ((Reading("graphics_engine_active_ratio", 0.0),), (True, False)),
    ],
)
def test_a_card_that_reports_no_energy_or_activity_counts_none(
    readings: tuple[Reading, ...], counts: tuple[bool, bool]
) -> None:
    card = Join((), {}, {}).card(replace(device(), readings=readings), None, ())
    assert (card.ability.counts_busy, card.ability.counts_energy) == counts


class Twice:
    """A source that reports one card twice."""

    name, demo = "nvml", False

    async def read(self) -> Report:
        first, second = device(RUNS), replace(device(), seconds=2.0)
        return Report(devices=(first, second, replace(device(), gpu=Gpu(uuid="GPU-2", index=1))))

    async def release(self, seconds: float) -> bool:
        return True

    async def close(self) -> None:
        return


async def test_two_devices_of_one_uuid_are_one_card() -> None:
    agent = Agent(Twice(), node="n", interval=5.0, settings=SETTINGS)
    await agent.cycle()
    assert [card.gpu.uuid for card in agent.snapshot.cards] == [GPU, "GPU-2"]
    await agent.close()


def test_whose_the_processes_are_on_a_card_that_nobody_books_is_unknown() -> None:
    card = unattributed(device(RUNS))
    assert (card.tenants, card.balance, [rest.reason for rest in card.rest]) == ((), None, ["unknown"])
    assert [process.pid for process in card.processes] == [RUNS.pid]
