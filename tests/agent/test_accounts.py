"""The books over time: they add up after every cycle, no series falls, and they do not grow for ever."""

from collections import Counter
from collections.abc import Iterable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from podgpu.agent import attendance
from podgpu.agent.accounts import GRACE_SECONDS, Accounts
from podgpu.ledger.account import Account, Entry, Party, Sheet
from podgpu.model import ENDED, Booking, ContainerRef, Remainder

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


def check(accounts: Accounts) -> None:
    lines: list[Booking | Remainder] = [*accounts.bookings(), *accounts.remainders()]
    for balance in accounts.balances():
        assert sum(one.busy_us for one in lines if one.gpu == balance.gpu) == balance.busy_us
        assert sum(one.energy_mj for one in lines if one.gpu == balance.gpu) == balance.energy_mj


def ended(accounts: Accounts) -> int:
    return sum(one.energy_mj for one in accounts.remainders() if one.reason == ENDED)


Series = tuple[str, ...]


def series(bookings: Iterable[Booking]) -> Counter[Series]:
    """Energy by what labels a series: names, not UIDs. Only the cards that answer are on the page."""
    found: Counter[Series] = Counter()
    for one in bookings:
        named = one.container
        found[one.gpu, one.mig, named.namespace, named.pod, named.container] += one.energy_mj
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
        found = series(accounts.bookings())
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
    lines: list[Booking | Remainder] = [*accounts.bookings(), *accounts.remainders()]
    assert sum(one.energy_mj for one in lines) == booked


def test_an_ended_pods_counters_stay_for_the_grace_period() -> None:
    accounts = Accounts()
    accounts.post([works(rank("a"))], 0.0, 0.0)
    accounts.post([works("idle")], GRACE_SECONDS, 0.0)
    (booking,) = accounts.bookings()
    assert (booking.ended, booking.energy_mj, booking.power_watts) == (True, 20, None)
    accounts.post([works("idle")], GRACE_SECONDS + 1, 0.0)
    assert list(accounts.bookings()) == []
    assert ended(accounts) == 20
    check(accounts)


def test_a_pod_made_again_under_its_name_has_an_account_of_its_own() -> None:
    accounts = Accounts()
    accounts.post([works(rank("a"))], 0.0, 0.0)
    accounts.post([works(rank("b"))], 5.0, 0.0)
    assert [(one.container.pod_uid, one.ended) for one in accounts.bookings()] == [("a", True), ("b", False)]


def test_a_pod_made_again_for_weeks_leaves_one_line() -> None:
    """The series of the name goes on, so the past must stay; but not one line for each UID there ever was."""
    accounts = Accounts()
    for number in range(2000):
        accounts.post([works(rank(f"uid-{number}"))], number * 100.0, 0.0)
        assert sum(series(accounts.bookings()).values()) == 20 * (number + 1)
    found = list(accounts.bookings())
    assert len(found) < 10
    assert ended(accounts) == 0
    newest = next(one for one in found if one.container.pod_uid == "uid-1999")
    assert newest.energy_mj == 20, "what others of its name used is not its own"
    check(accounts)


def test_a_card_that_is_silent_ends_no_pod() -> None:
    """Its pods' counters go on where they were, though it was away for an hour."""
    accounts = Accounts()
    accounts.post([works(rank("a"))], 0.0, 0.0)
    for minute in range(60):
        accounts.post([], minute * 60.0, 0.0)
    accounts.post([works(rank("a"))], 3600.0, 0.0)
    (booking,) = accounts.bookings()
    assert (booking.energy_mj, booking.ended) == (40, False)
    assert ended(accounts) == 0


def test_another_cards_cycles_end_no_pod_on_a_silent_one() -> None:
    accounts = Accounts()
    accounts.post([works(rank("a")), sheet({"idle": Entry(energy_mj=1)}, "GPU-2")], 0.0, 0.0)
    accounts.post([sheet({"idle": Entry(energy_mj=1)}, "GPU-2")], 3600.0, 0.0)
    assert [one.container.pod_uid for one in accounts.bookings()] == ["a"]


def test_of_a_card_that_was_away_for_too_long_nothing_is_kept() -> None:
    """It may be one that never was. Should it come back, its books begin anew and add up."""
    accounts = Accounts()
    other = sheet({"idle": Entry(energy_mj=1)}, "GPU-2")
    accounts.post([works(rank("a"), "idle"), other], 0.0, 0.0)
    accounts.post([other], attendance.GRACE_SECONDS + 1, 0.0)
    assert list(accounts.bookings()) == []
    assert {one.gpu for one in accounts.remainders()} == {"GPU-2"}
    assert {one.gpu for one in accounts.balances()} == {"GPU-2"}
    accounts.post([other, works(rank("a"))], 3 * attendance.GRACE_SECONDS, 0.0)
    assert [one.energy_mj for one in accounts.bookings()] == [20]
    check(accounts)


def test_a_card_comes_back_in_the_cycle_in_which_it_would_be_forgotten() -> None:
    accounts = Accounts()
    other = sheet({"idle": Entry(energy_mj=1)}, "GPU-2")
    accounts.post([other, works(rank("a"))], 0.0, 0.0)
    accounts.post([other, works(rank("a"))], 2 * attendance.GRACE_SECONDS, 0.0)
    assert [one.energy_mj for one in accounts.bookings()] == [20]
    check(accounts)


def test_a_card_that_is_there_and_silent_keeps_its_books() -> None:
    accounts = Accounts()
    accounts.post([works(rank("a"))], 0.0, 0.0)
    (kept,) = {one.gpu for one in accounts.balances()}
    accounts.post([sheet({}, "GPU-other")], 2 * attendance.GRACE_SECONDS, 0.0, silent=[kept])
    assert kept in {one.gpu for one in accounts.balances()}


def test_invented_cards_do_not_fill_the_books() -> None:
    accounts = Accounts()
    for cycle in range(10):
        invented = [sheet({"idle": Entry(energy_mj=1)}, f"GPU-{64 * cycle + number}") for number in range(64)]
        accounts.post(invented, cycle, 0.0)
        check(accounts)
    assert len(list(accounts.balances())) == attendance.MOST_CARDS


def test_gauges_are_those_of_the_cycle_alone() -> None:
    accounts = Accounts()
    accounts.post([sheet({rank("a"): Entry(energy_mj=500, busy_us=1, memory_bytes=7)})], 0.0, 77.0)
    (first,) = accounts.bookings()
    assert (first.memory_bytes, first.power_watts, first.last_active_at) == (7, 0.1, 77.0)
    accounts.post([], 5.0, 82.0)
    (second,) = accounts.bookings()
    assert (second.memory_bytes, second.power_watts, second.last_active_at) == (None, None, None)


def test_power_is_unknown_where_no_time_was_measured() -> None:
    accounts = Accounts()
    accounts.post([(sheet({rank("a"): Entry()})[0], None)], 0.0, 0.0)
    (booking,) = accounts.bookings()
    assert booking.power_watts is None


def test_while_the_energy_counter_stands_the_power_is_what_it_was() -> None:
    """A page moves its counter every 30 s: between two steps nothing was drawn, as it seems, and then all at once."""
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
        watts += [booking.power_watts for booking in accounts.bookings()]
    assert watts == [None, 400.0, 400.0, 100.0, None]
