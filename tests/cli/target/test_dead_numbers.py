"""`podgpu idle` never says that nobody is idle over numbers that are old, or where nothing is seen."""

import asyncio
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace

from podgpu.cli.main import main
from podgpu.insight import conclude, reconclude
from podgpu.model import Cluster, Fault, PartStatus, Snapshot
from podgpu.views.cluster.json import encode
from tests.doctor.sound_node import SETTINGS, SOUND
from tests.serve.rig import StubNode, serving

DEAD_KUBELET = PartStatus(name="podresources", up=False, fault=Fault(reason="no_socket", detail="there is no socket"))


async def idle(snapshot: Snapshot, **changes: object) -> int:
    node = StubNode()
    node.current = conclude(replace(snapshot, insight=None, **changes), SETTINGS)
    async with serving(node) as server:
        return await asyncio.to_thread(main, ["idle", f"--url=http://127.0.0.1:{server.ports[0]}"])


async def test_nobody_is_idle_on_a_node_that_is_seen(capfd: pytest.CaptureFixture[str]) -> None:
    assert await idle(SOUND, taken_at=time.time()) == 0
    assert capfd.readouterr() == ("", "no pod was found that holds a GPU without using it\n")


@pytest.mark.parametrize(
    ("age", "changes", "words"),
    [
        (7200, {}, "the numbers are 2 h old, or the clocks differ; see podgpu doctor"),
        (0, {"cards": ()}, "who holds the GPUs of 1 node (gpu-node-1) is not known; see podgpu doctor"),
        (0, {"parts": (DEAD_KUBELET,)}, "who holds the GPUs of 1 node (gpu-node-1) is not known; see podgpu doctor"),
    ],
    ids=["old", "no GPU", "no kubelet"],
)
async def test_what_is_not_seen_is_said_and_is_no_success(
    age: int, changes: dict[str, object], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await idle(SOUND, taken_at=time.time() - age, **changes) == 1
    assert words in capfd.readouterr().err


async def test_a_cluster_whose_reader_sees_no_node_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    dead = PartStatus(name="nodes", up=False, fault=Fault(reason="unreachable", detail="no answer"))
    cluster = reconclude(Cluster(taken_at=time.time(), version="1", parts=(dead,)), SETTINGS)

    async def document(request: web.Request) -> web.Response:
        return web.Response(body=encode(cluster))

    app = web.Application()
    app.router.add_get("/api/v1/cluster", document)
    async with TestServer(app) as server:
        assert await asyncio.to_thread(main, ["idle", f"--url=http://127.0.0.1:{server.port}"]) == 1
    assert "no node was seen, since nodes does not work; see podgpu doctor" in capfd.readouterr().err
