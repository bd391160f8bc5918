"""`doctor`, `snapshot`, `top` and `why` over a cluster that the command reads by itself."""

import asyncio
import json
import re
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.cli.main import main
from podgpu.model import Snapshot
from tests.doctor.sound_node import SOUND
from tests.serve.rig import StubNode, serving
from tests.views.quirks import SNAPSHOT


@asynccontextmanager
async def agents(*snapshots: Snapshot) -> AsyncIterator[str]:
    """Serve agents, and yield the option that names them."""
    first, *others = snapshots
    node = StubNode()
    node.current = first
    async with serving(node) as server:
        url = f"http://127.0.0.1:{server.ports[0]}"
        if not others:
            yield f"--cluster.agents={url}"
            return
        async with agents(*others) as more:
            yield f"{more},{url}"


async def run(*arguments: str) -> int:
    return await asyncio.to_thread(main, list(arguments))


BOTH = (replace(SOUND, node="sound"), replace(SNAPSHOT, node="odd"))


async def test_why_finds_the_node_of_a_pod_and_has_its_whole_evidence(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with agents(*BOTH) as cluster:
        assert await run("why", "ml/llama-0", cluster) == 0
    out = capfd.readouterr().out
    assert re.search(r"^Node +odd$", out, re.MULTILINE)
    assert "kubepods" in out  # a view of many nodes has no cgroups


async def test_top_has_the_rows_of_every_node(capfd: pytest.CaptureFixture[str]) -> None:
    async with agents(*BOTH) as cluster:
        assert await run("top", "nodes", "-o", "json", cluster) == 0
    document = json.loads(capfd.readouterr().out)
    assert [row["name"] for row in document["rows"]] == ["odd", "sound"]
    assert document["view"] == "nodes" and document["wrong"]


async def test_doctor_judges_the_cluster_and_every_node(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "bundle.tar.gz"
    async with agents(*BOTH) as cluster:
        assert await run("doctor", cluster, "-o", "json", f"--bundle={bundle}", "--scrub") == 1
        document = json.loads(capfd.readouterr().out)
        assert await run("doctor", cluster, "--node=sound") == 0
    assert {check["id"] for check in document["checks"]} >= {"cluster.nodes", "cluster.versions"}
    assert {node["node"]: node["counts"]["FAIL"] > 0 for node in document["nodes"]} == {
        "sound": False,
        "odd": True,
    }
    assert capfd.readouterr().out.startswith("sound\n")
    assert_scrubbed(bundle)


def assert_scrubbed(bundle: Path) -> None:
    with tarfile.open(bundle) as archive:
        files = {Path(member.name).name: archive.extractfile(member) for member in archive}
        texts = {name: file.read().decode() for name, file in files.items() if file}
    assert texts.keys() == {"findings.json", "snapshots.json", "options.json", "versions.json"}
    options = json.loads(texts["options.json"])
    assert options["cluster.agents"] == "(set)" and set(options.values()) == {"(set)"}
    assert json.loads(texts["snapshots.json"])["nodes"]
    assert not re.search(r"llama|team-b|127\.0\.0\.1|\bodd\b|\bsound\b", "".join(texts.values()))


async def test_a_snapshot_of_a_cluster_needs_the_name_of_a_node(capfd: pytest.CaptureFixture[str]) -> None:
    async with agents(*BOTH) as cluster:
        assert await run("snapshot", cluster) == 2
        assert "there are 2 nodes; choose one with --node" in capfd.readouterr().err
        assert await run("snapshot", cluster, "--node=sound", "-o", "json") == 0
    assert json.loads(capfd.readouterr().out)["node"] == "sound"


@pytest.mark.parametrize("command", ["top", "idle", "snapshot", "doctor"])
async def test_a_node_that_is_not_there_is_a_mistake(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    async with agents(*BOTH) as cluster:
        assert await run(command, cluster, "--node=sond") == 2
    assert capfd.readouterr() == ("", "podgpu: no node 'sond' has GPUs; did you mean sound?\n")


@pytest.mark.parametrize("command", ["snapshot", "doctor"])
def test_a_node_is_chosen_of_a_cluster_only(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--source=simulator", "--node=other"]) == 2
    assert capfd.readouterr().err.startswith("podgpu: --node is for a cluster; ")
