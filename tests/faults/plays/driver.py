"""A: what goes wrong in a GPU, in its driver and in the driver's library."""

import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pynvml

from podgpu.sources.nvml.child import ENUMERATE_SECONDS
from tests.fakenvml.build import build
from tests.fakenvml.drivers import LACKS
from tests.fakenvml.fake_node import FakeFault, FakeMig, FakeProcess, grows, h200
from tests.faults.node import INTERVAL, Node
from tests.faults.page import Page
from tests.faults.play import Fault, Phase, Play
from tests.faults.signs import both, card_down, cards_down, counted, part_down, survived

NEWER = (
    *("nvmlGpmQueryDeviceSupport", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"),
    *("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons"),
    *("nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetProcessUtilization"),
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
)
RELEASED_SECONDS = 3
LISTED = ENUMERATE_SECONDS + 5.0  # a new card is found when the driver is asked for its list


def driver_faults(*faults: FakeFault) -> Fault:
    """Let the library answer, hang or crash like this."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        node.driver.faults = list(faults)
        node.drive()
        yield
        node.driver.faults = []
        node.drive()

    return fault


def answers(code: int, *devices: int, call: str = "*") -> Fault:
    return driver_faults(*(FakeFault(f"return {code}", call=call, device=device) for device in devices))


def driver_gone(code: int) -> Fault:
    """Let the library fail as a whole, for those who begin and for those in its midst."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        node.driver.init_result = code
        with driver_faults(FakeFault(f"return {code}"))(node):
            yield
            node.driver.init_result = 0

    return fault


def values(**numbers: int | str) -> Fault:
    """Let card 1 give these values."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        card = node.driver.gpus[1]
        before, card.values = card.values, {**card.values, **numbers}
        node.drive()
        yield
        card.values = before
        node.drive()

    return fault


@contextmanager
def first_card_unplugged(node: Node) -> Iterator[None]:
    """All cards behind it move up by one."""
    card = node.driver.gpus.pop(0)
    node.drive()
    yield
    node.driver.gpus.insert(0, card)
    node.drive()


def moved_up(now: Page, _: Page) -> bool:
    uuids = {labels["uuid"]: value for labels, value in now.by_name.get("podgpu_gpu_up", ())}
    gone, other = h200(0).uuid, h200(1).uuid
    return (uuids.get(gone, 0), uuids.get(other)) == (0, 1) and bool(
        now.values("podgpu_gpu_memory_used_bytes", uuid=other)
    )


@contextmanager
def released(node: Node) -> Iterator[None]:
    """Ask for the GPUs, as a driver's upgrade does. They are taken again after some seconds."""
    assert node.agent
    assert node.agent.request(f"/-/release?seconds={RELEASED_SECONDS}", "POST")[0] == 200
    assert node.agent.children() == []
    assert _held(node.agent.process.pid, node.devices) == []
    yield


def _held(pid: int, devices: Path) -> list[str]:
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # a descriptor may close while we look
            found.append(str(link.readlink()))
    return [path for path in found if path.startswith(str(devices))]


@contextmanager
def cut_into_instances(node: Node) -> Iterator[None]:
    card = node.driver.gpus[1]
    card.mig_enabled = True
    card.migs = [
        FakeMig(uuid=f"MIG-{index:08x}-7c44-5d55-9e66-000000000000", index=index, gpu_instance=7 + index)
        for index in range(3)
    ]
    node.drive()
    yield
    card.mig_enabled, card.migs = False, []
    node.drive()


@contextmanager
def one_instance_unnamed(node: Node) -> Iterator[None]:
    code = pynvml.NVML_ERROR_NO_PERMISSION
    refusal = FakeFault(f"return {code}", call="nvmlDeviceGetGpuInstanceId", device="1:1")
    with driver_faults(refusal)(node), cut_into_instances(node):
        yield


def _end_sampler(node: Node) -> None:
    """Whatever was loaded must be loaded again."""
    if node.agent and node.agent.process.poll() is None:
        for child in node.agent.children():
            os.kill(child, signal.SIGKILL)


@contextmanager
def opening_hangs(node: Node) -> Iterator[None]:
    with driver_faults(FakeFault("hang", call="nvmlInitWithFlags"))(node):
        _end_sampler(node)
        yield


@contextmanager
def library_missing(node: Node) -> Iterator[None]:
    aside = node.library.rename(node.folder / "aside.so")
    _end_sampler(node)
    yield
    aside.rename(node.library)


def older_library(lacks: Sequence[str]) -> Fault:
    """Put the library of an old driver in its place, which lacks newer symbols."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        old = build(node.folder / "old", omit=lacks)
        newer = node.library.rename(node.folder / "newer.so")
        shutil.copy(old, node.library)
        _end_sampler(node)
        yield
        newer.replace(node.library)
        _end_sampler(node)

    return fault


@contextmanager
def first_lists(node: Node) -> Iterator[None]:
    """Let a process run on card 1 under a driver that has only the first form of the process lists."""
    card = node.driver.gpus[1]
    card.processes = [FakeProcess(4242, 1 << 30)]
    with older_library(LACKS["450.57"])(node):
        node.drive()
        yield
        card.processes = []
        node.drive()


def lists_processes(now: Page) -> bool:
    """The list is complete, although its newer forms are missing."""
    return lacks_profiling(now) and now.values("podgpu_gpu_processes", gpu="1") == [1]


def lacks_profiling(now: Page) -> bool:
    return not now.values("podgpu_gpu_sm_active_ratio") and len(now.values("podgpu_gpu_power_watts")) == 2


@contextmanager
def unheard(node: Node) -> Iterator[None]:
    """Cards are registered when they are first listed, so a sampler that runs has to be another one."""
    code = pynvml.NVML_ERROR_NO_PERMISSION
    with driver_faults(FakeFault(f"return {code}", call="nvmlDeviceRegisterEvents", device=1))(node):
        _end_sampler(node)
        yield


def says_unheard(now: Page) -> bool:
    """How often card 1 raised an XID is not known, and the page says why."""
    why = now.value("podgpu_gpu_refused", gpu="1", call="RegisterEvents", reason="no_permission")
    known = {labels["gpu"] for labels, _ in now.by_name.get("podgpu_gpu_xids_total", ())}
    return why == 1 and known == {"0"}


SLOW = driver_faults(FakeFault("delay 150000", call="nvmlDeviceGetUtilizationRates", device=1))


def is_slow(now: Page) -> bool:
    return now.total("podgpu_source_duration_seconds", source="nvml") > 0.5 * INTERVAL


def logs_its_calls(node: Node) -> Sequence[str]:
    node.variables["FAKENVML_LOG"] = str(node.folder / "calls")
    return ()


@contextmanager
def at_work(node: Node) -> Iterator[None]:
    with SLOW(node):
        yield
    *_, last = (node.folder / "calls").read_text().splitlines()
    assert last.endswith("nvmlShutdown")


PLAYS = (
    Play(
        id="A1",
        what="a call hangs on one card",
        fault=driver_faults(FakeFault("hang", call="nvmlDeviceGetMemoryInfo_v2", device=1)),
        shows=card_down(1, "hung"),
    ),
    Play(
        id="A1.init",
        what="the library does not return when it is opened",
        fault=opening_hangs,
        shows=part_down("nvml", "hung"),
    ),
    Play(
        id="A2",
        what="a card falls off the bus",
        fault=answers(pynvml.NVML_ERROR_GPU_IS_LOST, 1),
        shows=card_down(1, "lost"),
    ),
    Play(
        id="A3",
        what="a card goes away and the indexes of all others shift",
        fault=first_card_unplugged,
        shows=moved_up,
        recovers=LISTED,
    ),
    Play(
        id="A4",
        what="the driver was upgraded under a loaded library",
        fault=driver_gone(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH),
        shows=part_down("nvml", "driver_mismatch"),
    ),
    Play(
        id="A5",
        what="somebody needs the GPUs, and asks the agent to let go of them",
        fault=released,
        shows=lambda now, _: now.value("podgpu_source_problem", source="nvml", reason="released") == 1,
        left_out={Phase.START: "nobody can ask an agent that does not run"},
    ),
    Play(
        id="A6",
        what="a card is cut into MIG instances, and made whole again",
        fault=cut_into_instances,
        shows=survived(lambda now: len(now.values("podgpu_mig_memory_used_bytes", gpu="1")) == 3),
    ),
    Play(
        id="A6.unnamed",
        what="one of a card's MIG instances does not say which one it is",
        fault=one_instance_unnamed,
        shows=survived(lambda now: len(now.values("podgpu_mig_memory_used_bytes", gpu="1")) == 2),
    ),
    Play(
        id="A7",
        what="there is no driver's library yet",
        fault=library_missing,
        shows=part_down("nvml", "library_not_found"),
    ),
    Play(
        id="A8",
        what="the cards' device nodes are withdrawn from the agent's cgroup",
        fault=answers(pynvml.NVML_ERROR_UNKNOWN, 0, 1),
        shows=cards_down("unknown_error"),
    ),
    Play(
        id="A9",
        what="a card's device node is missing after the container was restarted",
        fault=answers(pynvml.NVML_ERROR_NO_PERMISSION, 1, call="nvmlDeviceGetHandleByIndex_v2"),
        shows=card_down(1, "no_permission"),
        recovers=LISTED,
    ),
    Play(
        id="A10",
        what="the library crashes the process that it is in",
        fault=driver_faults(FakeFault("crash", call="nvmlDeviceGetTemperature", device=1)),
        shows=counted("nvml", "sampler_exited"),
    ),
    Play(
        id="A11",
        what="the library is an old one, without newer symbols",
        fault=older_library(NEWER),
        shows=survived(lacks_profiling),
    ),
    Play(
        id="A11.450",
        what="the library is that of driver 450.57, which has only the first form of the process lists",
        fault=first_lists,
        shows=survived(lists_processes),
    ),
    Play(
        id="A12",
        what="the agent ends while the driver is at work, which wedged cards when nobody closed the library",
        fault=at_work,
        shows=survived(is_slow),
        flags=logs_its_calls,
        left_out=dict.fromkeys((Phase.START, Phase.RUNNING, Phase.SCRAPE), "nobody ends"),
    ),
    Play(
        id="A13",
        what="the driver answers with what stands for no value, and with nonsense",
        fault=values(power=2**32 - 1, **{"temperature[0]": 200_000}),
        shows=both(
            counted("nvml", "implausible_value"),
            survived(
                lambda now: (
                    not now.values("podgpu_gpu_power_watts", gpu="1")
                    and not now.values("podgpu_gpu_temperature_celsius", gpu="1", sensor="gpu")
                )
            ),
        ),
    ),
    Play(
        id="A13.all",
        what="every call on a card answers that there is no value",
        fault=driver_faults(FakeFault("sentinel", device=1)),
        shows=lambda now, _: not now.values("podgpu_gpu_power_watts", gpu="1"),
    ),
    Play(
        id="A14",
        what="calls work, but take most of an interval",
        fault=SLOW,
        shows=survived(is_slow),
    ),
    Play(
        id="A15",
        what="the energy counter falls back to nothing",
        fault=values(energy=grows(0, 690_375)),
        shows=survived(lambda now: len(now.values("podgpu_gpu_energy_joules_total")) == 2),
    ),
    Play(
        id="A16",
        what="all cards are unbound from the driver, and bound again",
        fault=driver_gone(pynvml.NVML_ERROR_DRIVER_NOT_LOADED),
        shows=part_down("nvml", "driver_not_loaded"),
    ),
    Play(
        id="A17",
        what="the driver does not take a card in for XIDs",
        fault=unheard,
        shows=survived(says_unheard),
        recovers=LISTED,
    ),
    Play(
        id="A18",
        what="a card answers every call with an unknown error",
        fault=driver_faults(FakeFault(f"return {pynvml.NVML_ERROR_UNKNOWN}", device=1)),
        shows=card_down(1, "unknown_error"),
        patience=5.0,  # at once: what it answered before is remembered for half a minute
    ),
)
