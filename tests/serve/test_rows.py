"""Rows of the agent's node."""

import gzip
import json

from msgspec.structs import replace

from podgpu.insight import conclude
from tests.serve.rig import StubNode, connected, fetch, make_snapshot, serving
from tests.tree import SETTINGS


async def test_rows_are_served_by_kind() -> None:
    node = StubNode()
    node.current = conclude(make_snapshot(), SETTINGS)
    async with serving(node) as server:
        found = await fetch(server, "/api/v1/rows?by=gpus")
        packed = await fetch(server, "/api/v1/rows?by=gpus", Accept_Encoding="gzip")
        idle = await fetch(server, "/api/v1/rows?by=idle")
    assert found.headers["content-type"] == "application/json"
    (row,) = json.loads(found.text)["rows"]
    assert (row["name"], row["model"], row["power_watts"]) == ("worker-1 0", "H200", 72.5)
    assert gzip.decompress(packed.body) == found.body
    assert json.loads(idle.text)["rows"] == []


async def test_rows_are_sent_again_only_if_they_changed() -> None:
    node = StubNode()
    async with serving(node) as server:
        etag = (await fetch(server, "/api/v1/rows?by=nodes")).headers["etag"]
        async with connected(server) as client:
            client.ask("/api/v1/rows?by=nodes", If_None_Match=etag)
            assert (await client.answer(head_only=True)).status == 304
        node.current = replace(node.current, taken_at=node.current.taken_at + 1)
        assert (await fetch(server, "/api/v1/rows?by=nodes", If_None_Match=etag)).status == 200


async def test_an_unknown_kind_of_rows_says_which_there_are() -> None:
    async with serving(StubNode()) as server:
        answer = await fetch(server, "/api/v1/rows?by=teams")
    assert answer.status == 400
    assert "pods, workloads, namespaces, labels, gpus, nodes, idle, pending" in answer.text


async def test_rows_are_a_file_of_csv_too() -> None:
    async with serving(StubNode()) as server:
        found = await fetch(server, "/api/v1/rows?by=gpus&format=csv")
        wrong = await fetch(server, "/api/v1/rows?by=gpus&format=xml")
    assert found.headers["content-type"] == "text/csv; charset=utf-8"
    assert found.text.startswith("name,namespace,kind,node,gpus,model,")
    assert (wrong.status, "json, csv, lines" in wrong.text) == (400, True)
