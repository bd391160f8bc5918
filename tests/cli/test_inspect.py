"""`podgpu inspect` as a user runs it: through a real kubectl, in front of the fake API server."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from podgpu.cli.main import main
from tests.fakeapi.kubeconfig import kubeconfig, kubectl
from tests.fakeapi.server import FakeApi, Seen
from tests.patience import PATIENCE
from tests.views.cluster.seed003 import cluster, node, pod, seed
from tests.views.cluster.test_inspect import PUBLISHED

Inspect = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def inspect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Inspect:
    """Run the command beside the server, and return its exit code and what it printed."""
    kubectl()

    async def run(fake: FakeApi, *words: str) -> tuple[int, str, str]:
        fake.objects["/version"] = {"major": "1"}
        async with fake, asyncio.timeout(PATIENCE):
            config = kubeconfig(tmp_path, fake)
            code = await asyncio.to_thread(main, ["inspect", f"--kubeconfig={config}", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


async def test_the_published_table_comes_out_to_the_byte(inspect: Inspect) -> None:
    assert await inspect(seed()) == (0, PUBLISHED, "")


async def test_one_node_in_detail_or_for_a_program(inspect: Inspect) -> None:
    nodes = [node("n1", 22, 2), node("n2", 11, 1)]
    pods = [pod("a", "n1", 4, 1, of_card=11), pod("b", "n2", 1, 0, of_card=11)]
    code, out, _ = await inspect(cluster(nodes, pods), "-d", "n1", "--context=other")
    assert code == 0
    assert "NAME:       n1" in out and "n2" not in out
    code, out, _ = await inspect(cluster(nodes, pods), "-o", "json", "n2")
    assert json.loads(out) == {
        "schema": 1,
        "nodes": [
            {
                "name": "n2",
                "address": "n2",
                "cards": [
                    {
                        "index": 0,
                        "total_bytes": 11 << 30,
                        "pods": [{"namespace": "xmcvt", "name": "b", "uid": "uid-b", "allocated_bytes": 1 << 30}],
                    }
                ],
            }
        ],
    }


async def test_a_missing_right_is_said_beside_what_can_be_shown(inspect: Inspect) -> None:
    def is_nodes(seen: Seen) -> bool:
        return seen.path == "/api/v1/nodes"

    fake = seed()
    fake.refuse(403, times=9, wanted=is_nodes)
    code, out, err = await inspect(fake)
    assert code == 1
    assert "192.168.3.4" in out
    assert "add this rule to a ClusterRole of the account" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gpu-node-2"], "podgpu: no node 'gpu-node-2' has GPUs; did you mean gpu-node-1?\n"),
        (["--context=prod"], "podgpu: there is no context 'prod'; choose one with --context: other, real\n"),
    ],
)
async def test_a_mistake_is_one_line(inspect: Inspect, words: list[str], message: str) -> None:
    assert await inspect(cluster([node("gpu-node-1", 11, 1)], []), *words) == (2, "", message)


async def test_without_kubectl_a_login_by_a_plugin_is_refused_with_what_to_do(
    inspect: Inspect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    code, _, err = await inspect(seed())
    assert code == 2
    assert "exec is not supported" in err
    assert "install kubectl" in err
