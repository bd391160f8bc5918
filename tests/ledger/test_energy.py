"""A counter that is read every few seconds: what it shows then goes to those who drew it, to the last millijoule."""

from hypothesis import given
from hypothesis import strategies as st

from podgpu.ledger.book import book
from podgpu.ledger.cycle import NO_ENERGY, CycleBooks, EnergyParts, Interval, TenantKey
from podgpu.ledger.energy import LONGEST_US
from podgpu.model import SEES_ALL, Claim, ContainerRef, Device, Gpu, Holder, Process

GPU = "GPU-1"
SECOND = 1_000_000
IDLE_MJ = 80_000  # what the idle card draws in a second


def container(name: str) -> ContainerRef:
    return ContainerRef("ns", name, "main", f"uid-{name}")


def tenant(name: str) -> TenantKey:
    return TenantKey(GPU, "", container(name))


def cycle(
    estimates: EnergyParts, busy: dict[str, int], drawn_mj: int | None, counted_mj: int = 0, cycles: int = 0
) -> CycleBooks:
    """A second in which these pods, and no others, were busy for so long. The counter moved after so many cycles."""
    named = list(busy)
    processes = tuple(
        Process(pid=1 + number, kinds=("compute",), sm_busy_us=busy[name]) for number, name in enumerate(named)
    )
    holders = {
        1 + number: Holder(pid=1 + number, kind="pod", container=container(name)) for number, name in enumerate(named)
    }
    interval = Interval(
        elapsed_us=SECOND,
        busy_us=sum(busy.values()),
        energy_mj=counted_mj,
        energy_us=cycles * SECOND,
        idle_mj=cycles * IDLE_MJ,
        drawn_mj=drawn_mj,
        idle_drawn_mj=IDLE_MJ,
    )
    device = Device(gpu=Gpu(uuid=GPU, index=0), processes=processes, ability=SEES_ALL)
    claims = [Claim(gpu=GPU, mig="", container=container(name), share=0.5) for name in named]
    return book(device, interval, claims, holders, estimates=estimates)


def sums(*cycles: CycleBooks) -> dict[str, int]:
    found: dict[str, int] = {}
    for books in cycles:
        parts = {party: booking.energy_mj for party, booking in books.bookings.items()} | books.gone_mj
        for party, part in parts.items():
            name = party.container.pod if isinstance(party, TenantKey) else party
            found[name] = found.get(name, 0) + part
    return {name: part for name, part in found.items() if part}


def test_a_pod_pays_for_the_seconds_in_which_it_ran() -> None:
    """`early` runs for four seconds at 480 W, `late` for one at 280 W. The counter is read at the end."""
    books = cycle(NO_ENERGY, {"early": SECOND}, drawn_mj=480_000)
    for _ in range(3):
        assert sums(books) == {}, "nothing is booked that was not counted"
        books = cycle(books.estimates, {"early": SECOND}, drawn_mj=480_000)
    last = cycle(books.estimates, {"late": SECOND}, drawn_mj=280_000, counted_mj=2_200_000, cycles=5)
    # Of 80 W idle power each holds a half; what is beyond that is its own.
    assert sums(last) == {"early": 4 * 440_000, "late": 240_000, "idle": 5 * 40_000}
    assert last.gone_mj == {tenant("early"): 4 * 440_000}, "it has left"
    assert last.estimates == NO_ENERGY


def test_what_the_power_meter_missed_is_divided_as_what_it_saw() -> None:
    books = cycle(NO_ENERGY, {"a": SECOND // 4, "b": SECOND // 4}, drawn_mj=100_000)
    books = cycle(books.estimates, {"a": SECOND // 4, "b": SECOND // 4}, drawn_mj=100_000, counted_mj=400_001, cycles=2)
    found = sums(books)
    assert sum(found.values()) == 400_001
    assert found["a"] - found["b"] in (-1, 0, 1)


def test_a_card_without_a_power_meter_is_booked_by_the_last_cycle() -> None:
    books = cycle(NO_ENERGY, {"early": SECOND}, drawn_mj=None)
    last = cycle(books.estimates, {"late": SECOND}, drawn_mj=None, counted_mj=1_000_000, cycles=2)
    assert sums(last) == {"late": 920_000, "idle": 80_000}


def test_a_counter_that_never_moves_keeps_no_estimates_for_ever() -> None:
    books = cycle(NO_ENERGY, {"early": SECOND}, drawn_mj=480_000)
    for second in range(2 * LONGEST_US // SECOND):
        books = cycle(books.estimates, {f"pod-{second}": SECOND}, drawn_mj=480_000)
        assert books.estimates.elapsed_us < LONGEST_US
    assert len(books.estimates.active) <= LONGEST_US // SECOND


PODS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, SECOND // 4), max_size=4)
SECONDS = st.lists(
    st.tuples(PODS, st.none() | st.integers(0, 10**6), st.booleans(), st.integers(0, 10**7)), max_size=20
)


@given(SECONDS)
def test_all_that_is_counted_is_booked(seconds: list[tuple[dict[str, int], int | None, bool, int]]) -> None:
    """Exactly, whatever the power meter says, whoever comes and goes, and however seldom the counter is read."""
    estimates, booked, counted, cycles = NO_ENERGY, 0, 0, 0
    for pods, drawn_mj, is_read, energy_mj in seconds:
        cycles += 1
        moved = energy_mj if is_read else 0
        books = cycle(estimates, pods, drawn_mj, counted_mj=moved, cycles=cycles if moved else 0)
        cycles = 0 if moved else cycles
        estimates = books.estimates
        counted += moved
        booked += sum(sums(books).values())
        assert booked == counted
        assert all(part >= 0 for part in sums(books).values())
