"""What each word promises, for tenants with any rhythm: bounds hold always, estimates nearly always."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.minutes_of_model import TenantMinute, minutes
from tests.tenant_model import MILLI, SECOND, ModelTenant, run

ALWAYS = ModelTenant(2 * MILLI)
LENGTHS = st.integers(MILLI, 150 * MILLI)
TENANTS = st.one_of(
    st.just(ALWAYS),
    st.builds(
        ModelTenant,
        work=LENGTHS,
        every=st.sampled_from([5, 7, 10, 15, 20, 25, 30]).map(lambda rate: SECOND // rate),
        paced=st.just(True),
        jitter=st.sampled_from([0.0, 0.02]),
        phase=st.integers(0, 200 * MILLI),
    ),
    st.builds(ModelTenant, work=LENGTHS, every=st.integers(5 * MILLI, 3 * SECOND), jitter=st.floats(0.0, 1.0)),
    st.just(ModelTenant(2 * MILLI, hides=True)),
)
CARDS = st.lists(TENANTS, min_size=2, max_size=4)
SEEDS = st.integers(0, 2**32)


@settings(max_examples=12, deadline=None)
@given(CARDS, st.sampled_from(["off", "check"]), st.sampled_from([1.0, 5.0]), SEEDS)
def test_nothing_called_a_bound_excludes_the_truth(
    tenants: list[ModelTenant], switches: str, cycle: float, seed: int
) -> None:
    chance = Random(seed)
    made = run(tenants, 60, chance)
    for found in minutes(made, switches=switches, cycle=cycle, chance=chance):
        band = found.band
        assert found.is_within_bounds, found
        assert band.least_us <= band.likely_least_us <= band.booked_us <= band.likely_most_us <= band.most_us
        assert band.least_mj <= band.likely_least_mj <= band.booked_mj <= band.likely_most_mj <= band.most_mj
        assert band.certainty == "estimated"


@settings(max_examples=8, deadline=None)
@given(CARDS, SEEDS)
def test_the_log_read_throughout_gives_bounds_that_hold(tenants: list[ModelTenant], seed: int) -> None:
    """A change of contexts takes no time here: it is nobody's, so that there would be no truth to compare with."""
    made = run(tenants, 60, Random(seed), change=0)
    for found in minutes(made, switches="auto", cycle=5.0):
        assert found.is_within_bounds, found
        assert found.band.certainty in {"exact", "bounded"}
        if found.band.certainty == "exact":
            assert found.band.booked_us == pytest.approx(found.true_us, abs=1000)


def judged(*tenants: ModelTenant, switches: str, seeds: int, first: int = 1) -> list[TenantMinute]:
    """All minutes from the `first` on, of cards of these tenants in different phases."""
    found: list[TenantMinute] = []
    for seed in range(seeds):
        chance = Random(seed)
        made = run(tenants, 240, chance)
        found += [each for each in minutes(made, switches=switches, chance=chance) if each.minute >= first]
    return found


def inside(found: list[TenantMinute]) -> float:
    return sum(each.is_likely for each in found) / len(found)


UNPACED = [
    (ALWAYS, ModelTenant(50 * MILLI, 90 * MILLI, jitter=0.5)),
    (ALWAYS, ModelTenant(2 * SECOND, 3 * SECOND, jitter=0.5)),
    (ModelTenant(50 * MILLI, 90 * MILLI, jitter=0.5), ModelTenant(30 * MILLI, 70 * MILLI, jitter=0.5)),
]
SLOW_BEAT = (ALWAYS, ModelTenant(113 * MILLI, 91 * MILLI, jitter=0.02))
PACED = [
    (ALWAYS, ModelTenant(8 * MILLI, SECOND // 25, paced=True)),
    (ALWAYS, ModelTenant(10 * MILLI, SECOND // 30, paced=True)),
    (ALWAYS, ModelTenant(60 * MILLI, SECOND // 5, paced=True)),
    (ALWAYS, ModelTenant(20 * MILLI, SECOND // 10, paced=True)),
    (ALWAYS, ModelTenant(2 * MILLI, hides=True)),
]


def test_by_samples_an_estimate_holds_for_tenants_that_do_not_keep_time() -> None:
    found = [each for tenants in (*UNPACED, SLOW_BEAT) for each in judged(*tenants, switches="off", seeds=3)]
    assert inside(found) >= 0.95


def test_with_checks_an_estimate_holds_for_all() -> None:
    sets = (*UNPACED, SLOW_BEAT, *PACED)
    found = [each for tenants in sets for each in judged(*tenants, switches="check", seeds=2, first=2)]
    assert inside(found) >= 0.95
    assert {each.method for each in found} == {"checked"}


@pytest.mark.parametrize("tenants", PACED)
def test_with_checks_a_frame_rate_is_booked_within_three_points(tenants: tuple[ModelTenant, ...]) -> None:
    assert max(abs(each.points) for each in judged(*tenants, switches="check", seeds=3, first=3)) <= 3


def test_by_samples_a_camera_may_be_booked_anything() -> None:
    """Which is why its range is not called a bound: it excludes the truth, and the bounds do not."""
    found = judged(*PACED[0], switches="off", seeds=6)
    assert max(abs(each.points) for each in found) > 10
    assert inside(found) < 0.5
    assert all(each.is_within_bounds for each in found)
