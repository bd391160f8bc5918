"""The books over time: they add up after every cycle, no series falls, and they do not grow for ever."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from podgpu.agent.accounts import GRACE_SECONDS, Accounts
from podgpu.agent.join import Join
from podgpu.ledger.account import Account, Entry, Party, Sheet
from podgpu.model import ENDED, Booking, Card, ContainerRef, Device, Gpu, Tenant
from tests.agent.stage import check_card

GPU = "GPU-1"
CYCLE = 5_000_000  # µs


def rank(uid: str) -> Account:
    return Account(GPU, "", ContainerRef("ns", "rank-0", "main", uid))


def sheet(entries: Mapping[Party, Entry], gpu: str = GPU) -> tuple[Sheet, int]:
    busy = sum(entry.busy_us for entry in entries.values())
    energy = sum(entry.energy_mj for entry in entries.values())
    return Sheet(gpu=gpu, entries=dict(entries), memory_bytes=None, busy_us=busy, energy_mj=energy), CYCLE


def works(*parties: Party) -> tuple[Sheet, int]:
    return sheet({party: Entry(busy_us=10, energy_mj=20, allocated_us=30) for party in parties})


def cards(accounts: Accounts) -> list[Card]:
    """The cards as the join shows them."""
    join = Join((), lambda _: None)
    return [join.card(Device(gpu=Gpu(uuid=gpu, index=0)), books, ()) for gpu, books in accounts.cards.items()]


def tenants(accounts: Accounts) -> list[Tenant]:
    """Present and former ones."""
    return [tenant for card in cards(accounts) for tenant in (*card.tenants, *card.ended)]


def bookings(accounts: Accounts) -> list[Booking]:
    return [tenant.booking for tenant in tenants(accounts)]


def check(accounts: Accounts) -> None:
    for card in cards(accounts):
        assert card.balance
        check_card(card, card.balance)


def ended(accounts: Accounts) -> int:
    return sum(one.energy_mj for card in cards(accounts) for one in card.rest if one.reason == ENDED)


Series = tuple[str, ...]


def series(accounts: Accounts) -> Counter[Series]:
    """Energy by what labels a series: names, not UIDs. Only the cards that answer are on the page."""
    found: Counter[Series] = Counter()
    for card in cards(accounts):
        for one in (*card.tenants, *card.ended):
            named = one.container
            labels = (card.gpu.uuid, one.mig, named.namespace, named.pod, named.container)
            found[labels] += one.booking.energy_mj
    return found


PARTIES = st.sampled_from(
    [rank(uid) for uid in ("", "a", "b", "c")]
    + [Account(GPU, "", ContainerRef("ns", f"job-{n}", "main", f"{n}")) for n in range(3)]
    + ["idle", "unknown", "host"]
)
ENTRIES = st.builds(
    Entry, busy_us=st.integers(0, 10**6), energy_mj=st.integers(0, 10**6), allocated_us=st.integers(0, 10**6)
)
# Seconds since the cycle before, and who was booked what; None: the card was silent.
CYCLES = st.lists(
    st.tuples(
        st.sampled_from([5.0, 100.0, GRACE_SECONDS + 1]), st.none() | st.dictionaries(PARTIES, ENTRIES)
    ),
    max_size=25,
)


@given(CYCLES)
def test_the_books_add_up_and_no_series_falls(cycles: list[tuple[float, dict[Party, Entry] | None]]) -> None:
    accounts, now = Accounts(), 1000.0
    before: Counter[Series] = Counter()
    for seconds, entries in cycles:
        now += seconds
        accounts.post([] if entries is None else [sheet(entries)], now, now)
        check(accounts)
        found = series(accounts)
        for name, value in before.items():
            assert found.get(name, value) >= value, name
        before = found


@given(CYCLES)
def test_nothing_that_was_booked_is_lost(cycles: list[tuple[float, dict[Party, Entry] | None]]) -> None:
    accounts, now, booked = Accounts(), 1000.0, 0
    for seconds, entries in cycles:
        now += seconds
        accounts.post([] if entries is None else [sheet(entries)], now, now)
        booked += sum(entry.energy_mj for entry in (entries or {}).values())
    rest = [one for card in cards(accounts) for one in card.rest]
    assert sum(one.energy_mj for one in bookings(accounts)) + sum(one.energy_mj for one in rest) == booked


def test_an_ended_pods_counters_stay_for_the_grace_period() -> None:
    accounts = Accounts()
    accounts.post([works(rank("a"))], 0.0, 0.0)
    accounts.post([works("idle")], GRACE_SECONDS, 0.0)
    (card,) = cards(accounts)
    (former,) = card.ended
    assert (card.tenants, former.booking.energy_mj, former.booking.power_watts) == ((), 20, None)
    accounts.post([works("idle")], GRACE_SECONDS + 1, 0.0)
    assert tenants(accounts) == []
    assert ended(accounts) == 20
    check(accounts)


def test_a_pod_made_again_under_its_name_has_an_account_of_its_own() -> None:
    accounts = Accounts()
    accounts.post([works(rank("a"))], 0.0, 0.0)
    accounts.post([works(rank("b"))], 5.0, 0.0)
    (card,) = cards(accounts)
    assert [one.container.pod_uid for one in card.ended] == ["a"]
    assert [one.container.pod_uid for one in card.tenants] == ["b"]


def test_a_pod_made_again_for_weeks_leaves_one_line() -> None:
    """The series of the name goes on, so the past must stay; but not one line for each UID there ever was."""
    accounts = Accounts()
    for number in range(2000):
        accounts.post([works(rank(f"uid-{number}"))], number * 100.0, 0.0)
        assert sum(series(accounts).values()) == 20 * (number + 1)
    found = tenants(accounts)
    assert len(found) < 10
    assert ended(accounts) == 0
    newest = next(one for one in found if one.container.pod_uid == "uid-1999")
    assert newest.booking.energy_mj == 20, "what others of its name used is not its own"
    check(accounts)


def test_a_card_that_is_silent_ends_no_pod() -> None:
    """Its pods' counters go on where they were, though it was away for an hour."""
    accounts = Accounts()
    accounts.post([works(rank("a"))], 0.0, 0.0)
    for minute in range(60):
        accounts.post([], minute * 60.0, 0.0)
    accounts.post([works(rank("a"))], 3600.0, 0.0)
    (card,) = cards(accounts)
    assert [one.booking.energy_mj for one in card.tenants] == [40]
    assert card.ended == ()
    assert ended(accounts) == 0


def test_another_cards_cycles_end_no_pod_on_a_silent_one() -> None:
    accounts = Accounts()
    accounts.post([works(rank("a")), sheet({"idle": Entry(energy_mj=1)}, "GPU-2")], 0.0, 0.0)
    accounts.post([sheet({"idle": Entry(energy_mj=1)}, "GPU-2")], 3600.0, 0.0)
    assert [one.container.pod_uid for one in tenants(accounts)] == ["a"]


def test_of_a_card_that_is_forgotten_nothing_is_kept() -> None:
    """It may be one that never was. Should it come back, its books begin anew and add up."""
    accounts = Accounts()
    other = sheet({"idle": Entry(energy_mj=1)}, "GPU-2")
    accounts.post([works(rank("a"), "idle"), other], 0.0, 0.0)
    accounts.forget([GPU, "GPU-never-seen"])
    accounts.post([other], 5.0, 0.0)
    assert [card.gpu.uuid for card in cards(accounts)] == ["GPU-2"]
    assert tenants(accounts) == []
    accounts.post([other, works(rank("a"))], 10.0, 0.0)
    assert [one.energy_mj for one in bookings(accounts)] == [20]
    check(accounts)


def test_gauges_are_those_of_the_cycle_alone() -> None:
    accounts = Accounts()
    accounts.post([sheet({rank("a"): Entry(energy_mj=500, busy_us=1, memory_bytes=7)})], 0.0, 77.0)
    (first,) = bookings(accounts)
    assert (first.memory_bytes, first.power_watts, first.last_active_at) == (7, 0.1, 77.0)
    accounts.post([], 5.0, 82.0)
    (second,) = bookings(accounts)
    assert (second.memory_bytes, second.power_watts, second.last_active_at) == (None, None, None)


def test_the_last_time_it_was_active_is_that_of_the_last_cycle_in_which_it_was() -> None:
    accounts, found = Accounts(), []
    for second, entry in enumerate(
        (
            Entry(energy_mj=5, allocated_us=5),
            Entry(busy_us=1),
            Entry(energy_mj=5, sm_ratio=0.0),
            Entry(sm_ratio=0.01),
            Entry(),
        )
    ):
        accounts.post([sheet({rank("a"): entry})], float(second), 100.0 + second)
        found += [booking.last_active_at for booking in bookings(accounts)]
    assert found == [None, 101.0, 101.0, 103.0, 103.0]


def test_power_is_unknown_where_no_time_was_measured() -> None:
    accounts = Accounts()
    accounts.post([(sheet({rank("a"): Entry()})[0], None)], 0.0, 0.0)
    (booking,) = bookings(accounts)
    assert booking.power_watts is None


def test_while_the_energy_counter_stands_the_power_is_what_it_was() -> None:
    """A page moves its counter every 30 s: between two steps it looks as if nothing was drawn, and then all at once."""
    accounts = Accounts()
    watts = []
    for energy_mj, energy_us in (
        (0, 0),
        (12_000_000, 30_000_000),
        (0, 0),
        (3_000_000, 30_000_000),
        (0, None),
    ):
        accounts.post([(sheet({rank("a"): Entry(energy_mj=energy_mj)})[0], energy_us)], 0.0, 0.0)
        watts += [booking.power_watts for booking in bookings(accounts)]
    assert watts == [None, 400.0, 400.0, 100.0, None]
