"""A card whose series are in the store several times is counted once."""

from collections.abc import Iterable, Mapping

import pytest

from podgpu.cluster.report.counters import CardKey, CounterKey, CounterScope, Measure
from podgpu.cluster.report.deduplication import Deduplication
from podgpu.cluster.report.increases import CounterTotals
from podgpu.cluster.report.queries import TimeWindow
from podgpu.cluster.store.targets import MOST_TARGETS, Replica

CARD = CardKey("", "alpha", "GPU-1")
BOOKED = CounterKey(CARD, CounterScope.BOOKED, Measure.BUSY)
POD = CounterKey(CARD, CounterScope.CONTAINER, Measure.HELD, namespace="ml", pod="train")

Samples = Mapping[float, int]


SECOND = 1_000_000


def replica(name: str) -> Replica:
    """Two servers, `first` and `second`, scrape one agent. `other` is another one on the same node."""
    instance = name if name == "other" else "10.0.0.1:19400"
    return frozenset({("instance", instance), ("server", name)})


def counted(*windows: tuple[float, float], start: int = 0, **samples: Samples) -> int:
    """Return what a pod held in these windows, by two replicas. It had held `start` before."""
    totals, replicas = CounterTotals(windows[0][0]), Deduplication()
    if start:
        totals.begin({CARD: {BOOKED: start * SECOND, POD: start * SECOND}})
    held = 0
    for begin, end in windows:
        seen = {name: {at: v for at, v in own.items() if begin < at <= end} for name, own in samples.items()}
        scrapes = {
            replica(name): {at: {BOOKED: v * SECOND, POD: v * SECOND} for at, v in own.items()}
            for name, own in seen.items()
            if own
        }
        chosen, baselines = replicas.choose({CARD: scrapes}, TimeWindow(begin, end))
        for increases in totals.grow(chosen, {}, baselines).values():
            held += increases.counters.get(POD, 0)
    return held // SECOND


def every(seconds: int, times: Iterable[int], value: int = 0, late: float = 0.0) -> dict[float, int]:
    """Samples of a counter that grows by 1 in a second and has the value at the first of the times."""
    span = list(times)
    return {at + late: value + at - span[0] for at in span if (at - span[0]) % seconds == 0}


HOUR = [(0.0, 3600.0)]
HALVES = [(0.0, 1800.0), (1800.0, 3600.0)]


@pytest.mark.parametrize("windows", [HOUR, HALVES])
def test_two_servers_whose_clocks_differ_count_once(windows: list[tuple[float, float]]) -> None:
    """The second one stamps each sample so late that it seems to come after a newer one of the first."""
    first = every(60, range(60, 3601), 100_060)
    second = every(60, range(60, 3541), 100_060, late=60.02)
    assert counted(*windows, start=100_000, first=first, second=second) == 3600


@pytest.mark.parametrize("windows", [HOUR, HALVES])
def test_two_agents_that_count_differently_count_nothing(windows: list[tuple[float, float]]) -> None:
    first = every(60, range(60, 3601), 100_060)
    other = every(60, range(75, 3601), 5075)
    assert counted(*windows, start=100_000, first=first, other=other) == 0


@pytest.mark.parametrize("windows", [HOUR, HALVES])
def test_two_jobs_that_scrape_one_agent_count_once(windows: list[tuple[float, float]]) -> None:
    first = every(60, range(60, 3601), 100_060)
    other = every(60, range(75, 3601), 100_075)
    assert counted(*windows, start=100_000, first=first, other=other) == 3600


@pytest.mark.parametrize("windows", [HOUR, HALVES])
@pytest.mark.parametrize("ends", [1200, 1790, 2400])
def test_what_is_left_of_two_agents_counts_from_when_it_is_alone(windows: list[tuple[float, float]], ends: int) -> None:
    """Nobody knows which of them was right while both spoke, so that time is nobody's."""
    first = every(60, range(60, ends), 100_060)
    other = every(60, range(75, 3601), 5075)
    found = counted(*windows, start=100_000, first=first, other=other)
    alone = max(other) - max(first)
    assert alone - 4 * 60 <= found <= alone


@pytest.mark.parametrize("windows", [HOUR, HALVES])
@pytest.mark.parametrize("ends", [1200, 1790, 1800, 3590])
def test_an_agent_that_replaces_another_begins_at_0(windows: list[tuple[float, float]], ends: int) -> None:
    first = every(60, range(60, ends), 100_060)
    other = every(60, range(max(map(int, first)) + 70, 3601), 10)
    assert counted(*windows, start=100_000, first=first, other=other) == sum(
        (max(first), max(other.values(), default=0))
    )


def test_a_second_server_fills_in_while_the_first_is_away() -> None:
    first = every(60, range(60, 3601), 100_060)
    away = {at: value for at, value in first.items() if not 1000 < at < 2500}
    second = every(60, range(75, 3601), 100_075)
    totals = counted(*HOUR, start=100_000, first=away, second=second)
    assert 3555 <= totals <= 3600


def test_a_crowd_of_targets_is_disputed_and_not_compared() -> None:
    """A tenant may have thousands of pages. Each pair would be compared."""
    replicas = Deduplication()
    crowd = {
        frozenset({("instance", str(number))}): {15.0 * scrape: {POD: scrape * 15 * SECOND} for scrape in range(20)}
        for number in range(MOST_TARGETS + 1)
    }
    chosen, _ = replicas.choose({CARD: crowd}, TimeWindow(0.0, 300.0))
    assert not chosen
    assert len(replicas.disputed) == 1
