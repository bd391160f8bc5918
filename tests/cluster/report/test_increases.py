"""Counters over time."""

from collections.abc import Mapping, Sequence

from podgpu.cluster.report.counters import CardKey, CounterKey, CounterScope, Measure
from podgpu.cluster.report.increases import CardIncreases, CounterTotals

CARD = CardKey("", "alpha", "GPU-1")
BOOKED = CounterKey(CARD, CounterScope.BOOKED, Measure.ENERGY)
METER = CounterKey(CARD, CounterScope.METER, Measure.ENERGY)
POD = CounterKey(CARD, CounterScope.CONTAINER, Measure.ENERGY, pod="a")
OTHER = CounterKey(CARD, CounterScope.CONTAINER, Measure.ENERGY, pod="b")


def grow(totals: CounterTotals, samples: Mapping[CounterKey, Sequence[tuple[float, int]]]) -> CardIncreases:
    times: dict[float, dict[CounterKey, int]] = {}
    for counter, values in samples.items():
        for at, value in values:
            times.setdefault(at, {})[counter] = value
    return totals.grow({CARD: times}, {}, {})[CARD]


def grown(totals: CounterTotals, **samples: list[tuple[float, int]]) -> dict[CounterKey, int]:
    lines = {"booked": BOOKED, "meter": METER, "pod": POD, "other": OTHER}
    return grow(totals, {lines[name]: values for name, values in samples.items()}).counters


def test_an_increase_is_the_difference_of_two_samples() -> None:
    totals = CounterTotals(0.0)
    totals.begin({CARD: {BOOKED: 100, POD: 70}})
    assert grown(totals, booked=[(60, 150)], pod=[(60, 110)]) == {BOOKED: 50, POD: 40}


def test_what_came_before_anybody_looked_does_not_count() -> None:
    assert grown(CounterTotals(0.0), booked=[(60, 5000), (120, 5010)], pod=[(60, 400), (120, 405)]) == {
        BOOKED: 10,
        POD: 5,
    }


def test_a_pod_that_comes_later_begins_at_nothing() -> None:
    totals = CounterTotals(0.0)
    totals.begin({CARD: {BOOKED: 100, POD: 100}})
    samples: dict[str, list[tuple[float, int]]] = {
        "booked": [(60, 110), (120, 130)],
        "pod": [(60, 110), (120, 110)],
        "other": [(120, 20)],
    }
    assert grown(totals, **samples) == {BOOKED: 30, POD: 10, OTHER: 20}


def test_a_counter_that_falls_begins_at_nothing() -> None:
    totals = CounterTotals(0.0)
    totals.begin({CARD: {BOOKED: 100, POD: 90}})
    assert grown(totals, booked=[(60, 120)], pod=[(60, 20)]) == {BOOKED: 20, POD: 20}


def test_if_the_books_fall_every_counter_begins_at_nothing() -> None:
    """A small counter has passed its old value already, and would seem to go on."""
    totals = CounterTotals(0.0)
    totals.begin({CARD: {BOOKED: 1000, POD: 10, METER: 9000}})
    assert grown(totals, booked=[(60, 50)], pod=[(60, 12)], meter=[(60, 9080)]) == {
        BOOKED: 50,
        POD: 12,
        METER: 80,
    }


def test_a_sample_is_counted_once() -> None:
    totals = CounterTotals(0.0)
    totals.begin({CARD: {BOOKED: 100}})
    assert grown(totals, booked=[(60, 110), (120, 130)]) == {BOOKED: 30}
    assert grown(totals, booked=[(120, 130), (180, 135)]) == {BOOKED: 5}


def test_time_counts_while_the_card_is_seen() -> None:
    totals = CounterTotals(0.0)
    assert grow(totals, {BOOKED: [(100, 1), (160, 2), (220, 3)]}).seen_us == 120_000_000
    # It restarted, and was back one scrape before it was first seen again.
    assert grow(totals, {BOOKED: [(5000, 1)]}).seen_us == 60_000_000
    assert totals.presence[CARD].gaps == [(220, 4940)]


def test_an_agent_that_is_back_soon_was_never_away() -> None:
    totals = CounterTotals(0.0)
    samples = [(at, at) for at in range(60, 660, 60)] + [(780, 5)]
    assert grow(totals, {BOOKED: samples}).seen_us == 720_000_000
    assert not totals.presence[CARD].gaps


def test_a_store_that_was_away_missed_nothing_if_the_agent_went_on_booking() -> None:
    totals = CounterTotals(0.0)
    samples = {
        BOOKED: [(60, 100), (120, 160), (180, 220), (7200, 900)],
        METER: [(60, 1100), (120, 1160), (180, 1220), (7200, 1900)],
    }
    assert grow(totals, samples).seen_us == 7_140_000_000
    assert not totals.presence[CARD].gaps


def test_a_card_that_was_away_is_unseen_although_its_agent_went_on() -> None:
    totals = CounterTotals(0.0)
    samples = {
        BOOKED: [(60, 100), (120, 160), (180, 220), (7200, 230)],
        METER: [(60, 1100), (120, 1160), (180, 1220), (7200, 1900)],
    }
    assert grow(totals, samples).seen_us == 180_000_000
    assert totals.presence[CARD].gaps == [(180, 7140)]


def test_a_card_is_seen_while_it_is_scraped_steadily() -> None:
    """Only the last sample of a steady card is read."""
    totals = CounterTotals(0.0)
    totals.begin({CARD: {BOOKED: 100}})
    assert totals.grow({CARD: {7200: {BOOKED: 170}}}, {CARD: 15.0}, {})[CARD].seen_us == 7_200_000_000
    assert not totals.presence[CARD].gaps


def test_a_pod_of_the_same_name_begins_at_0_when_the_one_before_has_ended() -> None:
    held = BOOKED._replace(scope=CounterScope.CONTAINER, measure=Measure.HELD)
    totals = CounterTotals(0.0)
    totals.begin({CARD: {held: 100}})
    totals.forget([held])
    assert totals.grow({CARD: {7200: {held: 170}}}, {CARD: 15.0}, {})[CARD].counters[held] == 170


def test_a_pod_has_ended_if_its_card_was_scraped_without_it_since_the_store_was_back() -> None:
    """It ended right before the store was away. Of the next one of its name, only the last sample is read."""
    totals = CounterTotals(0.0)
    grown(totals, booked=[(60, 60), (120, 120), (900, 900)], pod=[(60, 10), (120, 40)])
    grown(totals, booked=[(at, at) for at in range(9000, 9900, 60)])
    assert totals.grow({CARD: {12_000: {BOOKED: 12_000, POD: 70}}}, {CARD: 60.0}, {})[CARD].counters[POD] == 70


def test_a_pod_goes_on_if_its_counters_are_missing_for_a_short_time() -> None:
    totals = CounterTotals(0.0)
    grown(totals, booked=[(60, 60), (120, 120)], pod=[(60, 10), (120, 40)])
    grown(totals, booked=[(at, at) for at in range(180, 480, 60)])
    assert totals.grow({CARD: {600: {BOOKED: 600, POD: 70}}}, {CARD: 60.0}, {})[CARD].counters[POD] == 30


def test_an_agent_that_restarts_while_the_store_is_away_proves_by_its_books_that_it_was_there() -> None:
    """It ran for 5000 s before the store was back, and a pod held the GPU throughout: no more is held than was seen."""
    held = BOOKED._replace(scope=CounterScope.CONTAINER, measure=Measure.HELD)
    totals = CounterTotals(0.0)
    before = [(at, at * 1_000_000) for at in range(60, 660, 60)]
    grow(totals, {BOOKED: before, held: before})
    later = grow(totals, {BOOKED: [(7800, 1000)], held: [(7800, 5_000_000_000)]})
    assert later.counters[held] == later.seen_us == 5_000_000_000
    assert totals.presence[CARD].gaps == [(600, 2800)]
