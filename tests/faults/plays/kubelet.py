"""B: what goes wrong with the kubelet and its sockets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from grpclib.const import Status

from tests.fakekubelet.kubelet import Reply
from tests.faults.node import DEVICES, Node, sound_kubelet
from tests.faults.play import Fault, Play
from tests.faults.signs import part_down

MIB = 1 << 20
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


PLAYS = (
    Play(id="B1", what="the kubelet restarts", fault=away, shows=part_down(MAP, "no_socket")),
    Play(
        id="B2",
        what="the kubelet does not answer",
        fault=lists(lambda: Reply(hangs=True)),
        shows=part_down(MAP, "deadline"),
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
        id="B7",
        what="the kubelet answers with garbage",
        fault=lists(lambda: Reply(b"\x0a\xff")),
        shows=part_down(MAP, "garbage"),
    ),
)
