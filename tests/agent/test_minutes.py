"""The minute that bounds are shown for: when it begins, and when there is none."""

from msgspec.structs import replace

from podgpu.agent.books import CardBooks, NodeBooks
from podgpu.insight.card_problems import switching_text
from podgpu.ledger.band import PERIOD_US
from podgpu.ledger.cycle import CycleBooking, CycleBooks, Interval, Party, TenantKey, WindowBooking
from podgpu.model import BusyWindow, ContainerRef, Process
from tests.agent.test_books import GPU, cards, rank, sheet, works

BUSY = PERIOD_US // 6  # half of a cycle


def logged(*parties: Party) -> tuple[CycleBooks, Interval]:
    cycle, interval = works(*parties)
    return replace(cycle, switches=5, switching_us=1), interval


def test_the_first_minute_with_the_log_begins_when_the_log_does() -> None:
    books = NodeBooks()
    books.post([works(rank("a"))], 0.0, 0.0)
    for second in range(1, 4):
        books.post([logged(rank("a"))], second, 0.0)
        (card,) = cards(books)
        shown = card.balance.band if card.balance else None
        assert (shown is not None) == (second == 3), "a minute is three cycles of the log"
    assert shown and shown.elapsed_us == PERIOD_US
    books.post([works(rank("a"))], 4.0, 0.0)
    books.post([logged(rank("a"))], 5.0, 0.0)
    (card,) = cards(books)
    assert card.tenants[0].booking.most_energy_mj == 5 * 20, "what was proven before stays"


def test_lanes_are_of_the_minute_so_far_until_the_first_is_over() -> None:
    cycle, interval = logged(rank("a"))
    length = 1000 * cycle.elapsed_us
    window = WindowBooking(BusyWindow(0, length, length), length, {rank("a"): length})
    books = CardBooks()
    assert books.lanes() is None
    found = []
    for second in range(1, 4):
        books.post(replace(cycle, windows=(window,)), interval, second, 0.0)
        lanes = books.lanes()
        found.append((lanes.is_whole, lanes.elapsed_us) if lanes else None)
    assert found == [(False, PERIOD_US // 3), (False, 2 * PERIOD_US // 3), (True, PERIOD_US)]


def test_a_minute_of_switching_counts_for_five_so_that_the_problem_does_not_flap() -> None:
    def minutes(*ratios: float) -> list[bool]:
        """Whether there is a problem after each minute, in which so much of the time went into switches."""
        found = []
        for ratio in ratios:
            cycle, interval = works(rank("a"), rank("b"))
            switching_us = round(ratio * cycle.elapsed_us)
            cycle = replace(cycle, switches=5, switching_us=switching_us, logged_us=cycle.elapsed_us)
            for _ in range(PERIOD_US // cycle.elapsed_us):
                books.post([(cycle, interval)], 0.0, 0.0)
            (card,) = cards(books)
            found.append(switching_text(card) != "")
        return found

    books = NodeBooks()
    assert minutes(0.01, 0.049) == [False, False]
    assert minutes(*5 * (0.06, 0.04)) == 10 * [True], "it crosses the threshold back and forth"
    assert minutes(*6 * (0.04,)) == [True, True, True, False, False, False]
    assert minutes(0.07, 0.0) == [True, True]
    books.post([sheet({rank("a"): CycleBooking()}, is_gap=True)], 0.0, 0.0)
    balance = cards(books)[0].balance
    assert balance and balance.switching_peak_ratio is None, "a gap ends it"


def test_where_samples_divide_nothing_is_proven_about_who_had_a_process() -> None:
    process = Process(pid=1, kinds=("compute",))
    named = CycleBooking(busy_us=BUSY, named_us=BUSY, method="measured", processes=[process])
    unnamed = CycleBooking(named_us=0, method="measured", processes=[process])
    job = TenantKey(GPU, "", ContainerRef("ns", "job", "main", "j"))
    books = NodeBooks()
    for second in range(3):
        books.post([sheet({rank("a"): named, job: unnamed})], second, 0.0)
    found = books.cards[GPU].tenants
    assert (found[job].busy_us, found[job].least_busy_us, found[job].most_busy_us) == (0, 0, 3 * BUSY)
    assert found[job].likely_most_busy_us < BUSY
    assert (found[rank("a")].least_busy_us, found[rank("a")].most_busy_us) == (0, 3 * BUSY)


def test_a_log_that_comes_and_goes_does_not_cut_a_minute() -> None:
    books = NodeBooks()
    for second, cycle in enumerate([logged(rank("a")), works(rank("a")), logged(rank("a"))]):
        books.post([cycle], second, 0.0)
    (card,) = cards(books)
    assert card.balance and card.balance.band and card.balance.band.elapsed_us == PERIOD_US


def test_after_a_gap_there_is_no_last_minute_to_show() -> None:
    books = NodeBooks()
    for second in range(3):
        books.post([works(rank("a"))], second, 0.0)
    (card,) = cards(books)
    assert card.balance and card.balance.band and card.tenants[0].booking.band
    cycle = sheet({rank("a"): CycleBooking(), "unknown": CycleBooking(energy_mj=9)}, is_gap=True)
    books.post([cycle], 900.0, 900.0)
    (card,) = cards(books)
    assert card.balance and (card.balance.band, card.tenants[0].booking.band) == (None, None)
    assert card.tenants[0].booking.most_energy_mj == 60, "what was proven before stays"


def test_a_process_of_the_host_may_have_had_what_samples_give_to_others() -> None:
    """Only in the minutes in which it was there."""
    named = CycleBooking(busy_us=BUSY, named_us=BUSY, method="measured", processes=[Process(pid=1, kinds=("compute",))])
    there = CycleBooking(named_us=0, method="measured", processes=[Process(pid=2, kinds=("compute",))])
    books = NodeBooks()
    found = []
    for second in range(9):
        host = there if 3 <= second < 6 else CycleBooking()
        cycle, interval = sheet({rank("a"): named, "host": host})
        books.post([(replace(cycle, is_watched=True), interval)], second, 0.0)
        (card,) = cards(books)
        assert card.balance
        found.append((card.balance.unattributed_least_us, card.balance.unattributed_most_us))
    assert found[2::3] == [(0, 0), (0, 3 * BUSY), (0, 3 * BUSY)]
