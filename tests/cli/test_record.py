"""`podgpu record`, and what it wrote played back."""

import asyncio
import resource
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.agent.playback import Playback
from podgpu.assembly.agent import open_agent
from podgpu.cli.main import main
from podgpu.cli.record import RecordingFile
from podgpu.config import Config
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.model import of_one
from podgpu.model.frames import frame
from podgpu.views.cluster.json import encode
from podgpu.views.page import html
from tests.patience import PATIENCE, until
from tests.serve.rig import StubNode, serving
from tests.views.quirks import SNAPSHOT


async def record(file: Path, *options: str) -> int:
    """Record an agent whose snapshot changes once."""
    node = StubNode()
    node.current = replace(SNAPSHOT, interval_seconds=0.1)

    async with serving(node) as server:
        url = f"http://127.0.0.1:{server.ports[0]}"
        arguments = ["record", str(file), "--url", url, "--every=100ms", "--for=1s", *options]
        recording = asyncio.create_task(asyncio.to_thread(main, arguments))
        await until(lambda: recording.done() or (file.exists() and file.stat().st_size))
        node.current = replace(node.current, taken_at=SNAPSHOT.taken_at + 5, node="later")
        return await recording


def replay(file: Path, **more: str) -> Config:
    return load({"source": ["replay"], "replay_file": [str(file)]}, {f"PODGPU_{k}": v for k, v in more.items()})


async def test_a_recording_is_looked_at_as_if_it_were_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "incident"
    assert await record(file) == 0
    assert "2 snapshots" in capsys.readouterr().err
    played = ["--source=replay", f"--replay.file={file}"]
    assert await asyncio.to_thread(main, ["why", "ml/llama-0", *played]) == 0
    out = capsys.readouterr().out
    assert "\nREPLAY     as it was at " in out and "The books balance." in out
    assert await asyncio.to_thread(main, ["top", "nodes", "-o", "csv", "--no-headers", played[1]]) == 0
    assert capsys.readouterr().out.startswith(SNAPSHOT.node)


async def test_a_recording_is_inspected_without_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await record(tmp_path / "incident")
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["inspect", "-o", "json", f"--replay.file={tmp_path / 'incident'}"]) == 0
    assert f'"{SNAPSHOT.node}"' in capsys.readouterr().out


async def test_the_page_of_a_replay_says_so_and_when_it_was_recorded(tmp_path: Path) -> None:
    await record(tmp_path / "incident")
    agent = open_agent(replay(tmp_path / "incident", REPLAY_SPEED="1000"))
    assert isinstance(agent, Playback)
    page = html(agent.snapshot, 1e6).decode()
    assert "<b>REPLAY</b> Recorded at " in page and "<title>REPLAY " in page
    assert "Stale" not in page
    playing = asyncio.create_task(agent.run())
    later = await asyncio.wait_for(agent.changed(agent.snapshot), PATIENCE)
    playing.cancel()
    assert later.taken_at == SNAPSHOT.taken_at + 5


async def test_a_scrubbed_recording_names_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "incident"
    await record(file, "--scrub")
    capsys.readouterr()
    assert main(["top", "-o", "json", "--source=replay", f"--replay.file={file}"]) == 0
    out = capsys.readouterr().out
    assert "llama" not in out and '"pod-' in out


async def test_the_file_ends_before_it_grows_too_large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await record(tmp_path / "small", "--max-size=5KiB")
    assert (tmp_path / "small").stat().st_size <= 5 << 10
    assert "1 snapshot, " in (err := capsys.readouterr().err) and "as large as it may be" in err


def test_a_recording_replaces_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def recorded() -> int:
        return await record(tmp_path / "there")

    (tmp_path / "there").write_text("precious")
    assert asyncio.run(recorded()) == 2
    assert "exists; choose another name" in capsys.readouterr().err
    assert (tmp_path / "there").read_text() == "precious"


@pytest.mark.parametrize("option", ["--for=soon", "--max-size=1TiB", "--every=0s"])
def test_a_wrong_bound_is_named(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", str(tmp_path / "x"), option, "--url", "http://127.0.0.1:9"]) == 2
    assert capsys.readouterr().err.startswith(f"podgpu: {option.partition('=')[0]}: ")


def test_a_full_disk_is_named_and_what_was_recorded_stays_readable(tmp_path: Path) -> None:
    file = tmp_path / "incident"
    cluster = of_one(SNAPSHOT)
    size = len(frame(cluster.taken_at, (encode(cluster),)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with RecordingFile(file, 1 << 30, is_scrubbed=False) as recording:
        recording.add(cluster)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * size, before[1]))
        try:
            with pytest.raises(UserError, match="File too large; the 1 snapshot in it"):
                recording.add(cluster)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert main(["top", "-o", "json", "--source=replay", f"--replay.file={file}"]) == 0
