"""The events of a cluster, on real sockets."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from podgpu.serve.cluster import server as cluster_server
from podgpu.views.cluster.json import decode
from tests.serve.cluster.test_server import CLUSTER, LOST, A, B, StubFeed, get, serving
from tests.serve.test_event_stream import Listener, listening


def with_rows(document: Any, change: Any) -> Any:
    """What a reader does with a change, as docs/api.md has it."""
    rows, gone = change.pop("rows"), change.pop("gone", [])
    nodes = {row["name"]: row for row in document["nodes"] if row["name"] not in gone}
    nodes |= {row["name"]: row for row in rows}
    return {**document, **change, "nodes": [nodes[name] for name in sorted(nodes)]}


class Rows(Listener):
    def change(self, document: Any, data: Any) -> Any:
        return with_rows(document, data)


@pytest.mark.parametrize("event_bytes", [200_000, 1])
async def test_rows_of_nodes_that_changed_make_the_new_document(
    event_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_server, "EVENT_BYTES", event_bytes)
    feed = StubFeed(CLUSTER)
    newer = replace(A, state="stale", reason="timeout", detail="Read its log.")
    steps = (
        (newer, B, LOST),
        (newer, LOST),
        (A, replace(B, ready=True), LOST),
        (),
    )
    async with serving(feed) as server, listening(server, Rows) as stream:
        assert await stream.next() == "full"
        for nodes in steps:
            feed.publish(replace(feed.newest, nodes=nodes, taken_at=feed.newest.taken_at + 1))
            last = stream.last
            while stream.last == last:  # only the last part of a change has an id
                assert await stream.next() == "change"
            document = await get(server, "/api/v1/cluster")
            assert decode(document.body) == feed.newest
            assert stream.document == json.loads(document.body)
