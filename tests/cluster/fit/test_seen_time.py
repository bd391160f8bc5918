"""What was seen is a part of the period that was asked for, by the rule of the bill."""

import pytest

from podgpu.cluster.fit.seen_time import seen_ratio
from podgpu.cluster.fit.workload_use import FitPeriod
from podgpu.cluster.report.counters import CardKey
from podgpu.cluster.report.coverage import GpuEvidence

PERIOD = FitPeriod(0, 6000, 60)
CARD = CardKey("", "n", "GPU-0")
ALL = b"\1" * 100


def seen(scraped: bytes, evidence: GpuEvidence | None = None) -> float | None:
    return seen_ratio(PERIOD, {("", "n"): bytearray(scraped)}, [CARD], evidence or GpuEvidence())


def test_three_minutes_of_many_are_a_small_part() -> None:
    assert seen(b"\0" * 97 + b"\1" * 3) == pytest.approx(0.03)


def test_all_of_it_is_all() -> None:
    assert seen(ALL) == 1.0


def test_a_gap_counts_and_the_restart_of_an_agent_does_not() -> None:
    assert seen(b"\1" * 40 + b"\0" * 50 + b"\1" * 10) == pytest.approx(0.5)
    assert seen(b"\1" * 40 + b"\0" + b"\1" * 59) == 1.0


def test_before_its_node_was_there_nothing_was_missed() -> None:
    evidence = GpuEvidence(node_times={("", "n"): [(4800.0, 6000.0)]})
    assert seen(b"\0" * 90 + b"\1" * 10, evidence) == pytest.approx(0.5)


def test_a_card_of_which_no_agent_reports_counts_as_not_seen() -> None:
    other = CardKey("", "bare", "bare/0")
    evidence = GpuEvidence(
        node_times={("", "n"): [(0.0, 6000.0)], ("", "bare"): [(0.0, 6000.0)]}, unscraped={other: ""}
    )
    assert seen(ALL, evidence) == pytest.approx(0.5)


def test_without_cards_it_is_not_known() -> None:
    assert seen_ratio(PERIOD, {}, [], GpuEvidence()) is None
