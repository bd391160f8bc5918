"""An API server that gives no answer is never taken for a cluster in which nobody is idle, nor for this machine."""

import asyncio
from pathlib import Path

import pytest

from podgpu.cli import _target
from podgpu.cli.main import main
from tests.cluster.fleet import Fleet
from tests.cluster.nodes import document, node_name
from tests.fakeapi.server import FakeApi
from tests.patience import PATIENCE
from tests.ports import quiet_port

COMMANDS = {
    "idle": ["idle"],
    "idle as JSON": ["idle", "-o", "json"],
    "top": ["top", "--once"],
    "why": ["why", "ml/train"],
    "record": ["record", "tape", "--for=1s"],
}
REASONS = {401: "unauthorized", 403: "forbidden", 500: "unreachable"}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))


async def said(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    async with asyncio.timeout(PATIENCE):
        code = await asyncio.to_thread(main, list(words))
    return code, *capfd.readouterr()


@pytest.mark.parametrize("status", REASONS)
@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_says_why_there_is_no_answer_and_fails(
    command: str, status: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What listens on this machine is not asked: it may be anybody's."""
    fake = FakeApi()
    fake.refuse(status, times=10_000)
    async with fake, Fleet(1, document) as here:
        monkeypatch.setattr(_target, "HERE", here.urls[0])
        code, out, err = await said(capfd, *COMMANDS[command], f"--kube.api={fake.url}")
        assert not here.requests
    assert (code, out) == (2, "")
    assert err.startswith("podgpu: ") and REASONS[status] in err and err.count("\n") == 1
    assert node_name(0) not in err


async def test_an_api_server_that_cannot_be_reached_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = await said(capfd, "idle", f"--kube.api=http://127.0.0.1:{quiet_port()}")
    assert (code, out) == (2, "")
    assert "unreachable" in err


async def test_a_cluster_of_clusters_of_which_none_answers_is_not_a_cluster_without_idle_pods(
    capfd: pytest.CaptureFixture[str],
) -> None:
    code, out, err = await said(capfd, "idle", f"--cluster.upstreams=east=http://127.0.0.1:{quiet_port()}")
    assert (code, out) == (2, "")
    assert "east: unreachable" in err


async def test_a_cluster_that_answers_and_has_no_gpus_is_one_without_idle_pods(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with FakeApi(lists_of={"/api/v1/nodes": []}) as fake:
        code, _, err = await said(capfd, "idle", f"--kube.api={fake.url}")
    assert (code, err) == (0, "no pod was found that holds a GPU without using it\n")
