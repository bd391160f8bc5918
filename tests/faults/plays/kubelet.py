"""B: what goes wrong with the kubelet and its sockets."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from grpclib.const import Status

from podgpu.kube._gen.pods_pb2 import WatchEvent
from tests.fakekubelet.kubelet import Reply
from tests.fakekubelet.rig import given, pods_api
from tests.fakenvml.fake_node import h200
from tests.faults.node import DEVICES, PODS, WATCH, Node, pod_message, sound_kubelet
from tests.faults.page import Page
from tests.faults.play import Fault, Play
from tests.faults.signs import both, counted, part_down, survived

MIB = 1 << 20
FIRST = h200(0).uuid.encode()
MAP = "podresources"


def lists(reply: Callable[[], Reply]) -> Fault:
    """Let the kubelet answer like this when it is asked who was given which device."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        node.kubelet.replies = sound_kubelet() | {DEVICES: reply()}
        yield
        node.kubelet.replies = sound_kubelet()

    return fault


@contextmanager
def away(node: Node) -> Iterator[None]:
    node.do(node.kubelet.stop())
    yield
    node.do(node.kubelet.start())


@contextmanager
def crashed(node: Node) -> Iterator[None]:
    """The files of the sockets are there, and nobody listens."""
    node.do(node.kubelet.stop())
    left = [node.kubelet.root / name for name in node.kubelet.sockets]
    for path in left:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
    yield
    for path in left:
        path.unlink()
    node.do(node.kubelet.start())


@contextmanager
def pods_unknown(node: Node) -> Iterator[None]:
    refused = {name: Reply(status=Status.FAILED_PRECONDITION) for name in (PODS, WATCH)}
    node.kubelet.replies = sound_kubelet() | refused
    node.call(node.kubelet.break_connections)
    yield
    node.kubelet.replies = sound_kubelet()


@contextmanager
def ended_pod_is_listed(node: Node) -> Iterator[None]:
    """Older kubelets list the devices of a pod that has ended, and they may be another pod's by now."""
    ended, holder = pod_message("ended", "Succeeded"), pod_message("p")
    news, watch = WatchEvent(type=1, pod=ended).SerializeToString(), node.kubelet.replies[WATCH]
    node.call(watch.push, news)  # to the watch that is open
    node.kubelet.replies |= {
        DEVICES: Reply(given(FIRST, pod=b"ended") + given(FIRST)),  # two lists one after the other are one
        **pods_api(ended, holder),
        **({WATCH: watch} if node.agent else {}),
    }
    yield
    node.kubelet.replies = sound_kubelet()


@contextmanager
def forgotten_pod_is_listed(node: Node) -> Iterator[None]:
    """The same, but nobody knows that pod any more."""
    node.kubelet.replies[DEVICES] = Reply(given(FIRST, pod=b"forgotten") + given(FIRST))
    yield
    node.kubelet.replies = sound_kubelet()


def names_the_holder_alone(now: Page) -> bool:
    holders = {labels["pod"] for labels, _ in now.by_name.get("podgpu_container_energy_joules_total", ())}
    return holders == {"p"}


PLAYS = (
    Play(id="B1", what="the kubelet restarts", fault=away, shows=part_down(MAP, "no_socket")),
    Play(
        id="B1.crash",
        what="the kubelet crashed and left its sockets behind",
        fault=crashed,
        shows=part_down(MAP, "unavailable"),
    ),
    Play(
        id="B2",
        what="the kubelet does not answer",
        fault=lists(lambda: Reply(hangs=True)),
        shows=part_down(MAP, "deadline"),
    ),
    Play(
        id="B3",
        what="the kubelet lists a pod that has ended with the card of another",
        fault=ended_pod_is_listed,
        shows=survived(names_the_holder_alone),
    ),
    Play(
        id="B3.forgotten",
        what="the kubelet lists a pod that nobody knows with the card of another",
        fault=forgotten_pod_is_listed,
        shows=both(counted("sharing", "unknown_id"), survived(names_the_holder_alone)),
    ),
    Play(
        id="B4",
        what="the kubelet's answer is larger than anybody takes",
        fault=lists(lambda: Reply(bytes(17 * MIB))),
        shows=part_down(MAP, "too_large"),
    ),
    Play(
        id="B5",
        what="the kubelet limits the rate",
        fault=lists(lambda: Reply(status=Status.RESOURCE_EXHAUSTED)),
        shows=part_down(MAP, "rate_limited"),
    ),
    Play(
        id="B6",
        what="the kubelet does not know its pods yet",
        fault=lists(lambda: Reply(status=Status.FAILED_PRECONDITION)),
        shows=part_down(MAP, "not_synced"),
    ),
    Play(
        id="B6.pods",
        what="the kubelet's Pods API does not know its pods yet",
        fault=pods_unknown,
        shows=part_down("pods-api", "not_synced"),
    ),
    Play(
        id="B7",
        what="the kubelet answers with garbage",
        fault=lists(lambda: Reply(b"\x0a\xff")),
        shows=part_down(MAP, "garbage"),
    ),
    Play(
        id="B8",
        what="ids are in dialects that nobody knows, and one is no text",
        fault=lists(lambda: Reply(given(FIRST, b"nvidia0/gi3/vgpu1", b"FPGA-7::3", b"card\xff\xfe"))),
        shows=both(counted(MAP, "bad_id"), survived(names_the_holder_alone)),
    ),
)
