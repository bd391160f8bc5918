"""The past over HTTP: a moment as the present's document, its rows, the timeline, and a GPU's charts."""

import gzip
import json as plain_json
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from podgpu.errors import UserError
from podgpu.history.in_memory import InMemoryHistory
from podgpu.history.partitions import BY_CARD
from podgpu.model import Lane, Lanes, Reading, Snapshot, of_one
from podgpu.serve.http.request import Request
from podgpu.serve.past import PastRoutes
from podgpu.serve.server import NodeServer
from podgpu.views import json
from tests.history.test_charts import at, gpu
from tests.serve.rig import StubNode, fetch, make_snapshot, serving
from tests.tree import judged

START = 1_700_000_000.0


def taken(number: int) -> Snapshot:
    first = judged(make_snapshot())
    card = replace(first.cards[0], readings=(Reading("temperature_celsius", 50.0 + number),))
    return judged(replace(first, taken_at=START + 5 * number, interval_seconds=5.0, cards=(card,)))


@pytest.fixture
async def server() -> AsyncIterator[NodeServer]:
    history = InMemoryHistory(BY_CARD, step=5.0, whole_every=4, most_bytes=1 << 20)
    for number in range(20):
        await history.keep(taken(number))
    async with serving(StubNode(), history=history) as running:
        yield running


async def test_a_moment_is_the_document_of_the_snapshot_that_was_the_newest_then(server: NodeServer) -> None:
    answer = await fetch(server, f"/api/v1/history?at={START + 37}")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.body == json.encode(taken(7))


async def test_a_moment_can_be_written_as_people_write_it(server: NodeServer) -> None:
    assert (await fetch(server, "/api/v1/history?at=2023-11-14T22:14:00")).body == json.encode(taken(8))


async def test_the_rows_of_a_moment_are_those_of_its_snapshot(server: NodeServer) -> None:
    answer = await fetch(server, f"/api/v1/rows?by=gpus&at={START + 37}", accept_encoding="gzip")
    assert gzip.decompress(answer.body) == json.rows_document(of_one(taken(7)), "gpus")


async def test_rows_without_a_time_are_those_of_the_present(server: NodeServer) -> None:
    assert (await fetch(server, "/api/v1/rows?by=gpus")).body == json.rows_document(of_one(make_snapshot()), "gpus")


@pytest.mark.parametrize("at", [f"{START - 1}", f"{START + 600}", "2020-01-01"])
async def test_what_is_not_kept_is_not_found_and_what_is_kept_is_said(server: NodeServer, at: str) -> None:
    answer = await fetch(server, f"/api/v1/history?at={at}")
    assert answer.status == 404
    assert "kept is 2023-11-14T22:13:20Z to 2023-11-14T22:14:55Z" in answer.text


@pytest.mark.parametrize(
    "query",
    [
        *(
            "history?at=noon",
            "history?at=nan",
            "history",
            "history?gpu=",
            "rows?by=odd&at=1h",
            "timeline?step=0",
        ),
        *("timeline?hours=0", "timeline?hours=745", "timeline?hours=x"),
        *("timeline?step=x", "timeline?from=now&to=1h", "timeline?from=1h&to=now&step=1"),
        *("timeline?from=1e308&to=1e308&step=0.001", f"timeline?step={'9' * 400}", f"timeline?step=0.{'0' * 320}1"),
    ],
)
async def test_a_question_without_sense_is_answered_with_what_to_write(server: NodeServer, query: str) -> None:
    answer = await fetch(server, f"/api/v1/{query}")
    assert answer.status == 400
    assert answer.text.strip()


async def test_a_gpu_has_its_numbers_with_their_times(server: NodeServer) -> None:
    answer = await fetch(server, "/api/v1/history?gpu=GPU-1")
    found = plain_json.loads(answer.body)
    assert (found["schema"], found["gpu"]) == (1, "GPU-1")
    assert found["series"]["temperature_celsius"] == [[START + 5 * number, 50.0 + number] for number in range(20)]
    assert "busy_ratio" not in found["series"]  # not known, so absent
    assert (await fetch(server, "/api/v1/history?gpu=GPU-2")).status == 404


async def test_a_pod_has_its_hour_as_long_as_it_is_kept(server: NodeServer) -> None:
    history = InMemoryHistory(BY_CARD, step=5.0, whole_every=4, most_bytes=1 << 20)
    odd = "ml/träin?&pod=x"
    for number in range(3):
        await history.keep(at(number, gpu(0, odd)))
    async with serving(StubNode(), history=history) as running:
        found = plain_json.loads((await fetch(running, f"/api/v1/history?pod={quote(odd, safe='')}")).body)
        assert (found["schema"], found["pod"], found["xids"]) == (1, odd, [])
        assert found["busy"] == [[START + 5 * number, 0.5] for number in range(3)]
        assert found["kept"] == {"from": START, "to": START + 10}
        assert (found["moment_seconds"], "note" in found) == (5.0, False)
        for path, status, said in (
            ("pod=ml%2Fnobody", 404, "no pod ml/nobody was on a GPU here"),
            ("pod=", 400, "pod=NAMESPACE/POD"),
            ("pod=ml%2Fnobody&hours=24", 404, "--prometheus.url"),
            (f"pod={'x' * 4000}", 404, "no pod"),
        ):
            answer = await fetch(running, f"/api/v1/history?{path}")
            assert (answer.status, said in answer.text) == (status, True), answer.text


async def test_the_timeline_is_of_the_last_hour_unless_others_are_asked_for(server: NodeServer) -> None:
    found = plain_json.loads((await fetch(server, "/api/v1/timeline")).body)
    assert found["kept"] == {"from": START, "to": START + 95}
    assert (found["step"], len(found["steps"])) == (15.0, 241)
    some = plain_json.loads((await fetch(server, f"/api/v1/timeline?from={START}&to={START + 50}&step=25")).body)
    assert [step["at"] for step in some["steps"]] == [START, START + 25, START + 50]


async def test_without_a_history_there_is_none_and_the_option_is_named() -> None:
    async with serving(StubNode()) as server:
        for path in ("history?at=1h", "history?gpu=GPU-1", "history?pod=ml/a", "timeline", "rows?by=gpus&at=1h"):
            answer = await fetch(server, f"/api/v1/{path}")
            assert (answer.status, "--history.size" in answer.text) == (404, True)


async def test_lanes_stand_beside_the_series_also_where_no_history_is_kept() -> None:
    lanes = Lanes(
        is_whole=True,
        ended_at=START,
        step_us=200_000,
        elapsed_us=400_000,
        lanes=(Lane(reason="host", busy_us=(1, 2)),),
        seen_us=(200_000, 200_000),
        switching_us=(0, 3),
        switches=1,
        logged_us=400_000,
    )
    async with serving(StubNode(), lanes={"GPU-1": lanes}.get) as server:
        found = plain_json.loads((await fetch(server, "/api/v1/history?gpu=GPU-1")).body)
        assert found["series"] == {}
        assert found["lanes"]["lanes"] == [{"reason": "host", "busy_us": [1, 2]}]
        assert (await fetch(server, "/api/v1/history?gpu=GPU-2")).status == 404


async def test_a_node_has_no_store_for_a_longer_timeline(server: NodeServer) -> None:
    answer = await fetch(server, "/api/v1/timeline?hours=24")
    assert (answer.status, "--prometheus.url" in answer.text) == (404, True)


async def test_a_longer_timeline_comes_from_the_store_and_says_what_is_kept_here() -> None:
    async def stored(hours: int) -> dict[str, int]:
        if hours > 24:
            raise UserError("store_limited: too many samples")
        return {"from": hours}

    history = InMemoryHistory(BY_CARD, step=5.0, whole_every=4, most_bytes=1 << 20)
    await history.keep(taken(0))
    routes = PastRoutes(history, lambda _: (), lambda *_: (), lambda *_: (), lambda _: (), stored=stored).over({})
    answers = {
        hours: await routes["/api/v1/timeline"].run(Request("GET", "/api/v1/timeline", {"hours": str(hours)}, {}, ""))
        for hours in (24, 168)
    }
    assert plain_json.loads(answers[24].body) == {
        "from": 24,
        "kept": {"from": START, "to": START},
        "moment_seconds": 5.0,
    }
    assert (answers[168].status, b"too many samples" in answers[168].body) == (502, True)
