"""Which nodes two targets speak for at the same time without saying the same."""

from podgpu.cluster.store.disputes import disputes, fault
from podgpu.cluster.store.response import Point, Series
from podgpu.cluster.store.targets import MOST_TARGETS

NAME = "podgpu_container_allocated_seconds_total"


def clock(instance: str, start: int, end: int) -> Series:
    return Series({"node": "a", "job": "web", "instance": instance}, [(float(at), 1.0) for at in range(start, end, 15)])


def held(instance: str, seconds: float) -> Point:
    return Point({"__name__": NAME, "node": "a", "job": "web", "instance": instance, "pod": "train"}, seconds)


def test_one_that_has_ended_does_not_hide_two_others_that_disagree() -> None:
    clocks = [clock("1", 0, 60), clock("2", 100, 300), clock("3", 103, 300)]
    assert "a" in disputes(clocks, [held("1", 500.0), held("2", 500.0), held("3", 9000.0)])
    assert not disputes(clocks, [held("1", 500.0), held("2", 500.0), held("3", 510.0)])


def test_a_crowd_is_disputed_and_not_compared() -> None:
    """A tenant may have thousands of pages. Each pair would be compared."""
    names = [f"{number:04}" for number in range(MOST_TARGETS + 1)]
    found = disputes([clock(name, 0, 300) for name in names], [held(name, 500.0) for name in names])
    said = fault(found["a"]).detail
    assert said.startswith(
        "0000 of job web, 0001 of job web, 0002 of job web and 30 or more others say different things"
    )
