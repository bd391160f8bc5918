"""What NVML and DCGM answer for "not available" is absent, and is no error."""

import pytest

from podgpu.catalog import CATALOG
from podgpu.catalog.row import Metric
from podgpu.sources.nvml.handle import CallTracker
from podgpu.sources.nvml.plan import SENTINELS, reading

BLANKS = [first + step for first in (2**31 - 16, 2**63 - 16) for step in range(4)]
NOT_AVAILABLE = [2**32 - 1, 2**64 - 1, *BLANKS]
READ = [row for row in CATALOG if row.read is not None]


def widest() -> Metric:
    """Return the row with the highest ceiling, so that no value is absent for being too large."""
    return max(READ, key=lambda row: row.read.unit.ceiling / row.read.unit.factor if row.read else 0.0)


def outcome(row: Metric, value: int) -> tuple[bool, int]:
    """Return whether the value makes a reading, and how many errors."""
    tracker = CallTracker()
    return reading(row, value, tracker) is not None, tracker.errors["implausible_value"]


@pytest.mark.parametrize("value", NOT_AVAILABLE, ids=hex)
def test_not_available_is_absent_and_no_error(value: int) -> None:
    assert outcome(widest(), value) == (False, 0)
    assert {outcome(row, value) for row in READ} == {(False, 0)}


@pytest.mark.parametrize(
    "value",
    [0, 2**31 - 17, 2**31 - 12, 2**31 - 1, 2**32 - 2, 2**32, 2**63 - 2**12, 2**63, 2**64 - 2**12],
    ids=hex,
)
def test_its_neighbours_are_values_or_errors(value: int) -> None:
    assert {sum(outcome(row, value)) for row in READ} == {1}


def test_there_are_no_others() -> None:
    assert set(NOT_AVAILABLE) == SENTINELS
