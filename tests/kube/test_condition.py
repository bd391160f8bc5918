from collections import Counter

import pytest

from podgpu.kube.condition import Condition
from podgpu.model import Fault
from tests.fakekubelet.rig import Clock, reason


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def condition(clock: Clock) -> Condition:
    return Condition("part", clock=clock)


def test_a_part_that_has_done_nothing_yet_is_starting(condition: Condition, clock: Clock) -> None:
    clock.now += 3
    status = condition.status()
    assert (status.name, status.up, reason(status), status.age_seconds) == ("part", False, "starting", None)
    assert status.fault and status.fault.seconds == 3
    assert not condition.has_worked and not condition.errors


def test_what_worked_ages_from_then_on(condition: Condition, clock: Clock) -> None:
    condition.seconds = 0.25
    condition.worked()
    clock.now += 7
    status = condition.status()
    assert (status.up, status.fault, status.age_seconds, status.duration_seconds) == (True, None, 7.0, 0.25)
    assert condition.has_worked


def test_a_fault_lasts_while_its_reason_stays_the_same(condition: Condition, clock: Clock) -> None:
    condition.worked()
    seconds = []
    for name in ("deadline", "deadline", "garbage"):
        clock.now += 2
        condition.failed(Fault(reason=name, detail=str(clock.now)))
        clock.now += 1
        found = condition.status().fault
        assert found and found.reason == name
        seconds.append(found.seconds)
    assert seconds == [1, 4, 1]
    assert condition.status().age_seconds == 9
    assert condition.errors == {"deadline": 2, "garbage": 1}


def test_a_fault_that_comes_back_begins_anew(condition: Condition, clock: Clock) -> None:
    condition.failed(Fault(reason="deadline"))
    clock.now += 5
    condition.worked()
    clock.now += 5
    condition.failed(Fault(reason="deadline"))
    found = condition.status().fault
    assert found and found.seconds == 0


def test_nothing_ages_while_it_is_kept_current(condition: Condition, clock: Clock) -> None:
    condition.worked()
    with condition.kept_current():
        clock.now += 100
        assert condition.status().age_seconds == 0
    clock.now += 4
    assert condition.status().age_seconds == 4


def test_errors_may_be_counted_elsewhere_too(clock: Clock) -> None:
    errors = Counter(garbage=2)
    condition = Condition("part", clock=clock, errors=errors)
    condition.failed(Fault(reason="garbage"))
    assert errors == {"garbage": 3}
