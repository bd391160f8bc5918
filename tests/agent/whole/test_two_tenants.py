"""The bill of an honest tenant beside one who cheats: real processes in real cgroups, the card's numbers made up.

Each attack leaves the honest bill as it is without it, within one per cent, and the attacker pays for what he used.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.agent.attribution import Attribution
from podgpu.host.owner_names import OwnerNames
from podgpu.host.procfs import Procfs
from podgpu.host.recent_processes import RecentProcesses
from podgpu.model import Booking, Card, Device, Gpu, Holder, Pod, PodContainer, Process, Reading
from podgpu.sharing import kai
from podgpu.sharing.hami.annotation import DEVICES_ALLOCATED
from podgpu.supervise import Supervisor
from tests.agent.stage import StillPods, check_card
from tests.agent.test_attribution import Kubelet
from tests.faults.props.traced import TRACED

GPU = "GPU-00000000-0000-4000-8000-000000000001"
OTHER = "GPU-00000000-0000-4000-8000-000000000002"
HONEST, CHEAT = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
IDS = {HONEST: "a" * 64, CHEAT: "b" * 64}
RESERVATION = "gpu-reservation-n-a"
SECONDS, CYCLES = 5.0, 12
SLEEP = "print(flush=True); import time; time.sleep(600)"
# What ends the first thread while another lives on, and what takes the name of an MPS server.
HEADLESS = (
    "import ctypes, os, threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); print(flush=True);"
    "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)"
)
MPS = f"import ctypes; ctypes.CDLL(None).prctl(15, b'nvidia-cuda-mps-server', 0, 0, 0); {SLEEP}"


def pod(uid: str, name: str) -> Pod:
    container = PodContainer(name="main", container_id=IDS[uid], running=True)
    return Pod(namespace="ns", name=name, uid=uid, phase="Running", containers=(container,))


@dataclass
class Node:
    """Cgroups below a root that looks like a kubelet's, and processes in them."""

    top: Path
    started: ExitStack = field(default_factory=ExitStack)

    def start(self, place: str, program: str = SLEEP) -> int:
        return self.begin(place, program).pid

    def begin(self, place: str, program: str = SLEEP) -> subprocess.Popen[bytes]:
        folder = self.top / place
        folder.mkdir(parents=True, exist_ok=True)

        enter = f'echo $$ > {folder}/cgroup.procs; exec "$@"'
        command = ["sh", "-c", enter, "sh", sys.executable, "-c", program]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.started.callback(process.wait)
        self.started.callback(process.kill)
        assert process.stdout
        self.started.callback(process.stdout.close)
        assert process.stdout.readline()
        return process

    def pod(self, uid: str) -> str:
        return f"{self.top.stem}-kubepods.slice/burstable/pod{uid}/{IDS[uid]}"


MOUNTS = {
    2: (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")),
    1: (Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup/pids")),
}


@pytest.fixture(params=MOUNTS, ids=lambda version: f"v{version}")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node with cgroups of either version: they differ in what they show of a process that has ended."""
    mounts = MOUNTS[request.param]
    root = next((mount for mount in mounts if (mount / "cgroup.procs").exists()), None)
    if root is None or os.geteuid() != 0:
        pytest.skip(f"needs root and a cgroup hierarchy of version {request.param}")
    node = Node(root / f"podgpubill{os.getpid()}.slice")
    with node.started:
        yield node
    for folder, _, _ in os.walk(node.top, topdown=False):
        while (Path(folder) / "cgroup.procs").read_text():
            time.sleep(0.01)
        Path(folder).rmdir()


def listed(pid: int, busy: float, *, kinds: Sequence[str] = ("compute",)) -> Process:
    """A process that the samples name for that share of the time."""
    return Process(pid=pid, kinds=tuple(kinds), memory_bytes=10 << 30, sm_busy_us=round(busy * SECONDS * 1e6))


class Met(Procfs):
    """Every process has the directory in which the plugin's clients and servers meet.

    The plugin mounts it into whoever it gives a share to: into the tenant who cheats as well.
    """

    def mps(self, holders: Iterable[Holder]) -> dict[int, str | None]:
        return super().mps(holders) | dict.fromkeys(self.meeting, "/run/nvidia/mps")

    meeting: frozenset[int] = frozenset()


async def billed(
    *processes: Process,
    busy: float,
    read_at: float | None = None,
    cheat: str = GPU,
    kubelet: Kubelet | None = None,
    pods: Sequence[Pod] = (),
    later: Sequence[Pod] = (),
    ending: Callable[[RecentProcesses], Awaitable[Process]] | None = None,
    machine: Path | None = None,
    meeting: frozenset[int] = frozenset(),
    state: Path | None = None,
    others: Sequence[str] = (),
) -> Card:
    """Book a minute in which the card was that busy. `read_at` is when it was read last, by default now.

    The pods are those of `later` after the first cycle, if there are any. `ending` plays a process that works in each
    cycle and has ended by the reading. `machine` is the root of a machine without Kubernetes. `meeting` are PIDs of
    MPS. What the agent keeps over restarts is in `state`. The node may have `others`, cards that nobody uses.
    """
    pods = tuple(pods) or (pod(HONEST, "honest"), pod(CHEAT, "cheat"))
    listed = StillPods(pods)
    procfs = Met(Path("/proc"))
    procfs.meeting = meeting
    recent = RecentProcesses(procfs, interval=SECONDS, only_pods=machine is None)
    if machine is None:
        kubelet = kubelet or Kubelet(honest=GPU, **({"cheat": cheat} if cheat else {}))
    attribution = Attribution(
        interval=SECONDS,
        allocations=kubelet,
        pod_sources=[listed] if machine is None else [],
        outsiders=OwnerNames(machine) if machine else None,
        books_outsiders=machine is not None,
        processes=procfs,
        recent=recent,
        state=state,
    )
    running = asyncio.create_task(attribution.run(Supervisor()))
    end = time.monotonic() if read_at is None else read_at
    for cycle in range(CYCLES + 1):
        at = end - (CYCLES - cycle) * SECONDS
        worked = [await ending(recent)] if ending else []
        device = replace(_device(at, busy), processes=(*processes, *worked))
        # All readings come after the processes began, except where the test is about that.
        seen = replace(device, seconds=0.0 if read_at is not None else time.monotonic() - at)
        idle = [replace(_device(at, 0.0), gpu=Gpu(uuid=other, index=1, minor=1)) for other in others]
        card, *_ = (await attribution.attribute([seen, *idle], at)).cards
        assert card.balance
        check_card(card, card.balance)
        listed.change(tuple(later) or pods)
    running.cancel()
    await attribution.close()
    return card


def _device(at: float, busy: float) -> Device:
    values = {
        "energy_joules_total": 1e6 + at * (84 + 600 * busy),
        "power_limit_watts": 700.0,
        "graphics_engine_active_ratio": busy,
        "memory_used_bytes": float(30 << 30),
        "memory_total_bytes": float(80 << 30),
    }
    readings = tuple(Reading(name, value) for name, value in values.items())
    return Device(gpu=Gpu(uuid=GPU, index=0, minor=0), at=at, readings=readings)


def bill(card: Card, name: str) -> Booking:
    """Of a pod, or of a container or user outside Kubernetes, by its title."""
    owners = ((tenant.booking, tenant.container) for tenant in card.tenants)
    return next((bill for bill, owner in owners if (owner.pod or owner.container) == name), Booking())


def joules(card: Card, name: str) -> float:
    return bill(card, name).energy_mj / 1000


@pytest.mark.parametrize("program", [HEADLESS, TRACED], ids=["alone", "traced"])
async def test_who_ends_his_first_thread_still_pays(node: Node, program: str) -> None:
    honest = listed(node.start(node.pod(HONEST)), 0.5)
    fair = await billed(honest, listed(node.start(node.pod(CHEAT)), 0.4), busy=0.9)
    forged = await billed(honest, listed(node.start(node.pod(CHEAT), program), 0.4), busy=0.9)
    assert joules(forged, "honest") == pytest.approx(joules(fair, "honest"), rel=0.01)
    assert joules(forged, "cheat") == pytest.approx(joules(fair, "cheat"), rel=0.01)
    assert joules(fair, "cheat") > 1000
    assert bill(forged, "cheat").memory_bytes == 10 << 30


@pytest.mark.parametrize("has_claim", [True, False])
async def test_who_calls_himself_an_mps_server_still_pays(node: Node, *, has_claim: bool) -> None:
    client = listed(node.start(node.pod(HONEST)), 0.1, kinds=("compute", "mps"))
    cheat = GPU if has_claim else ""
    fair = await billed(client, listed(node.start(node.pod(CHEAT)), 0.8), busy=0.9, cheat=cheat)
    forged = await billed(client, listed(node.start(node.pod(CHEAT), MPS), 0.8), busy=0.9, cheat=cheat)
    assert joules(forged, "honest") == pytest.approx(joules(fair, "honest"), rel=0.01)
    assert joules(forged, "cheat") == pytest.approx(joules(fair, "cheat"), rel=0.01)
    assert joules(fair, "cheat") > 1000


async def test_who_ends_before_each_reading_pays_from_the_second_on(node: Node) -> None:
    """The driver's samples name a process that has gone when the card is read: 4 s of each 5 s, each time another."""
    played = count()

    async def work(recent: RecentProcesses) -> Process:
        process = node.begin(node.pod(CHEAT))
        is_watched = next(played) > 1  # the first reading has no interval before it, the next one is missed
        while is_watched and recent.holder(process.pid, time.monotonic()) is None:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)
        process.kill()
        process.wait()
        return Process(pid=process.pid, sm_busy_us=round(0.8 * SECONDS * 1e6))

    honest = listed(node.start(node.pod(HONEST)), 0.1)
    fair = await billed(honest, listed(node.start(node.pod(CHEAT)), 0.8), busy=0.9)
    async with asyncio.timeout(60):
        forged = await billed(honest, busy=0.9, ending=work)
    assert joules(forged, "honest") == pytest.approx(joules(fair, "honest"), rel=0.01)
    missed = joules(fair, "cheat") - joules(forged, "cheat")
    assert missed <= 1.01 * joules(fair, "cheat") / CYCLES
    unknown = sum(rest.energy_mj for rest in forged.rest if rest.reason == "unknown") / 1000
    assert unknown == pytest.approx(missed, rel=0.01, abs=0.1)


async def test_a_process_that_nobody_sees_is_on_nobodys_bill(node: Node) -> None:
    idle = listed(node.start(node.pod(HONEST)), 0.0)
    alone = await billed(idle, busy=0.0, cheat="")
    beside = await billed(idle, busy=0.96, cheat="")
    used = beside.balance.busy_us if beside.balance else 0
    assert bill(beside, "honest").busy_us == 200_000  # a look may be late by that much, once
    assert joules(beside, "honest") == pytest.approx(joules(alone, "honest"), rel=0.03)
    unknown = next(rest for rest in beside.rest if rest.reason == "unknown")
    assert unknown.busy_us > 0.98 * used


async def test_a_process_that_began_after_the_reading_has_a_pid_by_chance(node: Node) -> None:
    read_at = time.monotonic() - 0.05
    late = listed(node.start(node.pod(HONEST)), 0.9)
    card = await billed(late, busy=0.9, read_at=read_at)
    assert bill(card, "honest").busy_us == 0
    assert bill(card, "honest").memory_bytes is None


@pytest.mark.parametrize("place", ["web.service", "lxc/web", "docker/" + "c" * 64])
async def test_who_names_his_cgroup_after_a_pod_below_his_own_is_not_that_pod(node: Node, place: str) -> None:
    honest = listed(node.start(node.pod(HONEST)), 0.5)
    beside = listed(node.start(place), 0.4)
    forger = listed(node.start(f"{place}/kubepods/burstable/pod{HONEST}/{IDS[HONEST]}"), 0.4)
    fair, forged = await billed(honest, beside, busy=0.9), await billed(honest, forger, busy=0.9)
    assert joules(forged, "honest") == joules(fair, "honest")
    assert [(rest.reason, rest.energy_mj) for rest in forged.rest] == [
        (rest.reason, rest.energy_mj) for rest in fair.rest
    ]


def sharing(uid: str, name: str, note: str | None) -> Pod:
    """A tenant who asked for half of the card's memory, with what stands on his pod about it."""
    plain = pod(uid, name)
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "40960"}
    return replace(
        plain,
        containers=(replace(plain.containers[0], limits=limits),),
        annotations={} if note is None else {DEVICES_ALLOCATED: note},
    )


@pytest.mark.parametrize("note", [f"{GPU},NVIDIA,1,1:;", "nothing", None])
async def test_who_writes_a_small_number_on_his_pod_still_pays(node: Node, note: str | None) -> None:
    """Use cannot be measured here, so the note would be all there is."""
    kubelet = Kubelet(honest=f"{GPU}-0", cheat=f"{GPU}-1")
    processes = [replace(listed(node.start(node.pod(uid)), 0.0), sm_busy_us=None) for uid in (HONEST, CHEAT)]
    half = f"{GPU},NVIDIA,40960,0:;"
    cards = [
        await billed(
            *processes,
            busy=0.9,
            kubelet=kubelet,
            pods=[sharing(HONEST, "honest", half), sharing(CHEAT, "cheat", written)],
        )
        for written in (half, note)
    ]
    fair, forged = cards
    for name in ("honest", "cheat"):
        assert joules(forged, name) == pytest.approx(joules(fair, name), rel=0.01)
        assert bill(forged, name).allocated_us == pytest.approx(bill(fair, name).allocated_us, rel=0.01)
    assert joules(fair, "cheat") > 1000


def fraction(uid: str, name: str, notes: dict[str, str]) -> Pod:
    """A tenant with a part of the card that KAI reserved for a group."""
    return replace(pod(uid, name), labels={kai.GROUP: "group"}, annotations=notes, scheduler="kai-scheduler")


def reservation(namespace: str = next(iter(kai.SCHEDULERS))) -> tuple[Kubelet, Pod]:
    """A pod that has the card for its group, and the kubelet that gave it the card."""
    kubelet = Kubelet(**{RESERVATION: GPU})
    kubelet.places[RESERVATION] = (namespace, "resource-reservation")
    return kubelet, Pod(
        namespace=namespace,
        name=RESERVATION,
        uid="r",
        phase="Running",
        labels={kai.GROUP: "group"},
        annotations={kai.RESERVED_CARD: GPU},
        containers=(PodContainer(name="resource-reservation"),),
    )


@pytest.mark.parametrize("notes", [{kai.FRACTION: "0.01"}, {}])
async def test_who_writes_a_smaller_fraction_once_he_has_it_still_pays(node: Node, notes: dict[str, str]) -> None:
    """No id and no limit says what KAI gave him, and use cannot be measured."""
    kubelet, holder = reservation()
    processes = [replace(listed(node.start(node.pod(uid)), 0.0), sm_busy_us=None) for uid in (HONEST, CHEAT)]
    half = {kai.FRACTION: "0.5"}
    honest = fraction(HONEST, "honest", half)
    cards = [
        await billed(
            *processes,
            busy=0.9,
            kubelet=kubelet,
            pods=[holder, honest, fraction(CHEAT, "cheat", half)],
            later=[holder, honest, fraction(CHEAT, "cheat", written)],
        )
        for written in (half, notes)
    ]
    fair, forged = cards
    for name in ("honest", "cheat"):
        assert joules(forged, name) == pytest.approx(joules(fair, name), rel=0.01)
        assert bill(forged, name).allocated_us == pytest.approx(bill(fair, name).allocated_us, rel=0.01)
    assert joules(fair, "cheat") > 1000
