import pytest

from podgpu.model import ClusterNode
from podgpu.serve.cluster.views import RenderedNodes
from tests.cluster.nodes import fresh


def node(name: str) -> ClusterNode:
    return ClusterNode(name=name, state="fresh")


async def test_only_a_node_that_changed_is_rendered_again() -> None:
    rendered: list[str] = []

    def render(seen: ClusterNode) -> str:
        rendered.append(seen.name)
        return seen.name.upper()

    cache, nodes = RenderedNodes(render), [node("a"), node("b"), node("c")]
    await cache.update(nodes)
    rendered.clear()
    version = cache.version
    await cache.update(nodes)
    assert (rendered, cache.version) == ([], version)
    changed = [nodes[0], node("b"), nodes[2]]
    await cache.update(changed)
    assert rendered == ["b"] and cache.version > version


async def test_it_follows_the_order_of_the_nodes_and_keeps_none_that_is_gone() -> None:
    cache = RenderedNodes(lambda seen: seen.name)
    kept = [node("b"), node("c")]
    await cache.update(kept)
    version = cache.version
    now = [node("a"), kept[0]]
    await cache.update(now)
    assert list(cache.values) == ["a", "b"] and cache.version > version


async def test_a_node_that_cannot_be_rendered_is_one_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    def render(seen: ClusterNode) -> str:
        if seen.name == "b" and seen.snapshot is not None:
            raise OverflowError("too large")
        return f"{seen.name} {seen.state} {seen.reason}".strip()

    cache = RenderedNodes(render)
    for _ in range(3):  # a node changes in each interval
        await cache.update([node("a"), fresh("b"), node("c")])
        assert list(cache.values) == ["a fresh", "b failed failed", "c fresh"]
    assert len(caplog.records) == 1
    await cache.update([node("a"), node("b"), node("c")])
    assert list(cache.values) == ["a fresh", "b fresh", "c fresh"]
