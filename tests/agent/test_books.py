"""The books over time: they add up after every cycle, no series falls, and they do not grow for ever."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.agent.books import GRACE_SECONDS, NodeBooks
from podgpu.agent.join import Join
from podgpu.ledger.band import PERIOD_US
from podgpu.ledger.cycle import CycleBooking, CycleBooks, Interval, Party, TenantKey
from podgpu.model import ENDED, Booking, Card, Claim, ContainerRef, Device, Gpu, Reading, Tenant
from tests.agent.stage import check_card

GPU = "GPU-1"
CYCLE = 5_000_000  # µs


def rank(uid: str) -> TenantKey:
    return TenantKey(GPU, "", ContainerRef("ns", "rank-0", "main", uid))


def sheet(
    entries: Mapping[Party, CycleBooking], gpu: str = GPU, energy_us: int | None = CYCLE, **interval: bool
) -> tuple[CycleBooks, Interval]:
    busy = sum(entry.busy_us for entry in entries.values())
    energy = sum(entry.energy_mj for entry in entries.values())
    booked = CycleBooks(
        gpu=gpu,
        bookings=dict(entries),
        memory_bytes=None,
        busy_us=busy,
        energy_mj=energy,
        elapsed_us=PERIOD_US // 3,
    )
    return booked, Interval(elapsed_us=CYCLE, energy_mj=energy, energy_us=energy_us, **interval)


def works(*parties: Party) -> tuple[CycleBooks, Interval]:
    return sheet({party: CycleBooking(busy_us=10, energy_mj=20, allocated_us=30) for party in parties})


def cards(books: NodeBooks, watts: float | None = None) -> list[Card]:
    """The cards as the join shows them; `watts` is what each reports as its power."""
    join = Join((), {}, {})
    power = () if watts is None else (Reading("power_watts", watts),)
    return [join.card(Device(gpu=Gpu(uuid=gpu, index=0), readings=power), own, ()) for gpu, own in books.cards.items()]


def tenants(books: NodeBooks) -> list[Tenant]:
    """Present and former ones."""
    return [tenant for card in cards(books) for tenant in (*card.tenants, *card.ended)]


def bookings(books: NodeBooks) -> list[Booking]:
    return [tenant.booking for tenant in tenants(books)]


def check(books: NodeBooks) -> None:
    for card in cards(books):
        assert card.balance
        check_card(card, card.balance)


def ended(books: NodeBooks) -> int:
    return sum(rest.energy_mj for card in cards(books) for rest in card.rest if rest.reason == ENDED)


Bookings = dict[Party, CycleBooking]
Cycles = list[tuple[float, Bookings | None]]
Series = tuple[str, ...]


def series(books: NodeBooks) -> Counter[Series]:
    """Energy by what labels a series: names, not UIDs. Only the cards that answer are on the page."""
    found: Counter[Series] = Counter()
    for card in cards(books):
        for tenant in (*card.tenants, *card.ended):
            named = tenant.container
            labels = (card.gpu.uuid, tenant.mig, named.namespace, named.pod, named.container)
            found[labels] += tenant.booking.energy_mj
    return found


COUNTERS = (
    "busy_us",
    "energy_mj",
    "allocated_us",
    "least_busy_us",
    "most_busy_us",
    "least_energy_mj",
    "most_energy_mj",
)


def counters(books: NodeBooks) -> Counter[Series]:
    """Every counter of those on the page, by what labels its series."""
    found: Counter[Series] = Counter()
    for tenant in tenants(books):
        named = tenant.container
        for counter in COUNTERS:
            found[tenant.mig, named.namespace, named.pod, named.container, counter] += getattr(tenant.booking, counter)
    return found


PARTIES = st.sampled_from(
    [rank(uid) for uid in ("", "a", "b", "c")]
    + [TenantKey(GPU, "", ContainerRef("ns", f"job-{n}", "main", f"{n}")) for n in range(3)]
    + ["idle", "unknown", "host"]
)
ENTRIES = st.builds(CycleBooking, **dict.fromkeys(("busy_us", "energy_mj", "allocated_us"), st.integers(0, 10**6)))
# Seconds since the cycle before, and who was booked what; None: the card was silent.
CYCLES = st.lists(
    st.tuples(st.sampled_from([5.0, 100.0, GRACE_SECONDS + 1]), st.none() | st.dictionaries(PARTIES, ENTRIES)),
    max_size=25,
)


@given(CYCLES)
def test_the_books_add_up_and_no_series_falls(cycles: Cycles) -> None:
    books, now = NodeBooks(), 1000.0
    before: Counter[Series] = Counter()
    for seconds, entries in cycles:
        now += seconds
        books.post([] if entries is None else [sheet(entries)], now, now)
        check(books)
        found = counters(books)
        for name, value in before.items():
            assert found.get(name, value) >= value, name
        before = found


@given(CYCLES)
def test_nothing_that_was_booked_is_lost(cycles: Cycles) -> None:
    books, now, booked = NodeBooks(), 1000.0, 0
    for seconds, entries in cycles:
        now += seconds
        books.post([] if entries is None else [sheet(entries)], now, now)
        booked += sum(entry.energy_mj for entry in (entries or {}).values())
    rest = [line for card in cards(books) for line in card.rest]
    assert sum(booking.energy_mj for booking in bookings(books)) + sum(line.energy_mj for line in rest) == booked


def test_an_ended_pods_counters_stay_for_the_grace_period() -> None:
    books = NodeBooks()
    books.post([works(rank("a"))], 0.0, 0.0)
    books.post([works("idle")], GRACE_SECONDS, 0.0)
    (card,) = cards(books)
    (former,) = card.ended
    assert (card.tenants, former.booking.energy_mj, former.booking.power_watts) == ((), 20, None)
    books.post([works("idle")], GRACE_SECONDS + 1, 0.0)
    assert tenants(books) == []
    assert ended(books) == 20
    check(books)


def former(books: NodeBooks) -> list[str]:
    return sorted(tenant.container.pod for card in cards(books) for tenant in card.ended)


@pytest.mark.parametrize(("later", "is_kept"), [(GRACE_SECONDS, True), (GRACE_SECONDS + 0.001, False)])
def test_the_grace_period_includes_its_last_moment(later: float, is_kept: bool) -> None:
    books = NodeBooks()
    books.post([works(rank("1"))], 0.0, 0.0)
    books.post([works("host")], later, later)
    assert bool(former(books)) == is_kept


def test_of_too_many_that_ended_those_who_ended_first_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podgpu.agent.books.MOST_ENDED", 2)
    pods = [TenantKey(GPU, "", ContainerRef("ns", name, "main", name)) for name in ("a", "b", "c")]
    books = NodeBooks()
    for now, pod in enumerate(pods[:2]):
        books.post([works(pod)], float(now), 0.0)
    books.post([works("host")], 2.0, 0.0)
    assert former(books) == ["a", "b"]
    books.post([works(pods[2])], 3.0, 0.0)
    books.post([works("host")], 4.0, 0.0)
    assert former(books) == ["b", "c"]


def test_who_ended_first_goes_first_though_it_came_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podgpu.agent.books.MOST_ENDED", 1)
    first, second = (TenantKey(GPU, "", ContainerRef("ns", name, "main", name)) for name in ("a", "b"))
    books = NodeBooks()
    parties: list[Party] = [first, second, first, "host"]
    for now, party in enumerate(parties):
        books.post([works(party)], float(now), 0.0)
    assert former(books) == ["a"]


def test_a_pod_made_again_under_its_name_has_an_account_of_its_own() -> None:
    books = NodeBooks()
    books.post([works(rank("a"))], 0.0, 0.0)
    books.post([works(rank("b"))], 5.0, 0.0)
    (card,) = cards(books)
    assert [tenant.container.pod_uid for tenant in card.ended] == ["a"]
    assert [tenant.container.pod_uid for tenant in card.tenants] == ["b"]


def test_a_pod_made_again_for_weeks_leaves_one_line() -> None:
    """The series of the name goes on, so the past must stay; but not one line for each UID there ever was."""
    books = NodeBooks()
    for number in range(2000):
        books.post([works(rank(f"uid-{number}"))], number * 100.0, 0.0)
        assert sum(series(books).values()) == 20 * (number + 1)
    found = tenants(books)
    assert len(found) < 10
    assert ended(books) == 0
    newest = next(tenant for tenant in found if tenant.container.pod_uid == "uid-1999")
    assert newest.booking.energy_mj == 20, "what others of its name used is not its own"
    check(books)


def test_a_card_that_is_silent_ends_no_pod() -> None:
    """Its pods' counters go on where they were, though it was away for an hour."""
    books = NodeBooks()
    books.post([works(rank("a"))], 0.0, 0.0)
    for minute in range(60):
        books.post([], minute * 60.0, 0.0)
    books.post([works(rank("a"))], 3600.0, 0.0)
    (card,) = cards(books)
    assert [tenant.booking.energy_mj for tenant in card.tenants] == [40]
    assert card.ended == ()
    assert ended(books) == 0


def test_another_cards_cycles_end_no_pod_on_a_silent_one() -> None:
    books = NodeBooks()
    books.post([works(rank("a")), sheet({"idle": CycleBooking(energy_mj=1)}, "GPU-2")], 0.0, 0.0)
    books.post([sheet({"idle": CycleBooking(energy_mj=1)}, "GPU-2")], 3600.0, 0.0)
    assert [tenant.container.pod_uid for tenant in tenants(books)] == ["a"]


def test_of_a_card_that_is_forgotten_nothing_is_kept() -> None:
    """It may be one that never was. Should it come back, its books begin anew and add up."""
    books = NodeBooks()
    other = sheet({"idle": CycleBooking(energy_mj=1)}, "GPU-2")
    books.post([works(rank("a"), "idle"), other], 0.0, 0.0)
    books.forget([GPU, "GPU-never-seen"])
    books.post([other], 5.0, 0.0)
    assert [card.gpu.uuid for card in cards(books)] == ["GPU-2"]
    assert tenants(books) == []
    books.post([other, works(rank("a"))], 10.0, 0.0)
    assert [booking.energy_mj for booking in bookings(books)] == [20]
    check(books)


def test_gauges_are_those_of_the_cycle_alone() -> None:
    books = NodeBooks()
    books.post([sheet({rank("a"): CycleBooking(energy_mj=500, busy_us=1, memory_bytes=7)})], 0.0, 77.0)
    (first,) = bookings(books)
    assert (first.memory_bytes, first.power_watts, first.last_active_at) == (7, 0.1, 77.0)
    books.post([], 5.0, 82.0)
    (second,) = bookings(books)
    assert (second.memory_bytes, second.power_watts, second.last_active_at) == (None, None, None)


def test_the_last_time_it_was_active_is_that_of_the_last_cycle_in_which_it_was() -> None:
    books, found = NodeBooks(), []
    cycles = [
        CycleBooking(energy_mj=5, allocated_us=5),
        CycleBooking(busy_us=1),
        CycleBooking(energy_mj=5, sm_ratio=0.0),
        CycleBooking(named_us=1),
        CycleBooking(),
        CycleBooking(instance_ratio=0.01),
    ]
    for second, entry in enumerate(cycles):
        books.post([sheet({rank("a"): entry})], float(second), 100.0 + second)
        found += [booking.last_active_at for booking in bookings(books)]
    assert found == [None, 101.0, 101.0, 103.0, 103.0, 105.0]


def test_power_is_unknown_where_no_energy_was_measured() -> None:
    books = NodeBooks()
    books.post([(sheet({rank("a"): CycleBooking()})[0], Interval(elapsed_us=CYCLE))], 0.0, 0.0)
    (booking,) = bookings(books)
    assert booking.power_watts is None


def test_while_the_energy_counter_stands_the_power_is_what_it_was() -> None:
    """A page moves its counter every 30 s: between two steps it looks as if nothing was drawn, and then all at once."""
    books = NodeBooks()
    watts = []
    half_a_minute = 30_000_000
    for energy_mj, energy_us in (
        (0, 0),
        (99_000_000, None),  # the first step: nobody knows when it began
        (0, 0),
        (12_000_000, half_a_minute),
        (0, 0),
        (3_000_000, half_a_minute),
    ):
        books.post([sheet({rank("a"): CycleBooking(energy_mj=energy_mj)}, energy_us=energy_us)], 0.0, 0.0)
        watts += [booking.power_watts for booking in bookings(books)]
    assert watts == [None, None, None, 400.0, 400.0, 100.0]


def power(card: Card) -> Mapping[str, float]:
    """What each party draws, by its name."""
    found: dict[str, float] = {}
    for tenant in card.tenants:
        pod = tenant.container.pod
        found[pod] = found.get(pod, 0.0) + (tenant.booking.power_watts or 0.0)
    for rest in card.rest:
        found[rest.reason] = rest.power_watts or 0.0
    return {name: watts for name, watts in found.items() if watts}


def test_power_is_the_cards_own_divided_as_its_energy_was() -> None:
    """So an only tenant has what its card has, whatever the counter says about the time before."""
    books = NodeBooks()
    books.post([sheet({rank("a"): CycleBooking(energy_mj=333_000)}, energy_us=None)], 0.0, 0.0)
    assert power(cards(books, 130.1)[0]) == {"rank-0": 130.1}
    books.post([sheet({rank("a"): CycleBooking(), "host": CycleBooking()}, energy_us=0)], 5.0, 5.0)
    assert power(cards(books, 691.3)[0]) == {"rank-0": 691.3}
    cycle = sheet({rank("a"): CycleBooking(energy_mj=3000), "host": CycleBooking(energy_mj=1000)})
    books.post([cycle], 9.0, 9.0)
    assert power(cards(books, 200.0)[0]) == {"rank-0": 150.0, "host": 50.0}


def test_while_the_counter_stands_the_power_of_who_left_is_nobodys_known() -> None:
    books = NodeBooks()
    job = TenantKey(GPU, "", ContainerRef("ns", "job", "main", "j"))
    cycle = sheet({rank("a"): CycleBooking(energy_mj=3000), job: CycleBooking(energy_mj=1000)})
    books.post([cycle], 0.0, 0.0)
    books.post([sheet({job: CycleBooking()}, energy_us=0)], 5.0, 5.0)
    assert power(cards(books, 200.0)[0]) == {"job": 50.0, "unknown": 150.0}
    books.post([sheet({rank("a"): CycleBooking(), job: CycleBooking()}, energy_us=0)], 10.0, 10.0)
    assert power(cards(books, 200.0)[0]) == {"job": 50.0, "unknown": 150.0}, "it is back, as somebody new"


def test_after_a_gap_nobodys_power_is_known() -> None:
    books = NodeBooks()
    books.post([works(rank("a"))], 0.0, 0.0)
    books.post([sheet({"unknown": CycleBooking(energy_mj=9)}, is_gap=True)], 900.0, 900.0)
    assert power(cards(books, 200.0)[0]) == {}


def test_a_silent_card_has_no_power_to_divide() -> None:
    books = NodeBooks()
    books.post([works(rank("a"), "host")], 0.0, 0.0)
    books.post([], 5.0, 5.0)
    assert power(cards(books)[0]) == {}


def test_a_counter_that_moved_by_nothing_divides_no_power() -> None:
    books = NodeBooks()
    books.post([sheet({rank("a"): CycleBooking(), rank("b"): CycleBooking()})], 0.0, 0.0)
    assert power(cards(books, 700.0)[0]) == {}


STEPS = st.lists(
    st.tuples(st.dictionaries(PARTIES, ENTRIES), st.sampled_from([CYCLE, 0, None]), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(STEPS, st.floats(0, 2000))
def test_the_power_of_all_is_the_cards_at_any_moment(
    cycles: list[tuple[Bookings, int | None, bool]], watts: float
) -> None:
    """Or nobody's is known. A counter that stands books nothing."""
    books = NodeBooks()
    for second, (entries, energy_us, is_gap) in enumerate(cycles):
        booked = {party: CycleBooking() for party in entries} if energy_us == 0 else entries
        books.post([sheet(booked, energy_us=energy_us, is_gap=is_gap)], float(second), 0.0)
        for card in cards(books, watts):
            found = power(card)
            assert all(0 <= drawn <= watts + 1e-6 for drawn in found.values())
            total = books.cards[GPU].moved_mj
            assert sum(found.values()) == pytest.approx(watts if total else 0.0, abs=1e-4)


def test_of_who_holds_an_instance_of_unknown_size_no_counter_says_anything() -> None:
    books = NodeBooks()
    held = TenantKey(GPU, "MIG-1", ContainerRef("ns", "slice", "main", "s"))
    entry = CycleBooking(claims=[Claim(gpu=GPU, mig="MIG-1", container=held.container)])
    books.post([sheet({held: entry, "unknown": CycleBooking(energy_mj=5000)})], 0.0, 0.0)
    (booking,) = bookings(books)
    assert (booking.bookable, booking.power_watts) == (False, None)
    assert power(cards(books, 100.0)[0]) == {"unknown": 100.0}
    books.post([sheet({"unknown": CycleBooking(energy_mj=5000)})], 5.0, 0.0)
    assert bookings(books) == [], "once it has ended, there is nothing to show of it"


def test_a_share_of_unknown_size_counts_by_the_minute_and_not_while_a_claim_is_read_late() -> None:
    books, party = NodeBooks(), rank("u")
    sized, unsized = CycleBooking(share=0.5, allocated_us=CYCLE // 2), CycleBooking(unsized_us=CYCLE)
    counted = []
    for second, entry in enumerate([unsized] * 11 + [sized] + [unsized] * 13):
        books.post([sheet({party: entry})], 5.0 * second, 0.0)
        counted.append(bookings(books)[0].unsized_us)
    assert counted == [None] * 23 + [12 * CYCLE] * 2
