"""The server of the page, over documents that a test writes itself."""

import asyncio
import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from podgpu.assembly.agent import open_agent
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.feed import Feed
from podgpu.history.timeline import timeline
from podgpu.insight import InsightSettings, conclude, reconclude
from podgpu.model import Cluster, Lanes, Moment, Statement, of_one
from podgpu.model.fit import FitStatement
from podgpu.option.value import Address
from podgpu.serve.cluster.statements import BillRoute, FitRoute
from podgpu.serve.http.request import Request
from podgpu.serve.http.response import Response
from podgpu.serve.pages import BodyPart
from podgpu.serve.request_handler import Load, Route
from podgpu.serve.routes import facts_query, rows_query, under_policy
from podgpu.serve.server import HttpServer, changes
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json
from podgpu.views.facts import facts_document
from podgpu.views.page import html_parts
from podgpu.views.rows_file import rows_written
from tests.patience import PATIENCE
from tests.tree import SETTINGS

Document = dict[str, Any]


class Script:
    """What the page is told: a node's documents, or a cluster's, one after the other, with what follows from them."""

    are_rows_broken = False
    bills: Mapping[str, Statement] = {}  # by the name of their time, or by what they are grouped by
    fit: FitStatement | None = None
    moments: Sequence[Moment] = ()  # of the last hour
    lanes: Mapping[str, Lanes] = {}  # of shared cards, by UUID
    card_busy: Sequence[tuple[float, float]] = ()  # of the last hour, of each card; a minute at 50 % without
    past: Document | None = None  # what every moment of the past was

    def __init__(self, first: Document, settings: InsightSettings = SETTINGS) -> None:
        self._settings = settings
        self._feed = Feed(self._told(first))

    def publish(self, newer: Document) -> None:
        self._feed.publish(self._told(newer))

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    def _told(self, facts: Document) -> Document:
        """Conclude again: a test may have changed the facts."""
        if "nodes" in facts:
            cluster = cluster_json.decode(msgspec.json.encode(_bare(facts)))
            self._cluster = reconclude(cluster, self._settings)
            told = cluster_json.encode(self._cluster)
        else:
            snapshot = conclude(json.decode(msgspec.json.encode(_bare(facts))), self._settings)
            self._cluster, told = of_one(snapshot), json.encode(snapshot)
        return msgspec.json.decode(told, type=dict[str, Any])

    @property
    def state(self) -> Document:
        return self._feed.newest

    async def changed(self, seen: Document) -> Document:
        return await self._feed.changed(seen)

    async def document(self, state: Document) -> Sequence[BodyPart]:
        return (BodyPart(msgspec.json.encode(state)),)

    async def change(self, before: Document, after: Document) -> Sequence[Sequence[BodyPart]]:
        change = _rows(before, after) if "nodes" in after else changes(before, after)
        return ((BodyPart(msgspec.json.encode(change)),),)

    def forget(self) -> None:
        pass


def _bare(facts: Document) -> Document:
    """Without what was concluded from them before."""
    own = {name: value for name, value in facts.items() if name != "insight"}
    if "nodes" in own:
        own["nodes"] = [
            _bare(row) | ({"snapshot": _bare(row["snapshot"])} if "snapshot" in row else {}) for row in own["nodes"]
        ]
    return own


def _rows(before: Document, after: Document) -> Document:
    known = {row["name"]: row for row in before["nodes"]}
    head = {name: value for name, value in after.items() if name != "nodes"}
    rows = [row for row in after["nodes"] if known.get(row["name"]) != row]
    return {**head, "gone": sorted(known.keys() - {row["name"] for row in after["nodes"]}), "rows": rows}


class _Tables:
    def __init__(self, script: Script) -> None:
        self._script = script

    def table(self, _dialect: str) -> Mapping[str, Route]:
        return {
            "/": Route(self._page),
            "/api/v1/history": Route(self._history),
            "/api/v1/rows": Route(self._rows),
            "/api/v1/facts": Route(self._facts),
            "/api/v1/timeline": Route(self._timeline),
            "/api/v1/report": Route(BillRoute(self._bill)),
            **FitRoute(self._fit).routes(),
        }

    async def _fit(self, _now: float) -> FitStatement:
        if self._script.fit is None:
            raise UserError("the store has no samples of podgpu")
        return self._script.fit

    async def _bill(self, query: Mapping[str, str], _now: float) -> tuple[Statement, Mapping[str, Any]]:
        try:
            return self._script.bills[query.get("period", query["by"])], {"by": query["by"]}
        except KeyError:
            raise UserError(f"--by={query['by']}: no pod has such a label in this time") from None

    def _rows(self, request: Request) -> Response:
        if self._script.are_rows_broken:
            raise RuntimeError("the test wants it so")
        query = rows_query(request)
        return Response(200, rows_written(self._script.cluster, query), query.content_type)

    def _facts(self, request: Request) -> Response:
        return Response(200, facts_document(self._script.cluster, facts_query(request)), "application/json")

    def _history(self, request: Request) -> Response:
        if "at" in request.query:
            return Response(200, msgspec.json.encode(self._script.past), "application/json")
        if "hours" not in request.query:
            return Response(200, msgspec.json.encode(self._hour(request.query)), "application/json")
        step = int(request.query["hours"]) * 36
        points = [(1_700_000_000.0 + step * number, 0.5) for number in range(100)]
        return Response(
            200, msgspec.json.encode(dict.fromkeys(("busy", "memory", "watts"), points)), "application/json"
        )

    def _hour(self, query: Mapping[str, str]) -> Document:
        """The hour of a GPU, or of a pod, as its card had it."""
        end = self._script.state["taken_at"]
        points = self._script.card_busy or [(end - 60.0 + number, 0.5) for number in range(60)]
        watts = [(at, 84.0 + 404.0 * busy) for at, busy in points]
        kept = {"kept": {"from": points[0][0], "to": points[-1][0]}, "moment_seconds": 5.0}
        if "pod" in query:
            memory = [(at, 40.0 * 2**30) for at, _ in points]
            return {"schema": 1, "pod": query["pod"], "busy": points, "memory": memory, "watts": watts, **kept}
        lanes = self._script.lanes.get(query["gpu"])
        series = {"busy_ratio": points, "power_watts": watts}
        return {"schema": 1, "gpu": query["gpu"], "series": series, **kept, **({"lanes": lanes} if lanes else {})}

    def _timeline(self, request: Request) -> Response:
        """Without moments nothing is kept: what a test needs of the past, it keeps itself."""
        moments, hours = self._script.moments, int(request.query.get("hours", "1"))
        end = moments[-1].at if moments else 3600.0
        kept = {"from": end - 1800.0, "to": end} if moments else {}
        found = timeline(moments, end - 3600.0 * hours, end, 15.0 * hours)
        found |= {"kept": kept, "moment_seconds": 5.0}
        return Response(200, msgspec.json.encode(found), "application/json")

    def _page(self, _request: Request) -> Response:
        before, after = html_parts("podgpu", "<p>table</p>", refresh_seconds=5)
        return under_policy(Response(200, (before + after).encode(), "text/html; charset=utf-8"))


@asynccontextmanager
async def staged(script: Script) -> AsyncIterator[str]:
    """Serve the page, and give its address."""
    front = HttpServer(_Tables(script).table, ["native"], script, Load(40), max_connections=300, max_streams=1000)
    await front.start([Address("127.0.0.1", 0)])
    try:
        yield f"http://127.0.0.1:{front.ports[0]}/"
    finally:
        await front.stop()
        await asyncio.sleep(0)


_demo: list[bytes] = []


async def demo_document() -> Document:
    """The demo's node, after a few of its cycles; the same each time."""
    if not _demo:
        # A snapshot that is three intervals old is replaced by one without cards.
        agent = open_agent(Config(source="simulator", node_name="gpu-node-1", interval=PATIENCE))
        for _ in range(4):
            await agent.cycle()
            await asyncio.sleep(0.1)
        _demo.append(json.encode(agent.snapshot))
        await agent.close()
    return msgspec.json.decode(_demo[0], type=dict[str, Any]) | {"interval_seconds": 5.0}


def cluster_of(snapshot: Document, nodes: int) -> Document:
    """Copy a node many times, under other names and with other GPUs."""
    rows = []
    for number in range(nodes):
        name = f"gpu-node-{number + 1:03}"
        changed = copy.deepcopy(snapshot) | {"node": name}
        for pod in changed["pods"]:
            pod["name"] += f"-{number}"
        for card in changed["cards"]:
            card["gpu"]["uuid"] = f"GPU-{number:04}-{card['gpu']['index']}"
            for tenant in card["tenants"]:
                tenant["container"]["pod"] += f"-{number}"
        rows.append({"name": name, "state": "fresh", "origin": "agent", "model": "NVIDIA H200", "snapshot": changed})
    head = {
        "schema": 1,
        "taken_at": snapshot["taken_at"],
        "version": "1.2.3",
        "name": "prod-eu",
        "interval_seconds": 15.0,
    }
    return {**head, "pending": [], "parts": [], "nodes": rows}
