"""Old drivers list their processes in older forms. Whatever form it is, the list is complete and the docs name it."""

from pathlib import Path

import pynvml
import pytest

from podgpu.model import Process
from podgpu.sources.nvml.handle import CallTracker, Handle
from podgpu.sources.nvml.process import running
from tests.fakenvml.build import build
from tests.fakenvml.drivers import FORMS, LACKS
from tests.fakenvml.fake_node import UNKNOWN, FakeFault, FakeProcess, h200
from tests.fakenvml.stage import Stage, mig_card
from tests.sources.nvml.test_reader import card_of, values

DOCS = Path(__file__).parents[3] / "docs" / "sources.md"
LIST = "nvmlDeviceGetComputeRunningProcesses"


@pytest.fixture(params=FORMS)
def driver(request: pytest.FixtureRequest, library: Path, stage: Stage) -> str:
    version: str = request.param
    stage.library = build(library.parent.parent, omit=LACKS[version])
    return version


def test_every_form_lists_all_processes(driver: str, stage: Stage) -> None:
    gpu = h200(0)
    gpu.processes = [
        FakeProcess(70, 1 << 30, sm=30),
        FakeProcess(71, UNKNOWN, kinds=("compute", "graphics")),
        *(FakeProcess(100 + number, number << 20) for number in range(1, 20)),
    ]
    device = card_of(stage, gpu).read()
    assert [process.pid for process in device.processes] == [70, 71, *range(101, 120)]
    first, second, *others = device.processes
    assert (first.memory_bytes, first.sm_ratio) == (1 << 30, 0.3)
    assert (second.memory_bytes, second.kinds) == (None, ("compute", "graphics"))
    assert [process.memory_bytes for process in others] == [number << 20 for number in range(1, 20)]
    assert device.ability.sees_all
    assert values(device, "processes") == [21]
    assert [refusal.call for refusal in device.refused if "Processes" in refusal.call] == []
    assert stage.calls(f"{LIST}{FORMS[driver]}") > 0


def test_a_card_without_processes_has_none(driver: str, stage: Stage) -> None:
    device = card_of(stage, h200(0)).read()
    assert (device.processes, device.ability.sees_all) == ((), True), driver


def test_a_process_on_an_instance_has_its_place(driver: str, stage: Stage) -> None:
    device = card_of(stage, mig_card()).read()
    places = {process.pid: device.place(process) for process in device.processes}
    assert places == {70: "MIG-a", 90: "MIG-b"}, driver


def test_a_list_that_no_form_gives_is_not_complete_and_named(driver: str, stage: Stage) -> None:
    refusing = f"return {pynvml.NVML_ERROR_NOT_SUPPORTED}"
    # A fault can be played only in a function that the library has.
    forms = [form for form in ("_v3", "_v2", "") if f"{LIST}{form}" not in LACKS[driver]]
    device = card_of(stage, h200(0), *(FakeFault(refusing, f"{LIST}{form}") for form in forms)).read()
    assert not device.ability.sees_all
    assert [refusal.call for refusal in device.refused if "Processes" in refusal.call] == ["ComputeRunningProcesses_v3"]


@pytest.mark.parametrize("kind", ["Graphics", "MPSCompute"])
def test_an_older_form_that_fails_makes_the_list_incomplete(stage: Stage, kind: str) -> None:
    lists = f"nvmlDeviceGet{kind}RunningProcesses"
    faults = [
        FakeFault(f"return {pynvml.NVML_ERROR_NOT_SUPPORTED}", f"{lists}_v3"),
        FakeFault(f"return {pynvml.NVML_ERROR_UNKNOWN}", f"{lists}_v2"),
    ]
    handle = Handle(stage.play(h200(0), faults=faults), CallTracker())
    assert not running(handle, None).is_complete


def test_an_error_of_the_first_form_is_counted_and_no_list(library: Path, stage: Stage) -> None:
    stage.library = build(library.parent.parent, omit=LACKS["450.57"])
    gpu = h200(0)
    gpu.processes = [FakeProcess(70, 1 << 30)]
    handle = Handle(stage.play(gpu, faults=[FakeFault(f"return {pynvml.NVML_ERROR_UNKNOWN}", LIST)]), CallTracker())
    assert running(handle, None) == ((), False)
    assert handle.tracker.errors["unknown_error"] == 1
    stage.node.faults = []
    stage.rewrite()
    assert running(handle, None) == (
        (Process(pid=70, kinds=("compute",), memory_bytes=1 << 30),),
        True,
    )


def test_the_docs_name_the_oldest_driver_of_each_form() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in DOCS.read_text().splitlines()
        if line.startswith("| `nvmlDeviceGetComputeRunningProcesses")
    ]
    assert {cells[1]: cells[0] for cells in rows} == {version: f"`{LIST}{form}`" for version, form in FORMS.items()}
