"""N: attacks that once succeeded. Those of a tenant on the bill of another, with both on the same card."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

import pynvml

from podgpu.kube._gen.pods_pb2 import PodMessage
from podgpu.sharing.hami.annotation import DEVICES_ALLOCATED
from tests.fakekubelet.kubelet import Reply
from tests.fakenvml.fake_node import FakeFault
from tests.faults.node import DEVICES, Node
from tests.faults.page import Page
from tests.faults.play import Play
from tests.faults.plays.driver import driver_faults
from tests.faults.plays.http import only
from tests.faults.plays.kubelet import MAP, MIB, lists
from tests.faults.props.clients import MANY
from tests.faults.props.tenants import (
    ADDED,
    CARD,
    CHEAT,
    DELETED,
    HONEST,
    IDS,
    MODIFIED,
    USED,
    announce,
    has,
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
)
from tests.faults.props.visit import Visit
from tests.faults.signs import both, counted, either, part_down, survived

STRANGER = 4_000_000  # a PID that nobody has
AFTER_ANY_READING = 1 << 40  # ticks
REFUSED = "UtilizationRates"
SIGN = "attacked"  # a label that shows that an attack has arrived
# What ends the first thread while another lives on, and what takes the name of an MPS server.
HEADLESS = (
    "import ctypes, os, threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); print(flush=True);"
    "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)"
)
SERVER = (
    "import ctypes, time; ctypes.CDLL(None).prctl(15, b'nvidia-cuda-mps-server', 0, 0, 0); print(flush=True);"
    "time.sleep(600)"
)
DELEGATED = ("web.service", "lxc/web", f"docker/{'c' * 64}", "garden/web", "machine.slice/machine-web.scope")


@contextmanager
def headless(node: Node) -> Iterator[None]:
    with listed(node, node.processes.start(place(CHEAT), HEADLESS)[0]):
        yield


@contextmanager
def server(node: Node) -> Iterator[None]:
    """The cheat works under the name of an MPS server; the honest tenant is a client of MPS and hardly works."""
    own = node.driver.gpus[0].processes
    forged = node.processes.start(place(CHEAT), SERVER)[0]
    node.driver.gpus[0].processes = [
        process(own[0].pid, sm=10, kinds=("compute", "mps")),
        process(forged, sm=80),
    ]
    node.drive()
    yield
    node.driver.gpus[0].processes = own
    node.drive()


@contextmanager
def unseen(node: Node) -> Iterator[None]:
    """The card is busy, and the only process that the driver lists does nothing."""
    own = node.driver.gpus[0].processes
    node.driver.gpus[0].processes = [process(own[0].pid, sm=0)]
    node.drive()
    yield
    node.driver.gpus[0].processes = own
    node.drive()


def is_nobodys(page: Page) -> bool:
    unknown = page.value("podgpu_unattributed_power_watts", gpu="0", reason="unknown") or 0
    return unknown > 500 and 0 < power(page, "honest") < 100


@contextmanager
def late(node: Node) -> Iterator[None]:
    """A process of the honest tenant has a PID that the driver's list names for one that has ended."""
    node.processes.write(STRANGER, f"0::/kubepods/pod{HONEST}/{IDS[HONEST]}\n", start=AFTER_ANY_READING)
    with listed(node, STRANGER, sm=0):
        yield
    node.processes.erase(STRANGER)


@contextmanager
def delegated(node: Node) -> Iterator[None]:
    """Whoever owns a cgroup names others below it after the honest tenant's."""
    forged = f"kubepods/burstable/pod{HONEST}/{IDS[HONEST]}"
    with listed(node, *(node.processes.start(f"{cgroup}/{forged}")[0] for cgroup in DELEGATED), sm=0):
        yield


def sharing(uid: str, note: str, **labels: str) -> PodMessage:
    """A tenant who asked for a part of the card's memory, with what stands on his pod about it."""
    message = pod(uid, labels=labels, notes={DEVICES_ALLOCATED: note})
    limits = message.spec.containers[0].resources.limits
    limits["nvidia.com/gpu"].text, limits["nvidia.com/gpumem"].text = "1", "40960"
    return message


FAIR, SMALL = f"{CARD},NVIDIA,40960,0:;", f"{CARD},NVIDIA,1,1:;"


def by_notes(node: Node) -> Sequence[str]:
    """Let HAMi divide the card."""
    settle(node)
    node.kubelet.replies |= {
        DEVICES: holds(honest=f"{CARD}-0", cheat=f"{CARD}-1"),
        **has(sharing(HONEST, FAIR), sharing(CHEAT, FAIR)),
    }
    return [f"--kube.pod-labels={SIGN}"]


@contextmanager
def small_note(node: Node) -> Iterator[None]:
    announce(node, MODIFIED, sharing(CHEAT, SMALL, **{SIGN: "yes"}))
    yield
    announce(node, MODIFIED, sharing(CHEAT, FAIR))


def is_attacked(page: Page) -> bool:
    return page.value("podgpu_pod_info", pod="cheat", **{f"label_{SIGN}": "yes"}) == 1


def has_same_part(page: Page) -> bool:
    parts = [page.value("podgpu_container_allocated_ratio", pod=name) for name in ("honest", "cheat")]
    return parts[0] == parts[1] and (parts[0] or 0) > 0.2


def others(count: int, note: str, size: int) -> list[PodMessage]:
    """Pods that hold no card and have a long note."""
    return [pod(str(UUID(int=number)), f"other-{number}", notes={note: "x" * size}) for number in range(count)]


@contextmanager
def fat(node: Node) -> Iterator[None]:
    """All pods together are more than a list may have, and the cheat's own is more than any pod should."""
    cheat = pod(CHEAT, notes={"example.com/long": "x" * (3 * MIB)})
    _restart(node, has(*others(65, "example.com/long", 256 << 10), pod(HONEST), cheat))
    yield
    _restart(node, sound_tenants())


def _restart(node: Node, replies: dict[str, Reply]) -> None:
    node.kubelet.replies |= replies
    node.do(_broken(node))


async def _broken(node: Node) -> None:
    node.kubelet.break_connections()


def showing_attacks(node: Node) -> Sequence[str]:
    return [*tenants(node), f"--kube.pod-labels={SIGN}"]


@contextmanager
def long_notes(node: Node) -> Iterator[None]:
    """Many pods have a note that has to be read, and that is as long as Kubernetes allows."""
    announce(node, ADDED, *others(100, DEVICES_ALLOCATED, 64 << 10), pod(CHEAT, labels={SIGN: "yes"}))
    yield
    announce(node, DELETED, *others(100, "", 0))
    announce(node, MODIFIED, pod(CHEAT))


@contextmanager
def garbled(node: Node) -> Iterator[None]:
    """Strings are not text, ratios are negative, and the energy counter jumps beyond anything a card can use."""
    card, driver = node.driver.gpus[1], node.driver.driver
    own = dict(card.values), dict(card.fields), dict(card.gpm), card.name
    node.driver.driver, card.name = "580.\udcff\udcfe", "NVIDIA \udcff"
    card.values["energy"] = card.fields[83] = 10**15
    card.gpm |= {2: -5.0, 3: -1e300}
    node.drive()
    yield
    card.values, card.fields, card.gpm, card.name = own
    node.driver.driver = driver
    node.drive()


class Elsewhere(Visit):
    """Strange pages in a browser call the agent, and somebody stops the process that asks the driver."""

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        with super().fault(node):
            if node.agent:
                os.kill(node.agent.children()[0], signal.SIGSTOP)
            yield


def has_new_child(now: Page, before: Page) -> bool:
    """At the start there is no child yet that could be stopped."""
    return not before.samples or counted("nvml", "sampler_exited")(now, before)


def allowing_hosts(_: Node) -> Sequence[str]:
    return ["--web.allowed-hosts=podgpu.example"]


SILENT, DOCUMENTS, UNREAD = Visit("silent"), Visit("documents"), Visit("unread")
ELSEWHERE = Elsewhere("elsewhere")

PLAYS = (
    Play(
        id="N1",
        what="a tenant ends the first thread of his process",
        flags=tenants,
        fault=headless,
        shows=survived(
            lambda now: (processes(now, "cheat"), memory(now, "cheat"), strangers(now, "unknown")) == (2, 2 * USED, 0)
        ),
        well=is_fair,
    ),
    Play(
        id="N2",
        what="a tenant calls his process an MPS server",
        flags=tenants,
        fault=server,
        shows=survived(lambda now: memory(now, "cheat") == USED and power(now, "cheat") > 4 * power(now, "honest") > 0),
        well=is_fair,
    ),
    Play(
        id="N3",
        what="a process that nobody sees keeps the card busy",
        flags=tenants,
        fault=unseen,
        shows=survived(is_nobodys),
        well=is_fair,
    ),
    Play(
        id="N4",
        what="a process begins after the reading, with a PID of the driver's list",
        flags=tenants,
        fault=late,
        shows=survived(lambda now: is_fair(now) and strangers(now, "unknown") == 1),
        well=is_fair,
    ),
    Play(
        id="N5",
        what="cgroups that others may name are named after a pod",
        flags=tenants,
        fault=delegated,
        shows=survived(
            lambda now: (
                is_fair(now)
                and sum(strangers(now, kind) or 0 for kind in ("host", "container", "unknown")) == len(DELEGATED)
            )
        ),
        well=is_fair,
    ),
    Play(
        id="N6",
        what="a tenant writes on his pod that he has next to nothing",
        flags=by_notes,
        fault=small_note,
        shows=survived(lambda now: is_attacked(now) and has_same_part(now)),
        well=has_same_part,
    ),
    Play(
        id="N7",
        what="pods are so fat that they cannot be listed",
        flags=tenants,
        fault=fat,
        shows=both(counted("pods-api", "too_large"), survived(is_fair)),
        well=is_fair,
    ),
    Play(
        id="N8",
        what="hundreds connect and say nothing",
        fault=SILENT.fault,
        shows=SILENT.fared(lambda tally: tally.get("connected", 0) > 2 * MANY),
        clients=3 * MANY,
    ),
    Play(
        id="N9",
        what="clients ask for one document after the other",
        fault=DOCUMENTS.fault,
        shows=DOCUMENTS.fared(lambda tally: tally.get("200", 0) > 200),
        clients=MANY,
    ),
    Play(
        id="N10",
        what="clients ask ahead and read nothing",
        fault=UNREAD.fault,
        shows=UNREAD.fared(lambda tally: tally.get("asked", 0) > 3000),
        clients=MANY,
    ),
    Play(
        id="N11",
        what="a hundred pods have long notes",
        flags=showing_attacks,
        fault=long_notes,
        shows=survived(lambda now: is_attacked(now) and is_fair(now)),
        well=is_fair,
    ),
    Play(
        id="N12",
        what="the kubelet lists millions of pods without a name",
        fault=lists(lambda: Reply(b"\x0a\x00" * (2 * MIB))),
        shows=either(part_down(MAP, "too_many"), part_down(MAP, "deadline")),  # by how fast the machine is
    ),
    Play(
        id="N13",
        what="the driver refuses a call once on one card, and for a while on the other",
        fault=driver_faults(
            FakeFault(f"return {pynvml.NVML_ERROR_NOT_SUPPORTED}", call=f"nvmlDeviceGet{REFUSED}", device=0, times=1),
            FakeFault(f"return {pynvml.NVML_ERROR_NO_PERMISSION}", call=f"nvmlDeviceGet{REFUSED}", device=1),
        ),
        shows=survived(
            lambda now: (
                now.value("podgpu_gpu_refused", call=REFUSED) == 1
                and now.values("podgpu_gpu_refused", gpu="0") == []
                and len(now.values("podgpu_gpu_utilization_ratio")) == 1
            )
        ),
        well=lambda now: len(now.values("podgpu_gpu_utilization_ratio")) == 2,
    ),
    Play(
        id="N14",
        what="the driver's strings and numbers are garbled",
        fault=garbled,
        shows=both(
            counted("nvml", "implausible_value"),
            survived(lambda now: now.values("podgpu_gpu_up") == [1, 1]),
        ),
    ),
    Play(
        id="N15",
        what="strange pages call the agent, and its child is stopped",
        flags=allowing_hosts,
        fault=ELSEWHERE.fault,
        shows=both(ELSEWHERE.fared(only("release 403", "snapshot 421")), has_new_child),
        clients=MANY,
    ),
)
