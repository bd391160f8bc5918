"""Facts of a pod or a GPU, over HTTP."""

import json

from podgpu.insight import conclude
from tests.serve.rig import StubNode, fetch, make_snapshot, serving
from tests.tree import SETTINGS


async def test_a_node_tells_the_facts_of_a_gpu() -> None:
    node = StubNode()
    node.current = conclude(make_snapshot(), SETTINGS)
    uuid = node.current.cards[0].gpu.uuid
    async with serving(node) as server:
        found = await fetch(server, f"/api/v1/facts?gpu={uuid}")
    assert found.headers["content-type"] == "application/json"
    assert {"what": "Node", "value": "worker-1"} in json.loads(found.text)["summary"]


async def test_facts_are_of_one_pod_or_one_gpu() -> None:
    async with serving(StubNode()) as server:
        answers = [await fetch(server, f"/api/v1/facts{query}") for query in ("", "?pod=a/b&gpu=GPU-1")]
    assert [answer.status for answer in answers] == [400, 400]
    assert "?pod=NAMESPACE/POD, ?gpu=UUID, ?node=NAME" in answers[0].text
