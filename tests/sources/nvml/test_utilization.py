"""Which of the driver's two calls says what processes do: the one that does say it on the card."""

import pynvml
import pytest

from podgpu.model import Process
from podgpu.sources.nvml.handle import CallTracker
from podgpu.sources.nvml.reader import GpuReader
from tests.fakenvml.build import build
from tests.fakenvml.fake_node import FakeFault, FakeGpu, FakeProcess, h200
from tests.fakenvml.stage import Stage
from tests.patience import wait_until

NEWER, OLDER = "nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetProcessUtilization"
NOTHING = f"return {pynvml.NVML_ERROR_NOT_FOUND}"
REFUSED = f"return {pynvml.NVML_ERROR_NOT_SUPPORTED}"


def busy_card(*, sm: int = 30, card_percent: int = 60) -> FakeGpu:
    card = h200(0)
    card.values["utilization_gpu"] = card_percent
    card.processes = [FakeProcess(70, 1 << 20, sm=sm)]
    return card


def reader_of(stage: Stage, gpu: FakeGpu, *faults: FakeFault) -> GpuReader:
    return GpuReader(stage.play(gpu, faults=list(faults)), gpu.uuid, 0, CallTracker())


def only(card: GpuReader) -> Process:
    (process,) = card.read().processes
    return process


def asked(stage: Stage) -> tuple[bool, bool]:
    """Whether the newer and the older call were asked."""
    return stage.calls(NEWER) > 0, stage.calls(OLDER) > 0


@pytest.mark.parametrize(("mute", "speaking"), [(OLDER, NEWER), (NEWER, OLDER)])
@pytest.mark.parametrize("answer", [NOTHING, REFUSED], ids=["nothing", "refused"])
def test_the_call_that_names_processes_is_used(stage: Stage, mute: str, speaking: str, answer: str) -> None:
    card = reader_of(stage, busy_card(), FakeFault(answer, mute))
    assert only(card).sm_ratio == 0.3
    assert card.gpu.sampled_by == speaking.removeprefix("nvmlDeviceGet")


def test_a_library_without_the_newer_call_uses_the_older_and_misses_nothing(stage: Stage) -> None:
    stage.library = build(stage.library.parent.parent, omit=(NEWER,))
    card = reader_of(stage, busy_card())
    device = card.read()
    assert [process.sm_ratio for process in device.processes] == [0.3]
    assert device.gpu.sampled_by == "ProcessUtilization"
    assert device.refused == ()


def test_the_newer_call_alone_is_asked_where_it_answers(stage: Stage) -> None:
    card = reader_of(stage, busy_card())
    assert only(card).sm_ratio == 0.3
    assert asked(stage) == (True, False)


def test_a_choice_is_made_once(stage: Stage) -> None:
    """A call that has named a process can be believed when it names none."""
    gpu = busy_card()
    card = reader_of(stage, gpu, FakeFault(NOTHING, NEWER))
    assert only(card).sm_ratio == 0.3
    newer = stage.calls(NEWER)
    stage.node.faults = []
    gpu.processes = [FakeProcess(70, 1 << 20)]
    stage.rewrite()
    wait_until(lambda: only(card).sm_ratio == 0.0)
    assert stage.calls(NEWER) == newer
    assert card.gpu.sampled_by == "ProcessUtilization"


def test_where_neither_names_a_process_of_a_busy_card_nothing_is_known(stage: Stage) -> None:
    card = reader_of(stage, busy_card(), FakeFault(NOTHING, NEWER), FakeFault(NOTHING, OLDER))
    process = only(card)
    assert (process.sm_ratio, process.sm_busy_us, process.memory_ratio) == (None, None, None)
    assert card.gpu.sampled_by is None
    assert asked(stage) == (True, True)


def test_a_card_at_rest_proves_nothing_and_is_asked_once(stage: Stage) -> None:
    card = reader_of(stage, busy_card(sm=0, card_percent=2))
    assert only(card).sm_ratio == 0.0
    assert asked(stage) == (True, False)
    assert card.gpu.sampled_by is None


def test_a_mute_call_is_tried_again_by_the_next_reading(stage: Stage) -> None:
    faults = [FakeFault(NOTHING, NEWER, times=1), FakeFault(NOTHING, OLDER, times=1)]
    card = reader_of(stage, busy_card(), *faults)
    assert only(card).sm_ratio is None
    wait_until(lambda: only(card).sm_ratio == 0.3)
    assert card.gpu.sampled_by == "ProcessesUtilizationInfo"


@pytest.mark.parametrize("call", [NEWER, OLDER])
def test_more_processes_than_there_is_room_for_are_asked_for_again(stage: Stage, call: str) -> None:
    gpu = busy_card()
    gpu.processes = [FakeProcess(1000 + number, 1 << 20, sm=1) for number in range(300)]
    mute = OLDER if call == NEWER else NEWER
    device = reader_of(stage, gpu, FakeFault(NOTHING, mute)).read()
    assert [process.sm_ratio for process in device.processes] == [0.01] * 300
