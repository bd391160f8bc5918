"""E: what goes wrong with processes and pods."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from podgpu.host.recent_processes import LOOK_SECONDS
from tests.fakenvml.fake_node import make_processes
from tests.faults.node import DEVICES, Node
from tests.faults.page import Page
from tests.faults.play import Fault, Play
from tests.faults.props.tenants import (
    ADDED,
    CARD,
    CHEAT,
    DELETED,
    HONEST,
    IDS,
    USED,
    announce,
    holds,
    is_fair,
    listed,
    memory,
    place,
    pod,
    power,
    process,
    processes,
    settle,
    sound_tenants,
    strangers,
    tenants,
    unknown_memory,
)
from tests.faults.props.traced import TRACED
from tests.faults.signs import both, part_down, survived

AFTER_ANY_READING = 1 << 40  # ticks
STRANGER = 4_000_000  # a PID that nobody has: the largest there can be is 4,194,304
LOTS = 10_000
# Forks, lets the child end, and does not ask how it ended.
ZOMBIE = "import os, time; pid = os.fork() or os._exit(0); print(pid, flush=True); time.sleep(600)"
HOSTILE = r"""
import ctypes, time
ctypes.CDLL(None).prctl(15, b'a"b\\\n\xff\x1b[2J\xe2\x80\xae}', 0, 0, 0)
print(flush=True); time.sleep(600)
"""
INIT, OWN_POD = "0::/init.scope\n", f"0::/kubepods/pod{CHEAT}/{'c' * 64}\n"


@contextmanager
def reused(node: Node) -> Iterator[None]:
    """Two processes end after the reading: one that the agent knew, and one that it never saw. Both PIDs live on in
    the pod of somebody else."""
    known = node.driver.gpus[0].processes[0].pid
    node.processes.hide(known)
    for pid in (known, STRANGER):
        node.processes.write(pid, f"0::/kubepods/pod{CHEAT}/{IDS[CHEAT]}\n", start=AFTER_ANY_READING)
    with listed(node, STRANGER, sm=0):
        yield
    for pid in (known, STRANGER):
        node.processes.erase(pid)
    node.processes.link(known)


def nested(node: Node) -> Sequence[str]:
    """Let the node be a container itself, as with kind: its PID namespace is not the machine's first."""
    namespaces = node.processes.folder / "self" / "ns"
    namespaces.mkdir(parents=True)
    (namespaces / "pid").symlink_to("pid:[4026539999]")
    (namespaces.parent / "cgroup").write_text(OWN_POD)
    node.processes.rewrite(1, "cgroup", INIT)
    node.processes.write(4242, f"0::/kubepods/pod{HONEST}/{IDS[HONEST]}\n")
    node.driver.gpus[0].processes = [process(4242)]
    settle(node)
    return [f"--path.procfs={node.processes.folder}"]


@contextmanager
def own_namespace(node: Node) -> Iterator[None]:
    """PID 1 is in the agent's own pod: PIDs here are not those of the driver."""
    node.processes.rewrite(1, "cgroup", OWN_POD)
    yield
    node.processes.rewrite(1, "cgroup", INIT)


@contextmanager
def zombie(node: Node) -> Iterator[None]:
    _, said = node.processes.start(place(CHEAT), ZOMBIE)
    node.processes.link(int(said))
    with listed(node, int(said), sm=0):
        yield


def has_one_more(now: Page) -> bool:
    """Whether the process is on the bill of the pod that it was in, or on nobody's where its cgroup is not shown."""
    cheats, nobodys = processes(now, "cheat") or 0, strangers(now, "unknown") or 0
    bytes_of_cheat = cheats * USED
    return memory(now, "honest") == USED and memory(now, "cheat") == bytes_of_cheat and cheats + nobodys == 2


@contextmanager
def traced(node: Node) -> Iterator[None]:
    with listed(node, node.processes.start(place(CHEAT), TRACED)[0]):
        yield


def in_real_proc(node: Node) -> Sequence[str]:
    """As `tenants`, with a /proc in which processes are numbered."""
    tenants(node)
    return ()


@contextmanager
def short_lived(node: Node) -> Iterator[None]:
    """The cheat works by processes that have ended when the card is read, one after the other."""
    own, over = node.driver.gpus[0].processes, threading.Event()

    def work() -> None:
        while not over.is_set():
            pid, _ = node.processes.start(place(CHEAT))
            over.wait(3 * LOOK_SECONDS)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            node.driver.gpus[0].processes = [*own, process(pid, kinds=())]
            node.drive()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()
        node.driver.gpus[0].processes = own
        node.drive()


@contextmanager
def deleted(node: Node) -> Iterator[None]:
    own = node.driver.gpus[0].processes
    node.kubelet.replies[DEVICES] = holds(cheat=f"{CARD}::1")
    announce(node, DELETED, pod(HONEST))
    node.driver.gpus[0].processes = own[1:]
    node.drive()
    yield
    node.kubelet.replies[DEVICES] = sound_tenants()[DEVICES]
    announce(node, ADDED, pod(HONEST))
    node.driver.gpus[0].processes = own
    node.drive()


def only_counters(now: Page, before: Page) -> bool:
    """The gauges of the pod are gone; its counters stay, if it had any, until their last increase was scraped."""
    counter = "podgpu_container_energy_joules_total"
    had = before.values(counter, pod="honest")
    gauges = ("memory_used_bytes", "power_watts", "allocated_ratio", "processes")
    gone = all(now.values(f"podgpu_container_{gauge}", pod="honest") == [] for gauge in gauges)
    return gone and bool(now.values(counter, pod="honest")) == bool(had) and memory(now, "cheat") == USED


def crowd(count: int) -> Fault:
    """So many processes are on the second card, and nobody knows whose."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        node.driver.gpus[1].processes = make_processes(count, first_pid=STRANGER, memory=0, sm=0)
        node.drive()
        yield
        node.driver.gpus[1].processes = []
        node.drive()

    return fault


@contextmanager
def hostile(node: Node) -> Iterator[None]:
    with listed(node, node.processes.start(place(CHEAT), HOSTILE)[0]):
        yield


def by_process(node: Node) -> Sequence[str]:
    return [*tenants(node), "--series.level=process"]


@contextmanager
def dialects(node: Node) -> Iterator[None]:
    """Processes of one pod, each in a cgroup as another kubelet or runtime would name it."""
    below = f"pod{HONEST.replace('-', '_')}.slice"
    burstable = f"TOP-kubepods.slice/TOP-kubepods-burstable.slice/TOP-kubepods-burstable-{below}"
    own = IDS[HONEST]
    places = [
        f"TOP-kubepods.slice/pod{HONEST}/{own}",
        f"TOP-kubepods.slice/besteffort/pod{HONEST}/{own}",
        f"TOP-kubepods.slice/TOP-kubepods-{below}/cri-containerd-{own}.scope",
        f"{burstable}/crio-{own}.scope",
        f"{burstable}/docker-{own}.scope/deeper",
        f"{burstable}/{own}",
    ]
    with listed(node, *(node.processes.start(cgroup)[0] for cgroup in places), sm=0):
        yield


@contextmanager
def forged(node: Node) -> Iterator[None]:
    """Somebody outside Kubernetes names a cgroup below his own after the honest tenant's."""
    forgery = f"docker/{'c' * 64}/kubepods/burstable/pod{HONEST}/{IDS[HONEST]}"
    with listed(node, node.processes.start(forgery)[0], sm=0):
        yield


PLAYS = (
    Play(
        id="E1",
        well=is_fair,
        what="a PID is given to another process between the driver's list and the look into /proc",
        flags=tenants,
        fault=reused,
        shows=survived(
            lambda now: (
                (processes(now, "cheat"), memory(now, "cheat")) == (1, USED) and (strangers(now, "unknown") or 0) >= 1
            )
        ),
    ),
    Play(
        id="E2",
        well=lambda now: memory(now, "honest") == USED,
        what="the agent has a PID namespace of its own",
        flags=nested,
        fault=own_namespace,
        shows=both(
            part_down("procfs", "no_host_pid"),
            lambda now, _: memory(now, "honest") is None and unknown_memory(now) == USED,
        ),
    ),
    Play(
        id="E3",
        well=is_fair,
        what="a process has ended and still holds memory",
        flags=tenants,
        fault=zombie,
        shows=survived(has_one_more),
    ),
    Play(id="E4", well=is_fair, what="a pod is deleted", flags=tenants, fault=deleted, shows=only_counters),
    Play(
        id="E5",
        what="ten thousand processes are on a card",
        fault=crowd(LOTS),
        shows=survived(lambda now: now.value("podgpu_unattributed_processes", gpu="1", reason="unknown") == LOTS),
    ),
    Play(
        id="E6",
        well=is_fair,
        what="a process has a name that is hard to print",
        flags=by_process,
        fault=hostile,
        shows=survived(lambda now: len(now.values("podgpu_process_memory_used_bytes", pod="cheat")) == 2),
    ),
    Play(
        id="E7",
        well=is_fair,
        what="kubelets and runtimes name cgroups in their own ways",
        flags=tenants,
        fault=dialects,
        shows=survived(lambda now: processes(now, "honest") == 7 and processes(now, "cheat") == 1),
    ),
    Play(
        id="E8",
        well=is_fair,
        what="a cgroup is named after a pod, below one that is not Kubernetes'",
        flags=tenants,
        fault=forged,
        shows=survived(lambda now: is_fair(now) and strangers(now, "container") == 1),
    ),
    Play(
        id="E9",
        well=is_fair,
        what="a process lives on in its last thread, and a tracer keeps 300 that have ended",
        flags=tenants,
        fault=traced,
        shows=survived(
            lambda now: (processes(now, "cheat"), memory(now, "cheat"), strangers(now, "unknown")) == (2, 2 * USED, 0)
        ),
    ),
    Play(
        id="E10",
        well=is_fair,
        what="a tenant works by processes that end before the card is read",
        flags=in_real_proc,
        fault=short_lived,
        shows=survived(lambda now: power(now, "cheat") > 1.5 * power(now, "honest") > 0),
    ),
)
