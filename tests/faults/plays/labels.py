"""F: names and values that a page cannot hold as they are."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.fakekubelet.kubelet import Reply
from tests.fakekubelet.rig import given
from tests.faults.node import DEVICES, Node
from tests.faults.page import Page
from tests.faults.play import Fault, Flags, Play
from tests.faults.props.tenants import CARD, HONEST, MODIFIED, announce, pod, settle
from tests.faults.signs import both, counted, survived

HOSTILE = 'a"b\\c\nd{e="f"} 1\n# HELP x y'
NOT_TEXT = b"p\xff\xed\xa0\x80"


def labelled(labels: dict[str, str]) -> Fault:
    """Let the honest tenant's pod have these labels."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        announce(node, MODIFIED, pod(HONEST, labels=labels))
        yield
        announce(node, MODIFIED, pod(HONEST))

    return fault


def showing_labels(*keys: str) -> Flags:
    def flags(node: Node) -> Sequence[str]:
        settle(node)
        return [f"--kube.pod-labels={key}" for key in keys]

    return flags


@contextmanager
def no_text(node: Node) -> Iterator[None]:
    node.kubelet.replies[DEVICES] = Reply(given(CARD.encode(), pod=NOT_TEXT))
    yield
    node.kubelet.replies[DEVICES] = Reply(given(CARD.encode()))


def has_label(page: Page, name: str, value: str) -> bool:
    return page.value("podgpu_pod_info", pod="honest", **{name: value}) == 1


PLAYS: tuple[Play, ...] = (
    Play(
        id="F1",
        what="a pod's label has quotes, backslashes and lines",
        flags=showing_labels("app"),
        fault=labelled({"app": HOSTILE}),
        shows=survived(lambda now: has_label(now, "label_app", HOSTILE)),
    ),
    Play(
        id="F2",
        what="a name is not text",
        fault=no_text,
        shows=both(
            counted("podresources", "bad_id"),
            survived(lambda now: now.values("podgpu_container_allocated_ratio") == []),
        ),
        well=lambda now: now.value("podgpu_container_allocated_ratio", pod="p") == 1,
    ),
    Play(
        id="F3",
        what="two labels of a pod have the same name on the page",
        flags=showing_labels("a.b", "a-b"),
        fault=labelled({"a.b": "1", "a-b": "2"}),
        shows=survived(lambda now: has_label(now, "label_a_b", "2") and has_label(now, "label_a_b_conflict1", "1")),
    ),
)
