"""The predicted slowdown of tenants that share a real card, against what they lost."""

import pytest

from podgpu.insight.plan.replay import BusyNeed, Slowdown, TurnTaking, slowdowns
from tests.samples.replay import recording
from tests.samples.slowdown import CLOCKS, losses, losses_in_bursts
from tests.samples.test_recorded import FOLDER, RECORDED

SETS = [name for name, recorded in RECORDED.items() if len(recorded["pids"]) > 1]
PAIRS = recording(FOLDER / "h200-slowdown.json.gz")
# As if switching cost nothing, and each turn were as long as a piece of work.
EVEN = TurnTaking(slice_seconds=1e-3, switch_seconds=0.0, piece_seconds=1e-3)


@pytest.mark.parametrize("name", SETS)
def test_what_tenants_in_bursts_lost_is_within_the_prediction(name: str) -> None:
    for loss in losses_in_bursts(RECORDED[name], RECORDED["soloA"]):
        assert loss.is_within, loss
        assert loss.predicted.most < 6, "a range that says nothing"


def test_what_pairs_of_tenants_lost_is_within_the_prediction() -> None:
    found = list(losses(PAIRS))
    assert len(found) == 2 * len(PAIRS["together"]) == 18
    assert [loss for loss in found if not loss.is_within] == []
    assert max(loss.real for loss in found) > 10  # a tenant that waits for each kernel, beside one that queues many
    paced = [loss for loss in found if loss.beside.endswith("paced")]
    assert max(loss.predicted.most for loss in paced) < 2.5, "a range that says nothing"


def test_the_slowest_of_a_pair_lost_what_both_have_to_do_at_least() -> None:
    alone = {name: tenant["busy"] for name, tenant in PAIRS["alone"].items()}
    slowest: dict[tuple[str, ...], float] = {}
    for loss in losses(PAIRS):
        pair = tuple(sorted((loss.tenant, loss.beside)))
        slowest[pair] = max(slowest.get(pair, 0.0), loss.real)
    for pair, real in slowest.items():
        assert real >= sum(alone[name] for name in pair) * (1 - CLOCKS), pair


def test_a_tenant_alone_loses_nothing() -> None:
    assert slowdowns([BusyNeed(1.0, 1.0)]) == (Slowdown(1.0, 1.0),)
    assert slowdowns([BusyNeed(0.4, 0.6), BusyNeed(0.0, 0.0)])[0] == Slowdown(1.0, 1.0)


def test_those_that_never_rest_take_as_many_times_as_long_as_there_are_if_turns_are_even() -> None:
    assert slowdowns([BusyNeed(1.0, 1.0)] * 2, EVEN) == (Slowdown(2.0, 2.0),) * 2
    assert slowdowns([BusyNeed(1.0, 1.0)] * 4, EVEN) == (Slowdown(4.0, 4.0),) * 4


def test_dear_switches_and_long_slices_widen_the_range() -> None:
    even, dear, long = (
        slowdowns([BusyNeed(0.9, 0.95)] * 2, turns)[0]
        for turns in (EVEN, TurnTaking(1e-3, 2e-4, 1e-3), TurnTaking(3e-3, 0.0, 1e-3))
    )
    assert even.most < dear.most and even.most < long.most
    assert even.least > dear.least >= 1 and even.least > long.least >= 1
