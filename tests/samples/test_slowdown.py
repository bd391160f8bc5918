"""The predicted slowdown of tenants that share a real card, against what they lost."""

import pytest

from podgpu.insight.slowdown import BusyNeed, Slowdown, TurnTaking, slowdowns
from tests.samples.slowdown import losses_in_bursts
from tests.samples.test_recorded import RECORDED

SETS = [name for name, recorded in RECORDED.items() if len(recorded["pids"]) > 1]
FREE = TurnTaking(switching=0.0, turn=1.0)  # as if switching cost nothing and turns were equal


@pytest.mark.parametrize("name", SETS)
def test_what_tenants_in_bursts_lost_is_within_the_prediction(name: str) -> None:
    for loss in losses_in_bursts(RECORDED[name], RECORDED["soloA"]):
        assert loss.is_within, loss
        assert loss.predicted.most < 4, "a range that says nothing"


def test_a_tenant_alone_loses_nothing() -> None:
    assert slowdowns([BusyNeed(1.0, 1.0)]) == (Slowdown(1.0, 1.0),)
    assert slowdowns([BusyNeed(0.4, 0.6), BusyNeed(0.0, 0.0)])[0] == Slowdown(1.0, 1.0)


def test_two_that_never_rest_take_at_least_twice_as_long_together_if_turns_are_equal() -> None:
    assert slowdowns([BusyNeed(1.0, 1.0)] * 2, FREE) == (Slowdown(2.0, 2.0),) * 2
    assert slowdowns([BusyNeed(1.0, 1.0)] * 4, FREE) == (Slowdown(4.0, 4.0),) * 4


def test_switching_and_longer_turns_of_a_neighbour_widen_the_range() -> None:
    equal, dear, long = (
        slowdowns([BusyNeed(0.9, 0.95)] * 2, turns)[0]
        for turns in (FREE, TurnTaking(switching=0.25, turn=1.0), TurnTaking(switching=0.0, turn=3.0))
    )
    assert equal.most < dear.most and equal.most < long.most
    assert equal.least > dear.least >= 1 and equal.least > long.least >= 1
