"""Counters over time."""

from podgpu.cluster.report.counters import CardKey, CounterKey, CounterScope, CounterTotals, Measure

CARD = CardKey("", "alpha", "GPU-1")
BOOKED = CounterKey(CARD, CounterScope.BOOKED, Measure.ENERGY)
METER = CounterKey(CARD, CounterScope.METER, Measure.ENERGY)
POD = CounterKey(CARD, CounterScope.CONTAINER, Measure.ENERGY, pod="a")
OTHER = CounterKey(CARD, CounterScope.CONTAINER, Measure.ENERGY, pod="b")


def grown(totals: CounterTotals, **samples: list[tuple[float, int]]) -> dict[CounterKey, int]:
    lines = {"booked": BOOKED, "meter": METER, "pod": POD, "other": OTHER}
    return dict(totals.grow({lines[name]: values for name, values in samples.items()})[CARD].counters)


def test_an_increase_is_the_difference_of_two_samples() -> None:
    totals = CounterTotals(0.0)
    totals.begin({BOOKED: 100, POD: 70})
    assert grown(totals, booked=[(60, 150)], pod=[(60, 110)]) == {BOOKED: 50, POD: 40}


def test_what_came_before_anybody_looked_does_not_count() -> None:
    assert grown(CounterTotals(0.0), booked=[(60, 5000), (120, 5010)], pod=[(60, 400), (120, 405)]) == {
        BOOKED: 10,
        POD: 5,
    }


def test_a_pod_that_comes_later_begins_at_nothing() -> None:
    totals = CounterTotals(0.0)
    totals.begin({BOOKED: 100, POD: 100})
    samples: dict[str, list[tuple[float, int]]] = {
        "booked": [(60, 110), (120, 130)],
        "pod": [(60, 110), (120, 110)],
        "other": [(120, 20)],
    }
    assert grown(totals, **samples) == {BOOKED: 30, POD: 10, OTHER: 20}


def test_a_counter_that_falls_begins_at_nothing() -> None:
    totals = CounterTotals(0.0)
    totals.begin({BOOKED: 100, POD: 90})
    assert grown(totals, booked=[(60, 120)], pod=[(60, 20)]) == {BOOKED: 20, POD: 20}


def test_if_the_books_fall_every_counter_begins_at_nothing() -> None:
    """A small counter has passed its old value already, and would seem to go on."""
    totals = CounterTotals(0.0)
    totals.begin({BOOKED: 1000, POD: 10, METER: 9000})
    assert grown(totals, booked=[(60, 50)], pod=[(60, 12)], meter=[(60, 9080)]) == {
        BOOKED: 50,
        POD: 12,
        METER: 80,
    }


def test_a_sample_is_counted_once() -> None:
    totals = CounterTotals(0.0)
    totals.begin({BOOKED: 100})
    assert grown(totals, booked=[(60, 110), (120, 130)]) == {BOOKED: 30}
    assert grown(totals, booked=[(120, 130), (180, 135)]) == {BOOKED: 5}


def test_time_counts_while_the_card_is_seen() -> None:
    totals = CounterTotals(0.0)
    assert totals.grow({BOOKED: [(100, 1), (160, 2), (400, 3)]})[CARD].seconds == 300
    assert (
        totals.grow({BOOKED: [(5000, 1)]})[CARD].seconds == 300
    )  # it restarted; for how long it was gone is not known
