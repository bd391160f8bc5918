"""Whatever breaks behind the agent, the page stands and says which part it was."""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pynvml
import pytest

from tests.agent.rig import RunningAgent, running_agent
from tests.fakenvml.build import build
from tests.fakenvml.fake_node import FakeEvent, FakeFault, eight_gpu_node, h200

LOST = f"return {pynvml.NVML_ERROR_GPU_IS_LOST}"
DENIED = f"return {pynvml.NVML_ERROR_NO_PERMISSION}"


def up(agent: RunningAgent) -> list[float]:
    return [value for _, value in agent.series().get("podgpu_gpu_up", [])]


def energies(agent: RunningAgent) -> dict[str, float]:
    found = agent.series().get("podgpu_gpu_energy_joules_total", [])
    return {labels["gpu"]: value for labels, value in found}


def test_one_of_eight_gpus_hangs_for_ever(library: Path, tmp_path: Path) -> None:
    """The other seven stay fresh, the stuck call is named, no second child starts, SIGTERM works."""
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        children = agent.children()
        agent.node.faults = [FakeFault("hang", call="nvmlDeviceGetUtilizationRates", device=3)]
        agent.rewrite()
        problem = {"gpu": "3", "reason": "hung", "call": "nvmlDeviceGetUtilizationRates"}
        agent.wait_for("GPU 3 hangs", lambda: agent.value("podgpu_gpu_problem", **problem) == 1)
        assert agent.value("podgpu_gpu_up", gpu="3") == 0
        assert agent.value("podgpu_gpu_utilization_ratio", gpu="3") is None

        before = energies(agent)
        agent.wait_for(
            "seven fresh GPUs",
            lambda: (
                [gpu for gpu, value in sorted(energies(agent).items()) if value > before[gpu]]
                == ["0", "1", "2", "4", "5", "6", "7"]
            ),
        )
        assert agent.children() == children
        agent.terminate()


def test_a_hang_that_ends_is_forgotten(library: Path, tmp_path: Path) -> None:
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.node.faults = [FakeFault("hang", call="nvmlDeviceGetMemoryInfo_v2", device=5)]
        agent.rewrite()
        agent.wait_for("GPU 5 down", lambda: agent.value("podgpu_gpu_up", gpu="5") == 0)
        agent.node.faults = []
        agent.rewrite()
        agent.wait_for("GPU 5 back", lambda: up(agent) == [1] * 8)


def test_a_crash_in_the_library_fails_no_scrape(library: Path, tmp_path: Path) -> None:
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        (first,) = agent.children()
        agent.node.faults = [FakeFault("crash", call="nvmlDeviceGetTemperature", device=6)]
        agent.rewrite()
        agent.wait_for("a new sampler", lambda: agent.children() != [first])
        agent.node.faults = []
        agent.rewrite()
        agent.wait_for("fresh data", lambda: up(agent) == [1] * 8)
        assert agent.process.poll() is None


def test_a_single_crash_costs_no_cycle(library: Path, tmp_path: Path) -> None:
    cycle = 5.0  # enough to start a sampler on a busy machine
    with running_agent(eight_gpu_node(), tmp_path, library, interval=cycle) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        (child,) = agent.children()
        os.kill(child, signal.SIGSEGV)
        seen = {agent.value("podgpu_snapshot_timestamp_seconds")}

        def has_gone_on() -> bool:
            assert up(agent) == [1] * 8
            seen.add(agent.value("podgpu_snapshot_timestamp_seconds"))
            return len(seen) == 3

        agent.wait_for("two more snapshots", has_gone_on)
        assert agent.children() != [child]


def test_a_lost_gpu_is_named_and_comes_back(library: Path, tmp_path: Path) -> None:
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.node.faults = [FakeFault(LOST, device=1)]
        agent.rewrite()
        agent.wait_for("GPU 1 lost", lambda: agent.value("podgpu_gpu_problem", gpu="1", reason="lost") == 1)
        assert up(agent).count(1) == 7
        agent.node.faults = []
        agent.rewrite()
        agent.wait_for("GPU 1 back", lambda: up(agent) == [1] * 8)


def test_a_gpu_that_leaves_the_bus_shifts_no_other(library: Path, tmp_path: Path) -> None:
    """Indexes move when a card vanishes; values follow the UUID."""
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        gone = agent.node.gpus.pop(4)
        agent.node.gpus[4].values["temperature[0]"] = 77  # the card that was at index 5
        agent.rewrite()
        agent.wait_for("one gone", lambda: agent.value("podgpu_gpu_up", uuid=gone.uuid) == 0)
        uuid = agent.node.gpus[4].uuid
        agent.wait_for(
            "the next one at its UUID",
            lambda: agent.value("podgpu_gpu_temperature_celsius", uuid=uuid, sensor="gpu") == 77,
        )


def test_mig_is_followed_when_it_changes(library: Path, tmp_path: Path) -> None:
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.wait_for("instances", lambda: len(agent.series().get("podgpu_mig_memory_used_bytes", ())) == 7)
        del agent.node.gpus[2].migs[3:]
        agent.rewrite()
        agent.wait_for("fewer", lambda: len(agent.series().get("podgpu_mig_memory_used_bytes", ())) == 3)
        agent.node.gpus[2].migs, agent.node.gpus[2].mig_enabled = [], False
        agent.rewrite()
        agent.wait_for("MIG off", lambda: "podgpu_mig_memory_used_bytes" not in agent.series())
        assert up(agent) == [1] * 8


def test_the_driver_goes_and_comes_back(library: Path, tmp_path: Path) -> None:
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        before = energies(agent)
        code = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
        agent.node.init_result = code
        agent.node.faults = [FakeFault(f"return {code}")]
        agent.rewrite()
        agent.wait_for(
            "the reason",
            lambda: agent.value("podgpu_source_problem", source="nvml", reason="driver_not_loaded") == 1,
        )
        assert agent.value("podgpu_source_up", source="nvml") == 0
        assert up(agent) == []
        agent.node.init_result, agent.node.faults = 0, []
        agent.rewrite()
        agent.wait_for("eight GPUs again", lambda: up(agent) == [1] * 8)
        after = energies(agent)
        assert all(after[gpu] >= before[gpu] for gpu in before), "a counter fell"


def test_a_new_driver_is_met_with_a_new_process(library: Path, tmp_path: Path) -> None:
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.node.init_result = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
        agent.node.faults = [FakeFault(f"return {pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH}")]
        agent.rewrite()
        agent.wait_for(
            "mismatch",
            lambda: agent.value("podgpu_source_problem", source="nvml", reason="driver_mismatch") == 1,
        )
        agent.node.init_result, agent.node.faults = 0, []
        agent.rewrite()
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)


def test_without_a_driver_the_agent_waits_for_it(library: Path, tmp_path: Path) -> None:
    late = tmp_path / "lib" / library.name
    late.parent.mkdir()
    with running_agent(eight_gpu_node(), tmp_path, late) as agent:
        agent.wait_for(
            "no driver",
            lambda: agent.value("podgpu_source_problem", source="nvml", reason="library_not_found") == 1,
        )
        assert agent.value("podgpu_source_up", source="nvml") == 0
        assert b"mount libnvidia-ml.so.1" in agent.request("/")[1]
        shutil.copy(library, late)
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)


def test_an_init_that_hangs_is_named(library: Path, tmp_path: Path) -> None:
    node = eight_gpu_node()
    node.faults = [FakeFault("hang", call="nvmlInitWithFlags")]
    with running_agent(node, tmp_path, library) as agent:
        agent.wait_for("hung", lambda: agent.value("podgpu_source_problem", source="nvml", reason="hung") == 1)
        children = agent.children()
        agent.node.faults = []
        agent.rewrite()
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        assert agent.children() == children


def test_an_old_library_without_newer_symbols_gives_what_it_has(tmp_path: Path) -> None:
    old = build(
        tmp_path / "old",
        omit=(
            *("nvmlGpmQueryDeviceSupport", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"),
            *("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons"),
            *("nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetProcessUtilization"),
            "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        ),
    )
    with running_agent(eight_gpu_node(), tmp_path, old) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        assert agent.value("podgpu_gpu_memory_total_bytes", gpu="0") == 150_754_820_096
        assert agent.value("podgpu_gpu_memory_reserved_bytes", gpu="0") is None
        assert agent.value("podgpu_gpu_clock_event", gpu="0", reason="software_power_cap") == 1
        assert agent.value("podgpu_gpu_sm_active_ratio", gpu="0") is None
        processes = agent.processes(gpu=0)
        assert processes
        assert all("sm_ratio" not in process for process in processes)


def test_two_equal_xids_count_two(library: Path, tmp_path: Path) -> None:
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        agent.node.events = [FakeEvent(2, 79, 1), FakeEvent(2, 79, 2), FakeEvent(0, 31, 1)]
        agent.rewrite()
        agent.wait_for("two", lambda: agent.value("podgpu_gpu_xid_errors_total", gpu="2", xid="79") == 2)
        agent.wait_for("one", lambda: agent.value("podgpu_gpu_xid_errors_total", gpu="0", xid="31") == 1)
        os.kill(agent.children()[0], signal.SIGKILL)
        agent.wait_for("data again", lambda: up(agent) == [1] * 8)
        assert agent.value("podgpu_gpu_xid_errors_total", gpu="2", xid="79") == 2


def test_xids_that_nobody_hears_are_not_0(library: Path, tmp_path: Path) -> None:
    node = eight_gpu_node()
    node.faults = [FakeFault(DENIED, call="nvmlDeviceRegisterEvents", device=3)]
    with running_agent(node, tmp_path, library) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        assert agent.value("podgpu_gpu_refused", gpu="3", call="RegisterEvents", reason="no_permission") == 1
        counted = {labels["gpu"] for labels, _ in agent.series()["podgpu_gpu_xids_total"]}
        assert counted == set("0124567")
        lines = agent.request("/metrics/dcgm")[1].decode().splitlines()
        cards = [line.split('gpu="')[1][0] for line in lines if line.startswith("DCGM_FI_DEV_XID_ERRORS{")]
        assert set(cards) == set("0124567")


def test_what_a_device_refuses_is_asked_for_seldom(library: Path, tmp_path: Path) -> None:
    node = eight_gpu_node()
    node.gpus[0].values.pop("encoder")
    log = tmp_path / "calls"

    def asked(card: str) -> int:
        calls = [line.split() for line in log.read_text().splitlines()]
        return sum(call[-1] == "nvmlDeviceGetEncoderUtilization" and card in call[2:-1] for call in calls)

    with running_agent(node, tmp_path, library, log=log) as agent:
        agent.wait_for("six readings", lambda: asked("1") >= 6)
        assert agent.value("podgpu_gpu_encoder_utilization_ratio", gpu="0") is None
        assert agent.value("podgpu_gpu_encoder_utilization_ratio", gpu="1") == 0
    # Three times at once, in case it was a mistake; then again after four seconds, and ever more seldom.
    assert 3 <= asked("0") < asked("1")


def test_a_value_that_is_not_available_is_absent(library: Path, tmp_path: Path) -> None:
    node = eight_gpu_node()
    unknown = node.gpus[0].processes[0]
    unknown.memory = "unknown"
    node.gpus[0].values["power"] = 2**32 - 1
    node.gpus[0].values["temperature[0]"] = 200_000
    with running_agent(node, tmp_path, library) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        assert agent.value("podgpu_gpu_power_watts", gpu="0") is None
        assert agent.value("podgpu_gpu_temperature_celsius", gpu="0", sensor="gpu") is None
        assert (agent.value("podgpu_errors_total", source="nvml", reason="implausible_value") or 0) > 0
        assert [process["pid"] for process in agent.processes(gpu=0) if "memory_bytes" not in process] == [unknown.pid]


def test_five_hundred_processes(library: Path, tmp_path: Path) -> None:
    with running_agent(eight_gpu_node(processes=500), tmp_path, library) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        assert sum(len(agent.processes(gpu)) for gpu in range(8)) == 500


def open_devices(pid: int, devices: Path) -> list[str]:
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # a descriptor may close while we look
            found.append(str(link.readlink()))
    return [path for path in found if path.startswith(str(devices))]


def test_a_release_leaves_no_descriptor_open_and_ends_by_itself(library: Path, tmp_path: Path) -> None:
    node = eight_gpu_node()
    devices = tmp_path / "dev"
    node.make_device_files(devices)
    with running_agent(node, tmp_path, library, devices=devices) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        (child,) = agent.children()
        assert open_devices(child, devices)
        status, _ = agent.request("/-/release?seconds=300", "POST")
        assert status == 200
        assert agent.children() == []
        assert open_devices(agent.process.pid, devices) == []
        agent.wait_for("released", lambda: agent.value("podgpu_source_problem", reason="released") == 1)
        assert agent.request("/-/release?seconds=1", "POST")[0] == 200
        agent.wait_for("back by itself", lambda: up(agent) == [1] * 8)


def test_sigusr1_releases_too(library: Path, tmp_path: Path) -> None:
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.wait_for("eight GPUs", lambda: up(agent) == [1] * 8)
        agent.process.send_signal(signal.SIGUSR1)
        agent.wait_for("released", lambda: agent.value("podgpu_source_problem", reason="released") == 1)
        agent.wait_for("no sampler", lambda: agent.children() == [])


def test_a_release_works_while_a_gpu_hangs(library: Path, tmp_path: Path) -> None:
    with running_agent(eight_gpu_node(), tmp_path, library) as agent:
        agent.node.faults = [FakeFault("hang", call="nvmlDeviceGetUtilizationRates", device=3)]
        agent.rewrite()
        agent.wait_for("GPU 3 down", lambda: agent.value("podgpu_gpu_up", gpu="3") == 0)
        assert agent.request("/-/release?seconds=60", "POST")[0] == 200
        assert agent.children() == []


@pytest.mark.parametrize("count", [1, 16])
def test_nodes_of_other_sizes(library: Path, tmp_path: Path, count: int) -> None:
    node = eight_gpu_node()
    node.gpus = [h200(index) for index in range(count)]
    with running_agent(node, tmp_path, library) as agent:
        agent.wait_for("all GPUs", lambda: up(agent) == [1] * count)
