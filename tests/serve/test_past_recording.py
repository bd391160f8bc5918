"""A file of the minutes around a moment, over HTTP: as large as it may be, and what the real command plays."""

import asyncio
import gzip
import json as plain_json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podgpu.cli.main import main
from podgpu.history.in_memory import InMemoryHistory
from podgpu.history.partitions import BY_CARD
from podgpu.serve.past_recording import MOST_FRAMES, MOST_PARTS, times_around
from podgpu.serve.server import NodeServer
from podgpu.sources.replay.recording import Recording
from podgpu.views.cluster import json as cluster_json
from tests.history.test_charts import START, at, gpu
from tests.serve.rig import StubNode, fetch, serving

MOMENTS = 300


@pytest.fixture
async def server() -> AsyncIterator[NodeServer]:
    history = InMemoryHistory(BY_CARD, step=5.0, whole_every=20, most_bytes=4 << 20)
    for number in range(MOMENTS):
        await history.keep(at(number, gpu(0, f"ml/train-{number}", watts=300.0 + number)))
    async with serving(StubNode(), history=history) as running:
        yield running


async def test_the_file_is_played_by_the_real_command_and_shows_the_numbers_of_then(
    server: NodeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = START + 500
    answer = await fetch(server, f"/api/v1/recording?at={shown + 2}&minutes=2")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/octet-stream")
    assert answer.headers["content-disposition"] == 'attachment; filename="podgpu-2023-11-14T22-21-42Z.recording"'
    file = tmp_path / "incident"
    file.write_bytes(answer.body)
    recording = Recording(file)
    assert recording.times == [shown - 60 + 5 * number for number in range(25)]
    then = plain_json.loads((await fetch(server, f"/api/v1/history?at={shown}")).body)
    kept = cluster_json.decode(recording.document(recording.times.index(shown)))
    assert plain_json.loads(cluster_json.encode(kept))["nodes"][0]["snapshot"] == then
    # The first moment is what a command shows.
    rows = plain_json.loads((await fetch(server, f"/api/v1/rows?by=pods&at={shown - 60}")).body)["rows"]
    assert await asyncio.to_thread(main, ["top", "-o", "json", f"--replay.file={file}"]) == 0
    [played] = plain_json.loads(capsys.readouterr().out)["rows"]
    assert played["name"] == "train-88"
    for name in ("name", "namespace", "busy_gpus", "use_ratio", "memory_used_bytes", "held_gpus", "state"):
        assert played[name] == rows[0][name]


async def test_an_hour_has_no_more_moments_than_there_is_time_for(server: NodeServer, tmp_path: Path) -> None:
    answer = await fetch(server, f"/api/v1/recording?at={START + 500}&minutes=60", accept_encoding="gzip")
    (tmp_path / "hour").write_bytes(gzip.decompress(answer.body))
    times = Recording(tmp_path / "hour").times
    assert START + 500 in times
    assert MOST_FRAMES / 2 < len(times) <= MOST_FRAMES
    assert times[-1] - times[0] > 0.9 * 5 * MOMENTS


class Wide:
    """A history of many nodes."""

    def __init__(self, parts: int, moments: int) -> None:
        self.parts = parts
        self._times = [START + 30.0 * number for number in range(moments)]

    def times(self, start: float, end: float) -> list[float]:
        return [at for at in self._times if start <= at <= end]


@pytest.mark.parametrize("nodes", [1, 100, 1000, 10_000])
def test_of_many_nodes_few_moments_are_read_and_always_the_one_that_is_shown(nodes: int) -> None:
    wide = Wide(nodes, 120)
    for number in (0, 7, 60, 119):
        shown = START + 30.0 * number
        found = times_around(wide, shown, 10)
        assert shown in found
        assert len(found) <= min(MOST_FRAMES, max(1, MOST_PARTS // nodes))
    assert times_around(wide, START + 1, 10) == ()


@pytest.mark.parametrize("query", ["", "?at=noon", "?at=40m&minutes=0", "?at=40m&minutes=61", "?at=40m&minutes=x"])
async def test_a_question_without_sense_is_answered_with_what_to_write(server: NodeServer, query: str) -> None:
    answer = await fetch(server, f"/api/v1/recording{query}")
    assert (answer.status, bool(answer.text.strip())) == (400, True)


async def test_of_what_is_not_kept_there_is_no_file(server: NodeServer) -> None:
    answer = await fetch(server, f"/api/v1/recording?at={START - 500}")
    assert (answer.status, "kept is 2023-11-14T22:13:20Z" in answer.text) == (404, True)
    async with serving(StubNode()) as without:
        assert "--history.size" in (await fetch(without, "/api/v1/recording?at=1h")).text
