"""When two targets are scraped side by side, and whether both can be one agent."""

from collections.abc import Iterable

import pytest

from podgpu.cluster.store.targets import NodeTargets, ScrapeTarget, agree, replica_of, together

RATES = {"held": 1.0}


def every(seconds: int, start: int, end: int) -> list[float]:
    return [float(at) for at in range(start, end, seconds)]


def counted(times: Iterable[float], ahead: float = 0.0) -> dict[float, dict[str, float]]:
    """A counter that grows by 1 in a second."""
    return {at: {"held": 100_000 + at + ahead} for at in times}


def test_two_targets_of_one_hour_are_side_by_side() -> None:
    shared = together(every(30, 0, 3600), every(60, 7, 3600))
    assert shared
    assert (shared.start, shared.end) == (7.0, 3547.0)


@pytest.mark.parametrize(
    ("some", "others"),
    [
        (every(30, 0, 1800), every(30, 1800, 3600)),  # an agent that replaces another
        (every(30, 0, 1800), every(30, 1770, 3600)),  # and is there a little earlier
        ([*every(30, 0, 900), *every(30, 2700, 3600)], every(30, 960, 2650)),  # in a gap, until the first is back
        (every(30, 0, 3600), []),
    ],
)
def test_an_agent_that_takes_over_is_not_beside_the_one_before(some: list[float], others: list[float]) -> None:
    assert together(some, others) is None
    assert together(others, some) is None


@pytest.mark.parametrize("late", [0, 7, 29])
@pytest.mark.parametrize("seconds", [15, 60, 300])
def test_two_scrapes_of_one_agent_agree_however_often_each_is_made(late: int, seconds: int) -> None:
    assert agree(counted(every(30, 0, 3600)), counted(every(seconds, late, 3600)), RATES)


def test_they_agree_through_a_restart() -> None:
    def restarted(times: list[float]) -> dict[float, dict[str, float]]:
        return {at: {"held": 50_000 + at if at < 1800 else at - 1800} for at in times}

    assert agree(restarted(every(30, 0, 3600)), restarted(every(30, 13, 3600)), RATES)


def test_a_counter_that_ends_for_one_a_little_later_is_no_dispute() -> None:
    some = {**counted(every(30, 0, 1800)), **{at: {} for at in every(30, 1800, 3600)}}
    others = {**counted(every(30, 13, 1820)), **{at: {} for at in every(30, 1843, 3600)}}
    assert agree(some, others, RATES)


@pytest.mark.parametrize("ahead", [-100_000.0, -200.0, 200.0])
def test_a_page_that_is_further_off_than_clocks_explain_does_not(ahead: float) -> None:
    assert not agree(counted(every(30, 0, 3600)), counted(every(30, 13, 3600), ahead), RATES)


def test_a_counter_that_only_one_of_them_has_does_not() -> None:
    assert not agree(counted(every(30, 0, 3600)), {at: {} for at in every(30, 13, 3600)}, RATES)


def test_a_target_is_named_by_what_the_scraper_says_of_it() -> None:
    labels = {"job": "tenants/web", "instance": "10.0.0.66:80", "exported_job": "podgpu", "node": "a", "uuid": "GPU-1"}
    assert ScrapeTarget.of(labels) == ("tenants/web", "10.0.0.66:80")
    assert replica_of(labels) == {("job", "tenants/web"), ("instance", "10.0.0.66:80")}


def test_only_a_target_with_cards_of_a_node_speaks_for_it() -> None:
    targets = NodeTargets()
    targets.note([{"job": "podgpu", "instance": "x", "node": "rack-7", "exported_node": "a"}])
    assert targets.is_believed(ScrapeTarget("podgpu", "x"), "a")
    assert not targets.is_believed(ScrapeTarget("podgpu", "x"), "b")
    assert not targets.is_believed(ScrapeTarget("web", "y"), "a")
    assert targets.jobs == {"podgpu": {"a"}}
    assert targets.ignored == {"podgpu", "web"}
