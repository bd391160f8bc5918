import pytest

from podgpu.model import ClusterNode
from podgpu.serve.cluster.views import RenderedNodes
from tests.cluster.nodes import fresh


def node(name: str) -> ClusterNode:
    return ClusterNode(name=name, state="fresh")


async def test_only_a_node_that_changed_is_rendered_again() -> None:
    rendered: list[str] = []

    def render(one: ClusterNode) -> str:
        rendered.append(one.name)
        return one.name.upper()

    shelf, nodes = RenderedNodes(render), [node("a"), node("b"), node("c")]
    await shelf.update(nodes)
    rendered.clear()
    version = shelf.version
    await shelf.update(nodes)
    assert (rendered, shelf.version) == ([], version)
    changed = [nodes[0], node("b"), nodes[2]]
    await shelf.update(changed)
    assert rendered == ["b"] and shelf.version > version


async def test_it_follows_the_order_of_the_nodes_and_keeps_none_that_is_gone() -> None:
    shelf = RenderedNodes(lambda one: one.name)
    kept = [node("b"), node("c")]
    await shelf.update(kept)
    version = shelf.version
    now = [node("a"), kept[0]]
    await shelf.update(now)
    assert list(shelf.values) == ["a", "b"] and shelf.version > version


async def test_a_node_that_cannot_be_rendered_is_one_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    def render(one: ClusterNode) -> str:
        if one.name == "b" and one.snapshot is not None:
            raise OverflowError("too large")
        return f"{one.name} {one.state} {one.reason}".strip()

    shelf = RenderedNodes(render)
    for _ in range(3):  # a node changes in each interval
        await shelf.update([node("a"), fresh("b"), node("c")])
        assert list(shelf.values) == ["a fresh", "b failed failed", "c fresh"]
    assert len(caplog.records) == 1
    await shelf.update([node("a"), node("b"), node("c")])
    assert list(shelf.values) == ["a fresh", "b fresh", "c fresh"]
