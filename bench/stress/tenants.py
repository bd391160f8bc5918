"""An agent on a node with a hostile tenant: what a tenant can make in any number or length is as large as it can be."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from bench.attribution import cgroup
from bench.footprint import machine, page
from podgpu.option.value import Address
from tests.agent.stage import write_proc
from tests.fakenvml.fake_node import FakeNode, FakeProcess, eight_gpu_node, h200, make_processes
from tests.ports import quiet_port
from tests.sharing.hami.cachefile import CacheFile, Process

PODS = 64
PROCESSES, SUSPECTS, MOUNTS, LEVELS = 50_000, 24, 1500, 500
CACHES, SLOTS = 64, 256
FIRST_PID = 20_000

# Makes the tenant's part of a node: its processes on the cards, and its files below the folder.
Tenant = Callable[[FakeNode, Path], None]


class AgentWithTenant:
    """An agent's process on a node that the tenant is on. The node's other pods are as on any crowded node."""

    ports: tuple[int, ...] = ()
    pid = 0

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    async def start(self, addresses: Sequence[Address], /) -> None:
        del addresses  # the agent's own
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        self._open = ExitStack()
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
        node = eight_gpu_node(processes=PODS)
        known = {process.pid for gpu in node.gpus for process in gpu.processes}
        self._tenant(node, folder)
        host = self._open.enter_context(machine(node, PODS, known, folder / "proc"))
        port = quiet_port()
        agent = host.start(port, f"--path.root={folder}")
        self._open.callback(agent.terminate)
        self.pid, self.ports = agent.pid, (port,)
        while page(port).count(b"podgpu_pod_info{") < PODS:
            pass


def _processes(node: FakeNode, folder: Path, number: int, command: str) -> Sequence[FakeProcess]:
    """Each in a cgroup of its own, as deep and with a name as long as the kernel permits."""
    made = make_processes(number, FIRST_PID, memory=1 << 20)
    below = "/".join("x" * 7 for _ in range(LEVELS))
    for place, process in enumerate(made):
        node.gpus[place % 2].processes.append(process)
        write_proc(folder / "proc", process.pid, f"{cgroup(0).rstrip()}/{process.pid}/{below}\n", command=command)
    return made


def many_processes(node: FakeNode, folder: Path) -> None:
    _processes(node, folder, PROCESSES, "x" * 15)


def false_servers(node: FakeNode, folder: Path) -> None:
    """Processes with the name of MPS' own, beside a client of MPS, in namespaces with as many mounts as can be."""
    mounts = "".join(f"{n} 1 8:1 /{'m' * 200}/{n} /{'m' * 200}/{n} rw - ext4 /dev/sda1 rw\n" for n in range(MOUNTS))
    made = _processes(node, folder, SUSPECTS, "nvidia-cuda-mps")
    made[0].kinds = made[1].kinds = ("mps",)
    write_proc(folder / "proc", 1, "0::/init.scope\n", command="systemd")
    for pid in (1, *(process.pid for process in made)):
        (folder / f"proc/{pid}/mountinfo").write_text(mounts)


def cache_files(node: FakeNode, folder: Path) -> None:
    """HAMi's files, each full of processes that are not the tenant's."""
    del node
    cards = [h200(number).uuid for number in range(8)]
    slots = [Process(FIRST_PID + n, [(1, 1, 1, 3, 1)] * len(cards)) for n in range(SLOTS)]
    cache = CacheFile(uuids=[*cards], memory=[1 << 30] * 8, cores=[30] * 8, processes=slots)
    content = cache.bytes_of("1.2")
    for number in range(SLOTS):
        write_proc(folder / "proc", FIRST_PID + number, cgroup(number % PODS))
    for number in range(CACHES):
        place = folder / f"usr/local/vgpu/containers/{uuid5(NAMESPACE_OID, str(number))}_main"
        place.mkdir(parents=True)
        (place / "x.cache").write_bytes(content)


TENANTS = {
    f"a tenant with {PROCESSES:,} GPU processes in deep cgroups": partial(AgentWithTenant, many_processes),
    f"a tenant with {SUSPECTS} false MPS servers and {MOUNTS:,} mounts": partial(AgentWithTenant, false_servers),
    f"a tenant with {CACHES} full files of HAMi's library": partial(AgentWithTenant, cache_files),
}
