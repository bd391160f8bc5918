"""The fake library, met only through the vendor's own bindings: readings, processes, faults."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pynvml
import pytest

from tests.fakenvml.build import BuildError, build
from tests.fakenvml.fake_node import (
    UNKNOWN,
    FakeFault,
    FakeMig,
    FakeNode,
    FakeProcess,
    eight_gpu_node,
    environment,
    grows,
    h200,
    h200_delays,
    make_processes,
    refused,
    swings,
    typed,
)
from tests.fakenvml.stage import Stage, code_of, gpu, mig_card

INSUFFICIENT_SIZE = 7
POWER = "nvmlDeviceGetPowerUsage"


# --- readings ---


def test_an_h200_says_who_it_is(stage: Stage) -> None:
    handle = stage.play(h200(0), h200(1))
    assert pynvml.nvmlSystemGetDriverVersion() == "580.159.04"
    assert pynvml.nvmlSystemGetNVMLVersion() == "13.580.159.04"
    assert pynvml.nvmlSystemGetCudaDriverVersion_v2() == 13000
    assert pynvml.nvmlDeviceGetCount() == 2
    assert pynvml.nvmlDeviceGetName(handle) == "NVIDIA H200"
    assert pynvml.nvmlDeviceGetUUID(handle) == stage.node.gpus[0].uuid
    assert pynvml.nvmlDeviceGetPciInfo(handle).busId == "00000000:1B:00.0"
    assert pynvml.nvmlDeviceGetPciInfo(handle).bus == 0x1B
    assert pynvml.nvmlDeviceGetVbiosVersion(handle) == "96.00.BC.00.01"
    assert pynvml.nvmlDeviceGetSerial(handle) == "1654424000000"
    assert pynvml.nvmlDeviceGetCudaComputeCapability(handle) == (9, 0)
    second = pynvml.nvmlDeviceGetHandleByUUID(stage.node.gpus[1].uuid)
    assert pynvml.nvmlDeviceGetIndex(second) == 1
    assert pynvml.nvmlDeviceGetMinorNumber(second) == 1


@pytest.mark.parametrize(
    ("function", "arguments", "answer"),
    [
        ("Architecture", (), pynvml.NVML_DEVICE_ARCH_HOPPER),
        ("NumGpuCores", (), 16896),
        ("ComputeMode", (), 0),
        ("PersistenceMode", (), 1),
        ("PowerUsage", (), 690_375),
        ("EnforcedPowerLimit", (), 700_000),
        ("PowerManagementLimit", (), 700_000),
        ("Temperature", (0,), 56),
        ("TemperatureV", (0,), 56),
        ("TemperatureThreshold", (1,), 92),
        ("ClockInfo", (pynvml.NVML_CLOCK_MEM,), 3201),
        ("MaxClockInfo", (pynvml.NVML_CLOCK_SM,), 1980),
        ("EncoderUtilization", (), [0, 167_000]),
        ("DecoderUtilization", (), [0, 167_000]),
        ("JpgUtilization", (), [0, 167_000]),
        ("OfaUtilization", (), [0, 167_000]),
        ("CurrentClocksEventReasons", (), 4),
        ("CurrentClocksThrottleReasons", (), 4),
        ("PerformanceState", (), 0),
        ("CurrPcieLinkGeneration", (), 5),
        ("CurrPcieLinkWidth", (), 16),
        ("MaxPcieLinkGeneration", (), 5),
        ("MaxPcieLinkWidth", (), 16),
        ("PcieThroughput", (pynvml.NVML_PCIE_UTIL_RX_BYTES,), 5_200),
        ("PcieReplayCounter", (), 0),
        ("TotalEccErrors", (0, 1), 0),
        ("RemappedRows", (), (0, 0, 0, 0)),
        ("MigMode", (), [0, 0]),
        ("MaxMigDeviceCount", (), 0),
    ],
)
def test_an_h200_answers(stage: Stage, function: str, arguments: tuple[int, ...], answer: object) -> None:
    handle = stage.play(h200(0))
    assert getattr(pynvml, f"nvmlDeviceGet{function}")(handle, *arguments) == answer


def test_structures_have_the_bindings_layout(stage: Stage) -> None:
    handle = stage.play(h200(0))
    new = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
    assert (new.total, new.reserved, new.used) == (150_754_820_096, 644_939_776, 1_848_049_664)
    assert new.free == new.total - new.reserved - new.used
    old = pynvml.nvmlDeviceGetMemoryInfo(handle)
    assert (old.total, old.free, old.used) == (new.total, new.free, new.used + new.reserved)
    assert pynvml.nvmlDeviceGetBAR1MemoryInfo(handle).bar1Used == 1 << 20
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    assert (rates.gpu, rates.memory) == (96, 22)
    assert pynvml.nvmlDeviceGetViolationStatus(handle, 0).violationTime >= 10**12


def test_what_is_not_scripted_is_not_supported(stage: Stage) -> None:
    handle = stage.play(gpu())
    assert code_of(lambda: pynvml.nvmlDeviceGetFanSpeed(handle)) == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert code_of(lambda: pynvml.nvmlDeviceGetSerial(handle)) == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert pynvml.nvmlDeviceGetMemoryInfo(handle).total == 80 << 30


def test_field_values_have_types_scopes_and_codes_of_their_own(stage: Stage) -> None:
    handle = stage.play(
        gpu(
            fields={
                82: typed(51, "uint"),
                83: 2**63,
                186: refused(4),
                (138, 3): 7,
                90: typed(-5, "int"),
                91: UNKNOWN,
            }
        )
    )
    answers = pynvml.nvmlDeviceGetFieldValues(handle, [82, 83, 186, (138, 3), 138, 90, 91])
    assert [answer.nvmlReturn for answer in answers] == [0, 0, 4, 0, 3, 0, 0]
    assert (answers[0].valueType, answers[0].value.uiVal) == (pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, 51)
    assert answers[1].value.ullVal == 2**63
    assert answers[3].value.ullVal == 7
    assert answers[5].value.siVal == -5
    assert answers[6].value.ullVal == 2**64 - 1


def test_counters_grow_and_gauges_swing(stage: Stage) -> None:
    handle = stage.play(gpu(values={"energy": grows(10**15, 10**6), "power": swings(500, 100, 0.05)}))
    began, before = time.monotonic(), pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    read, powers = time.monotonic(), [500]
    while time.monotonic() < read + 0.1 or not min(powers) < 450 < 550 < max(powers):
        powers.append(pynvml.nvmlDeviceGetPowerUsage(handle))
    looked = time.monotonic()
    grown = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) - before
    assert (looked - read) * 1e6 - 1 <= grown <= (time.monotonic() - began) * 1e6 + 1
    assert before >= 10**15
    assert 400 <= min(powers) < max(powers) <= 600


def test_an_epoch_keeps_counters_going_over_a_reload(stage: Stage) -> None:
    handle = stage.play(gpu(values={"energy": grows(0, 1000)}), epoch=time.monotonic() - 3600)
    assert pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) >= 3_600_000


# --- the script changes ---


def test_a_changed_script_is_read_at_once(stage: Stage) -> None:
    handle = stage.play(h200(0))
    for milliwatts in range(100, 120):
        stage.node.gpus[0].values["power"] = milliwatts
        stage.rewrite()
        assert pynvml.nvmlDeviceGetPowerUsage(handle) == milliwatts


def test_a_handle_outlives_its_card(stage: Stage) -> None:
    stage.play(h200(0), h200(1))
    handle = pynvml.nvmlDeviceGetHandleByIndex(1)
    lost = stage.node.gpus.pop()
    stage.rewrite()
    assert code_of(lambda: pynvml.nvmlDeviceGetPowerUsage(handle)) == pynvml.NVML_ERROR_GPU_NOT_FOUND
    stage.node.gpus.insert(0, lost)
    stage.rewrite()
    assert pynvml.nvmlDeviceGetIndex(handle) == 0


def test_a_wrong_script_is_named_and_the_old_one_stays(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    handle = stage.play(gpu(values={"power": 5}))
    stage.node.gpus[0].values = {"powr": 6}
    stage.rewrite()
    assert pynvml.nvmlDeviceGetPowerUsage(handle) == 5
    assert "is wrong: set powr 6" in capfd.readouterr().err


@pytest.mark.parametrize("code", [9, 18])
def test_init_fails_until_the_driver_is_there(stage: Stage, code: int) -> None:
    stage.load(FakeNode([h200(0)], init_result=code))
    assert code_of(pynvml.nvmlInit) == code
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    stage.node.init_result = 0
    stage.rewrite()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 1


# --- processes ---


def test_processes_are_listed_by_kind(stage: Stage) -> None:
    both = FakeProcess(11, 1 << 30, kinds=("compute", "graphics"))
    handle = stage.play(gpu(processes=[FakeProcess(10, UNKNOWN), both, FakeProcess(12, 5, kinds=("mps",))]))
    compute = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    assert [(info.pid, info.usedGpuMemory) for info in compute] == [(10, None), (11, 1 << 30)]
    assert compute[0].gpuInstanceId == compute[0].computeInstanceId == 0xFFFFFFFF
    assert [info.pid for info in pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3(handle)] == [11]
    assert [info.pid for info in pynvml.nvmlDeviceGetMPSComputeRunningProcesses(handle)] == [12]


def test_a_list_that_is_too_short_says_how_many_there_are(stage: Stage) -> None:
    handle = stage.play(gpu(processes=make_processes(500)))
    assert len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)) == 500
    count = ctypes.c_uint(499)
    room = (pynvml.c_nvmlProcessInfo_t * 499)()
    code = stage.lib.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), room)
    assert (code, count.value) == (INSUFFICIENT_SIZE, 500)


@pytest.mark.parametrize("function", ["ProcessUtilization", "ProcessesUtilizationInfo"])
def test_utilization_has_one_sample_per_active_process(stage: Stage, function: str) -> None:
    handle = stage.play(gpu(processes=[FakeProcess(7, sm=80, mem=9), FakeProcess(8), FakeProcess(9, enc=15)]))
    read = getattr(pynvml, f"nvmlDeviceGet{function}")
    began = time.time() * 1e6
    samples = read(handle, 0)
    assert [(s.pid, s.smUtil, s.memUtil, s.encUtil) for s in samples] == [(7, 80, 9, 0), (9, 0, 0, 15)]
    stamp = samples[0].timeStamp
    assert stamp % 200_000 == 0
    assert began - 1e6 < stamp < time.time() * 1e6 + 1e6
    assert code_of(lambda: read(handle, stamp + 10_000_000)) == pynvml.NVML_ERROR_NOT_FOUND
    time.sleep(0.21)
    assert read(handle, stamp)[0].timeStamp > stamp
    stage.node.gpus[0].processes = [FakeProcess(8)]
    stage.rewrite()
    assert code_of(lambda: read(handle, 0)) == pynvml.NVML_ERROR_NOT_FOUND


# --- faults and delays ---


def test_a_fault_answers_a_code_for_one_call_and_one_card(stage: Stage) -> None:
    lost, well = stage.play(h200(0), h200(1)), pynvml.nvmlDeviceGetHandleByIndex(1)
    stage.node.faults = [FakeFault("return 15", POWER, 0)]
    stage.rewrite()
    assert code_of(lambda: pynvml.nvmlDeviceGetPowerUsage(lost)) == pynvml.NVML_ERROR_GPU_IS_LOST
    assert pynvml.nvmlDeviceGetPowerUsage(well) == 690_375
    assert pynvml.nvmlDeviceGetTemperature(lost, 0) == 56
    stage.node.faults = [FakeFault("return 999", device=0)]
    stage.rewrite()
    assert code_of(lambda: pynvml.nvmlDeviceGetTemperature(lost, 0)) == pynvml.NVML_ERROR_UNKNOWN
    assert pynvml.nvmlDeviceGetCount() == 2


def test_a_fault_that_strikes_twice_is_not_renewed_by_a_rewrite(stage: Stage) -> None:
    handle = stage.play(h200(0), faults=[FakeFault("return 10", POWER, 0, times=2)])
    assert code_of(lambda: pynvml.nvmlDeviceGetPowerUsage(handle)) == pynvml.NVML_ERROR_TIMEOUT
    stage.node.gpus[0].values["power"] = 1
    stage.rewrite()
    assert code_of(lambda: pynvml.nvmlDeviceGetPowerUsage(handle)) == pynvml.NVML_ERROR_TIMEOUT
    assert pynvml.nvmlDeviceGetPowerUsage(handle) == 1


def test_sentinels_stand_where_the_value_should(stage: Stage) -> None:
    handle = stage.play(h200(0), faults=[FakeFault("sentinel", device=0)])
    stage.node.gpus[0].processes = make_processes(2)
    stage.rewrite()
    assert pynvml.nvmlDeviceGetPowerUsage(handle) == 0xFFFFFFFF
    assert pynvml.nvmlDeviceGetUtilizationRates(handle).gpu == 0xFFFFFFFF
    assert pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) == 2**64 - 1
    assert pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used == 2**64 - 1
    assert [p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)] == [None, None]
    assert pynvml.nvmlDeviceGetFieldValues(handle, [83, 186])[1].value.uiVal == 0xFFFFFFFF


def test_a_delay_takes_its_time(stage: Stage) -> None:
    handle = stage.play(h200(0), delays={POWER: 20_000, "nvmlDeviceGetFieldValues[83]": 15_000})
    stage.node.faults = [FakeFault("delay 30000.5", POWER, 0, times=1)]
    stage.rewrite()
    took = []
    for call in (pynvml.nvmlDeviceGetPowerUsage, pynvml.nvmlDeviceGetPowerUsage):
        began = time.monotonic()
        call(handle)
        took.append(time.monotonic() - began)
    assert took[0] >= 0.05
    assert took[1] >= 0.02
    began = time.monotonic()
    assert pynvml.nvmlDeviceGetFieldValues(handle, [83, 3])[0].latencyUsec == 15_000
    assert time.monotonic() - began >= 0.015


def test_a_hung_card_blocks_no_other_and_comes_back(stage: Stage) -> None:
    stage.load(eight_gpu_node())
    pynvml.nvmlInit()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(8)]
    stage.node.faults = [FakeFault("hang", POWER, 3)]
    stage.rewrite()
    with ThreadPoolExecutor() as pool:
        hung = pool.submit(pynvml.nvmlDeviceGetPowerUsage, handles[3])
        other = pool.submit(pynvml.nvmlDeviceGetPowerUsage, handles[4])
        assert other.result(5) == 690_375
        assert pynvml.nvmlDeviceGetTemperature(handles[3], 0) == 56
        assert not hung.done()
        stage.node.faults.clear()
        stage.node.gpus[3].values["power"] = 77
        stage.rewrite()
        assert hung.result(5) == 77


def test_a_crash_is_a_real_one(library: Path, tmp_path: Path) -> None:
    FakeNode([h200(0)], faults=[FakeFault("crash", POWER, 0)]).write(tmp_path / "script")
    program = (
        "import pynvml as p; p.nvmlInit(); h = p.nvmlDeviceGetHandleByIndex(0); print(flush=True);"
        "p.nvmlDeviceGetPowerUsage(h)"
    )
    variables = os.environ | environment(library, tmp_path / "script")
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, b"\n")


# --- the library as a whole ---


def test_calls_are_counted_and_logged(stage: Stage) -> None:
    card = stage.play(mig_card(), h200(1))
    mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 2)
    for handle in (card, mig, pynvml.nvmlDeviceGetHandleByIndex(1)):
        with suppress(pynvml.NVMLError):
            pynvml.nvmlDeviceGetPowerUsage(handle)
    assert stage.calls(POWER) == 3
    assert stage.calls("nvmlDeviceGetFanSpeed") == 0
    rows = [line.split() for line in (stage.directory / "log").read_text().splitlines()]
    assert rows[0][2:] == ["-", "nvmlInitWithFlags"]
    assert [row[2] for row in rows if row[3] == POWER] == ["0", "0:2", "1"]
    assert {int(row[1]) for row in rows} == {threading.get_native_id()}
    assert abs(int(rows[-1][0]) / 1e6 - time.monotonic()) < 60


def test_an_old_library_lacks_symbols(library: Path, stage: Stage) -> None:
    stage.library = build(library.parent.parent, omit=("nvmlGpmQueryDeviceSupport",))
    handle = stage.play(h200(0))
    absent = code_of(lambda: pynvml.nvmlGpmQueryDeviceSupport(handle))
    assert absent == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    assert pynvml.nvmlDeviceGetPowerUsage(handle) == 690_375


def test_a_library_is_built_once(library: Path) -> None:
    built = library.stat().st_mtime_ns
    assert build(library.parent.parent) == library
    assert library.stat().st_mtime_ns == built


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="gcc is not installed"):
        build(tmp_path)


def test_the_biggest_node_plays(stage: Stage) -> None:
    node = FakeNode([h200(index) for index in range(16)], delays=h200_delays())
    for index, card in enumerate(node.gpus):
        card.mig_enabled = True
        card.values["mig_max"] = 8
        card.migs = [FakeMig(f"MIG-{index}-{place}", place, place) for place in range(8)]
        card.processes = make_processes(256, first_pid=1000 * index + 1)
        for number, process in enumerate(card.processes):
            process.gpu_instance, process.compute_instance = number % 8, 0
    stage.load(node)
    pynvml.nvmlInit()
    last = pynvml.nvmlDeviceGetHandleByIndex(15)
    mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(last, 7)
    assert len(pynvml.nvmlDeviceGetComputeRunningProcesses(last)) == 256
    assert len(pynvml.nvmlDeviceGetComputeRunningProcesses(mig)) == 32


def test_many_threads_read_while_the_script_changes(stage: Stage) -> None:
    stage.load(eight_gpu_node(processes=500))
    pynvml.nvmlInit()
    over = threading.Event()

    def read(index: int) -> int:
        handle, rounds = pynvml.nvmlDeviceGetHandleByIndex(index), 0
        while not over.is_set() or rounds == 0:
            assert pynvml.nvmlDeviceGetPowerUsage(handle) >= 690_375
            assert len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)) in (62, 63)
            rounds += 1
        return rounds

    with ThreadPoolExecutor(16) as pool:
        readers = [pool.submit(read, index % 8) for index in range(16)]
        for step in range(20):
            for card in stage.node.gpus:
                card.values["power"] = 690_375 + step
            stage.rewrite()
        over.set()
        assert all(reader.result(10) > 0 for reader in readers)
