"""The advice against what was planted. `python -m tests.insight.fit` does the same with 400 workloads."""

import pytest

from tests.insight.fit.planted import Planted, planted
from tests.insight.fit.weeks import Rows, advice, changes, overruns, wrong

WORKLOADS = 30


@pytest.fixture(scope="module")
def workloads() -> list[Planted]:
    return list(planted(WORKLOADS))


@pytest.fixture(scope="module")
def rows(workloads: list[Planted]) -> Rows:
    return advice(workloads)


def test_every_planted_advice_is_found(workloads: list[Planted], rows: Rows) -> None:
    assert wrong(workloads, rows) == []


def test_no_advice_would_have_run_out_of_memory_in_the_week_after(workloads: list[Planted], rows: Rows) -> None:
    assert list(overruns(workloads, rows)) == []


def test_the_advice_is_the_same_the_next_day(workloads: list[Planted]) -> None:
    assert changes(workloads, days=1)[0] == []
