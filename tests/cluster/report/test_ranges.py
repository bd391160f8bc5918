"""The range of a row of a bill is that of its sum, and what is booked lies inside."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from podgpu.cluster.report.charges import CardCounts, RowKey, row
from podgpu.cluster.report.counters import CardKey, CounterKey, CounterScope, Measure
from podgpu.cluster.report.ranges import MINUTE_US, busy_ranges
from podgpu.model import BusyRange

CARD = CardKey("", "alpha", "GPU-1")
UNATTRIBUTED = row("unattributed")
PROVEN = (Measure.BUSY_LEAST, Measure.BUSY_MOST)
ENDS = (*PROVEN, Measure.BUSY_LIKELY_LEAST, Measure.BUSY_LIKELY_MOST)
Counted = dict[Measure, int]


def group(name: str) -> RowKey:
    return "group", (name,)


def counted(booked: int, *ends: int) -> Counted:
    return {Measure.BUSY: booked, **dict(zip(ENDS, ends, strict=False))}


def card(pods: dict[str, Counted], unattributed: Counted | None = None, whole: int | None = None) -> CardCounts:
    """A pod is of the group that its name begins with."""
    found = CardCounts()
    for pod, counts in pods.items():
        for measure, amount in counts.items():
            key = CounterKey(CARD, CounterScope.CONTAINER, measure, namespace="ml", pod=pod)
            found.add(key, group(pod[0]), amount)
    for measure, amount in (counted(0, 0, 0) if unattributed is None else unattributed).items():
        if measure not in ENDS[2:]:  # agents do not count it
            found.add(CounterKey(CARD, CounterScope.UNATTRIBUTED, measure), None, amount)
    if whole is not None:
        found.add(CounterKey(CARD, CounterScope.BOOKED, Measure.BUSY), None, whole)
    return found


SHARED = {"a1": counted(500, 0, 1000, 400, 600), "a2": counted(300, 0, 1000, 200, 400)}


def test_a_row_had_no_more_than_the_card_less_what_others_had_for_certain() -> None:
    found = busy_ranges(card(SHARED | {"b1": counted(200, 150, 250, 150, 250)}))
    assert found[group("a")] == BusyRange(750, 850, 750, 850, is_estimate=True)
    assert found[group("b")] == BusyRange(150, 250, 150, 250)
    assert [found[group(name)].certainty for name in "ab"] == ["estimated", "bounded"]


def test_a_row_that_has_all_of_a_card_is_exact_however_its_pods_divide_it() -> None:
    found = busy_ranges(card(SHARED))
    assert found[group("a")] == BusyRange(800, 800, 800, 800)
    assert found[group("a")].certainty == "exact"


def test_samples_prove_nothing_of_two_rows_and_estimate_both() -> None:
    found = busy_ranges(card({"a1": counted(600, 0, 1000, 500, 750), "b1": counted(400, 0, 1000, 300, 450)}))
    assert found[group("a")] == BusyRange(0, 1000, 550, 700, is_estimate=True)
    assert found[group("b")] == BusyRange(0, 1000, 300, 450, is_estimate=True)
    assert {each.certainty for each in found.values()} == {"estimated", "exact"}
    assert found[UNATTRIBUTED].certainty == "exact"


def test_a_likely_range_that_is_as_wide_as_what_is_proven_is_still_an_estimate() -> None:
    found = busy_ranges(card({"a1": counted(60, 0, 100, 0, 100), "b1": counted(40, 0, 100, 0, 100)}))
    assert found[group("a")].certainty == found[group("b")].certainty == "estimated"


def test_a_card_without_doubt_does_not_make_another_card_an_estimate() -> None:
    """What samples divide within a row is no doubt of the row."""
    of_log = busy_ranges(card({"a1": counted(60, 50, 70, 50, 70), "b1": counted(40, 30, 50, 30, 50)}))
    both = of_log[group("a")].added_to(busy_ranges(card(SHARED))[group("a")])
    assert both == BusyRange(850, 870, 850, 870)
    assert both.certainty == "bounded"


def test_a_process_of_the_host_may_have_had_what_pods_are_booked() -> None:
    found = busy_ranges(card(SHARED, counted(0, 0, 1000)))
    assert found[group("a")] == BusyRange(0, 800, 600, 800, is_estimate=True)
    assert found[UNATTRIBUTED] == BusyRange(0, 800, 0, 200, is_estimate=True)


def test_without_ranges_of_the_host_nothing_follows_from_what_others_had() -> None:
    """Agents before 0.2 have none, and call what is likely a bound."""
    found = busy_ranges(card({"a1": counted(500, 400, 600), "a2": counted(300, 200, 400)}, counted(0)))
    assert found[group("a")] == BusyRange(0, 800, 600, 800, is_estimate=True)
    alone = busy_ranges(card({"a1": counted(500, 500, 500)}, counted(0)))
    assert alone[group("a")].certainty == "exact"


def test_without_ranges_of_a_pod_it_may_have_had_all() -> None:
    found = busy_ranges(card({"a1": counted(500), "b1": counted(300, 300, 300, 300, 300)}))
    assert found[group("a")] == BusyRange(500, 500, 500, 500)  # all that the others did not have
    found = busy_ranges(card({"a1": counted(500), "b1": counted(300)}))
    assert found[group("b")] == BusyRange(0, 800, 0, 800, is_estimate=True)


def test_at_the_edges_of_a_period_a_range_moves_to_what_is_booked() -> None:
    """The last minute of it is booked, and its range is not counted yet; or the first one's is counted as a whole."""
    for booked in (980, 1000, 1020):
        found = busy_ranges(card({"a1": counted(booked, 1000, 1000, 1000, 1000)}))
        assert found[group("a")] == BusyRange(booked, booked, booked, booked)
    found = busy_ranges(card({"a1": counted(1020, 600, 1000, 700, 900), "b1": counted(500, 300, 700, 400, 600)}))
    assert found[group("a")] == BusyRange(820, 1020, 920, 1020, is_estimate=True)


def test_of_a_minute_that_is_not_over_nothing_is_known() -> None:
    booked, whole = MINUTE_US // 4, 10 * MINUTE_US
    found = busy_ranges(card({"a1": counted(booked, 0, 0, 0, 0), "b1": counted(whole - booked, 0, whole, 0, whole)}))
    assert found[group("a")] == BusyRange(0, MINUTE_US, 0, MINUTE_US, is_estimate=True)
    assert found[group("b")] == BusyRange(whole - MINUTE_US, whole, whole - MINUTE_US, whole, is_estimate=True)


def test_what_no_agent_booked_may_be_anybodys() -> None:
    found = busy_ranges(card(SHARED, whole=1000))
    assert found[group("a")] == BusyRange(0, 1000, 600, 1000, is_estimate=True)
    assert found[row("unbooked")] == BusyRange(0, 1000, 0, 400, is_estimate=True)


class PartyMinute(Struct, frozen=True):
    """What a party truly had in a minute, what it was booked, and what was proven and likely."""

    truth: int
    booked: int
    ends: tuple[int, int, int, int]


AMOUNT, SLACK = st.integers(0, 100), st.integers(0, 60)
PODS = ("a1", "a2", "b1", "c1")


@st.composite
def minutes(draw: st.DrawFn) -> list[dict[str, PartyMinute]]:
    """Minutes of a card. Truth and booking divide the same busy time; ranges contain both, or are exact."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        truth = [draw(AMOUNT) for _ in (*PODS, "host")]
        cuts = sorted(draw(st.integers(0, sum(truth))) for _ in PODS)
        booked = [high - low for low, high in zip((0, *cuts), (*cuts, sum(truth)), strict=True)]
        if draw(st.booleans()):
            truth = booked
        if draw(st.booleans()):  # no process of the host
            truth, booked = ([*each[:-2], each[-2] + each[-1], 0] for each in (truth, booked))
        minute = {}
        for name, true, share in zip((*PODS, "host"), truth, booked, strict=True):
            is_sure = true == share and draw(st.booleans())
            least, likely_least, likely_most, most = (0 if is_sure else draw(SLACK) for _ in range(4))
            low, high = max(min(true, share) - least, 0), max(true, share) + most
            likely = max(share - likely_least, low), min(share + likely_most, high)
            minute[name] = PartyMinute(true, share, (low, high, *likely))
        found.append(minute)
    return found


def added(played: Sequence[dict[str, PartyMinute]], name: str) -> Counted:
    mine = [minute[name] for minute in played]
    return counted(sum(each.booked for each in mine), *map(sum, zip(*(each.ends for each in mine), strict=True)))


def sums(played: Sequence[dict[str, PartyMinute]], field: str) -> Counter[RowKey]:
    found = Counter[RowKey]()
    for minute in played:
        for name, party in minute.items():
            found[UNATTRIBUTED if name == "host" else group(name[0])] += getattr(party, field)
    return found


@given(minutes())
def test_whatever_tenants_did_the_truth_and_what_is_booked_lie_inside(played: list[dict[str, PartyMinute]]) -> None:
    counts = {name: added(played, name) for name in played[0]}
    found = busy_ranges(card({pod: counts[pod] for pod in PODS}, counts["host"]))
    truth, booked = sums(played, "truth"), sums(played, "booked")
    whole = sum(booked.values())
    for payer, its in found.items():
        assert 0 <= its.least <= its.likely_least <= booked[payer] <= its.likely_most <= its.most <= whole
        assert its.least <= truth[payer] <= its.most
        names = {name for name in counts if payer == (UNATTRIBUTED if name == "host" else group(name[0]))}
        others = [counts[name] for name in counts.keys() - names]
        assert its.most <= whole - sum(other[Measure.BUSY_LEAST] for other in others)
        assert its.least >= whole - sum(other[Measure.BUSY_MOST] for other in others)


@given(minutes(), st.fixed_dictionaries({name: st.tuples(AMOUNT, AMOUNT) for name in (*PODS, "host")}))
def test_what_is_booked_lies_inside_also_at_the_edges(
    played: list[dict[str, PartyMinute]], edges: dict[str, tuple[int, int]]
) -> None:
    """Of the first minute a part is of the period, and all of its range. Of the last one there is no range yet."""
    counts = {name: added(played, name) for name in edges}
    for name, (before, after) in edges.items():
        early = min(before, played[0][name].booked)
        counts[name][Measure.BUSY] += after - early
    found = busy_ranges(card({pod: counts[pod] for pod in PODS}, counts["host"]))
    booked = Counter[RowKey]()
    for name, own in counts.items():
        booked[UNATTRIBUTED if name == "host" else group(name[0])] += own[Measure.BUSY]
    for payer, its in found.items():
        assert 0 <= its.least <= its.likely_least <= booked[payer]
        assert booked[payer] <= its.likely_most <= its.most <= sum(booked.values())


@given(minutes())
def test_a_row_with_all_that_ran_on_a_card_has_no_doubt(played: list[dict[str, PartyMinute]]) -> None:
    pods = {f"a{number}": added(played, name) for number, name in enumerate((*PODS, "host"))}
    whole = sum(own[Measure.BUSY] for own in pods.values())
    assert busy_ranges(card(pods))[group("a")] == BusyRange(whole, whole, whole, whole)
