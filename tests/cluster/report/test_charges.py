"""Who pays for which part of a card, in every basis."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.cluster.report.charges import Basis, CardCounts, charges
from podgpu.cluster.report.counters import CardKey, CounterKey, CounterScope, Measure

CARD = CardKey("", "alpha", "GPU-1")
HOUR = 3_600_000_000


def counter(pod: str, measure: Measure) -> CounterKey:
    return CounterKey(CARD, CounterScope.CONTAINER, measure, namespace="ml", pod=pod)


def counts(seen: int, unattributed: int = 0, **pods: tuple[int, int]) -> CardCounts:
    """Each pod has held and busy time, in a group of its own."""
    found = CardCounts(seen_us=seen)
    for pod, (held, busy) in pods.items():
        found.add(counter(pod, Measure.HELD), ("group", (pod,)), held)
        found.add(counter(pod, Measure.BUSY), ("group", (pod,)), busy)
    found.add(CounterKey(CARD, CounterScope.UNATTRIBUTED, Measure.BUSY, reason="host"), None, unattributed)
    return found


def test_held_time_is_paid_used_or_not() -> None:
    found = charges(counts(HOUR, a=(HOUR // 2, 0), b=(HOUR // 4, HOUR // 4)), Basis.HELD)
    assert found == {("group", ("a",)): HOUR // 2, ("group", ("b",)): HOUR // 4, ("free", ()): HOUR // 4}


def test_used_time_leaves_what_was_held_in_vain_to_nobody() -> None:
    found = charges(counts(HOUR, HOUR // 10, a=(HOUR // 2, HOUR // 10)), Basis.USED)
    assert found == {
        ("group", ("a",)): HOUR // 10,
        ("unattributed", ()): HOUR // 10,
        ("idle", ()): HOUR * 4 // 10,
        ("free", ()): HOUR * 4 // 10,
    }


def test_who_uses_more_than_it_holds_pays_for_what_it_used() -> None:
    found = charges(counts(HOUR, a=(HOUR // 4, HOUR // 2), b=(HOUR // 4, 0)), Basis.GREATER)
    assert found == {("group", ("a",)): HOUR // 2, ("group", ("b",)): HOUR // 4, ("free", ()): HOUR // 4}


def test_who_only_uses_a_card_holds_nothing_and_who_only_holds_it_uses_nothing() -> None:
    found = CardCounts(seen_us=HOUR)
    found.add(counter("a", Measure.BUSY), ("group", ("a",)), 500)
    found.add(counter("b", Measure.HELD), ("group", ("b",)), 700)
    paid = {basis: charges(found, basis) for basis in (Basis.HELD, Basis.USED, Basis.GREATER)}
    assert [rows["group", ("a",)] for rows in paid.values()] == [0, 500, 500]
    assert [rows["group", ("b",)] for rows in paid.values()] == [700, 0, 700]


def test_no_more_than_the_whole_card_is_paid_for() -> None:
    found = charges(counts(HOUR, a=(HOUR // 2, HOUR), b=(HOUR // 2, 0)), Basis.GREATER)
    assert found == {("group", ("a",)): HOUR * 2 // 3, ("group", ("b",)): HOUR // 3, ("free", ()): 0}


def test_the_order_of_a_stores_answer_does_not_matter() -> None:
    pods = {"a": (HOUR, 0), "b": (HOUR, 0), "c": (HOUR, 0)}
    found = charges(counts(HOUR + 1, 0, **pods), Basis.HELD)
    assert found == charges(counts(HOUR + 1, 0, **dict(reversed(pods.items()))), Basis.HELD)
    assert found["group", ("a",)] == HOUR // 3 + 1


TIMES = st.integers(0, 2 * HOUR)


@pytest.mark.parametrize("basis", [Basis.HELD, Basis.USED, Basis.GREATER])
@given(
    seen=st.integers(0, HOUR),
    unattributed=TIMES,
    pods=st.dictionaries(st.sampled_from("abcdef"), st.tuples(TIMES, TIMES), max_size=6),
)
def test_the_rows_add_up_to_the_time_that_the_card_was_seen(
    basis: Basis, seen: int, unattributed: int, pods: dict[str, tuple[int, int]]
) -> None:
    found = charges(counts(seen, unattributed, **pods), basis)
    assert sum(found.values()) == seen
    assert all(amount >= 0 for amount in found.values())


@given(st.dictionaries(st.sampled_from("abc"), st.integers(0, 10**9), max_size=3), st.integers(0, 10**9))
def test_energy_adds_up_to_what_the_card_counted(pods: dict[str, int], more: int) -> None:
    found = CardCounts(seen_us=HOUR)
    for pod, energy in pods.items():
        found.add(counter(pod, Measure.ENERGY), ("group", (pod,)), energy)
    found.add(CounterKey(CARD, CounterScope.METER, Measure.ENERGY), None, sum(pods.values()) + more)
    assert sum(charges(found, Basis.ENERGY).values()) == sum(pods.values()) + more


def test_energy_that_no_agent_booked_is_what_the_larger_of_both_counters_has_beyond_the_rows() -> None:
    found = CardCounts(seen_us=HOUR)
    found.add(counter("a", Measure.ENERGY), ("group", ("a",)), 60)
    found.add(CounterKey(CARD, CounterScope.UNATTRIBUTED, Measure.ENERGY, reason="idle"), None, 25)
    assert found.unbooked(Measure.ENERGY) is None  # nothing says what the card drew
    found.add(CounterKey(CARD, CounterScope.BOOKED, Measure.ENERGY), None, 100)
    found.add(CounterKey(CARD, CounterScope.METER, Measure.ENERGY), None, 120)
    rows = {"unattributed": 25, "unbooked": 120 - 60 - 25, "free": 0}
    expected = {("group", ("a",)): 60} | {(kind, ()): amount for kind, amount in rows.items()}
    assert charges(found, Basis.ENERGY) == expected


def test_two_hours_of_a_card_are_added_up() -> None:
    both = counts(HOUR, 5, a=(10, 20))
    both.merge(counts(HOUR, 7, a=(1, 2), b=(3, 4)))
    assert both == counts(2 * HOUR, 12, a=(11, 22), b=(3, 4))
