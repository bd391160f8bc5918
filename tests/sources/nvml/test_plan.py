"""What NVML and DCGM answer for "not available" is absent, and is no error."""

import pynvml
import pytest

from podgpu.catalog import CATALOG
from podgpu.catalog.row import Metric
from podgpu.sources.nvml import failure, plan
from podgpu.sources.nvml.handle import CallTracker, Handle
from podgpu.sources.nvml.plan import SENTINELS, reading
from tests.fakenvml.fake_node import FakeGpu, h200, refused
from tests.fakenvml.stage import Stage

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


REPLAYS = ("nvlink_errors_total", ("link_replay",))


def replays(stage: Stage, handle: Handle) -> list[float]:
    stage.rewrite()
    rows = plan.Plan.of(row for row in plan.DEVICE_ROWS if (row.name, row.label_values) == REPLAYS)
    return [found.value for found in plan.read(rows, handle)]


@pytest.fixture
def linked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> tuple[FakeGpu, Handle]:
    """A card with three links, each with errors of its own."""
    monkeypatch.setattr(failure, "FIRST_PAUSE", 0.0)
    gpu = h200(0)
    gpu.fields |= {(161, link): 10 * (link + 1) for link in range(3)}
    return gpu, Handle(stage.play(gpu), CallTracker())


def test_errors_of_links_are_added_up_over_those_that_there_are(stage: Stage, linked: tuple[FakeGpu, Handle]) -> None:
    assert replays(stage, linked[1]) == [60]


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_UNKNOWN])
def test_a_sum_does_not_fall_because_a_link_is_silent(stage: Stage, linked: tuple[FakeGpu, Handle], code: int) -> None:
    gpu, handle = linked
    assert replays(stage, handle) == [60]
    gpu.fields[161, 1] = refused(code)
    assert replays(stage, handle) == []
    gpu.fields[161, 1] = 25
    assert replays(stage, handle) == [65]


def test_a_link_that_fails_at_first_is_not_left_out_of_the_sum(stage: Stage, linked: tuple[FakeGpu, Handle]) -> None:
    gpu, handle = linked
    gpu.fields[161, 2] = refused(pynvml.NVML_ERROR_UNKNOWN)
    assert replays(stage, handle) == []
    gpu.fields[161, 2] = 30
    assert replays(stage, handle) == [60]


def test_a_card_without_links_has_no_such_errors(stage: Stage) -> None:
    assert replays(stage, Handle(stage.play(h200(0)), CallTracker())) == []
