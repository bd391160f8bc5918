"""`podgpu why` against a real server."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from podgpu.cli.main import main
from podgpu.model import Pod, Workload
from tests.ports import quiet_port
from tests.serve.cluster.test_server import CLUSTER, StubFeed
from tests.serve.cluster.test_server import serving as cluster_serving
from tests.serve.rig import StubNode, serving
from tests.views.quirks import NOTEBOOK, SNAPSHOT

Ask = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    async def asked(*arguments: str, twin: bool = False, workload: Workload | None = None) -> tuple[int, str, str]:
        """The workload is the notebook's."""
        node = StubNode()
        pods: tuple[Pod, ...] = (Pod(namespace="other", name="llama-0", uid="twin"),) if twin else ()
        lab = Pod(namespace="team-b", name=NOTEBOOK.pod, uid=NOTEBOOK.pod_uid, workload=workload)
        pods += (lab,) if workload else ()
        node.current = replace(SNAPSHOT, pods=SNAPSHOT.pods + pods)
        async with serving(node) as server:
            url = f"http://127.0.0.1:{server.ports[0]}"
            code = await asyncio.to_thread(main, ["why", *arguments, "--url", url])
        return code, *capsys.readouterr()

    return asked


@pytest.mark.parametrize("arguments", [["ml/llama-0"], ["llama-0", "-n", "ml"], ["llama-0"]])
async def test_a_pod_is_found_by_any_spelling_of_its_name(ask: Ask, arguments: list[str]) -> None:
    code, out, err = await ask(*arguments)
    assert (code, err) == (0, "")
    assert out.startswith("Pod        ml/llama-0\n")
    assert "The books balance." in out


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["ml/lama-0"], "did you mean ml/llama-0?"),
        (["lama-0"], "did you mean ml/llama-0?"),
        (["team-b/llama-0"], "did you mean ml/llama-0"),
        (["ml/qqqqqqqqqqqq"], "ask the agent on the pod's node with --url"),
        (["ml/llama-0", "-n", "team-b"], "give one only"),
    ],
)
async def test_an_unknown_pod_is_one_line_that_helps(ask: Ask, arguments: list[str], advice: str) -> None:
    code, out, err = await ask(*arguments)
    assert (code, out) == (2, "")
    assert advice in err
    assert len(err.splitlines()) == 1


async def test_a_name_of_two_pods_needs_a_namespace(ask: Ask) -> None:
    code, _, err = await ask("llama-0", twin=True)
    assert code == 2
    assert "give one of ml/llama-0, other/llama-0" in err
    assert (await ask("other/llama-0", twin=True))[0] == 0


def test_no_agent_is_one_line_that_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "ml/llama-0", "--url", f"http://127.0.0.1:{quiet_port()}"]) == 2
    err = capsys.readouterr().err
    assert "refuses the connection; is `podgpu agent` or `podgpu cluster` running there?" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "http://", "http://[::1", "http://x:99999"])
def test_a_wrong_address_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "ml/llama-0", "--url", url]) == 2
    assert "is not the address of an agent" in capsys.readouterr().err


def test_an_empty_address_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "ml/llama-0", "--url", ""]) == 2
    assert "--url: the value is empty" in capsys.readouterr().err


def test_without_a_pod_the_mistake_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why"]) == 2
    assert "POD" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["notebook-7c9d8f6b5f"],
        ["team-b/notebook-7c9"],
        ["noteb", "-n", "team-b"],
        ["lab"],
        ["team-b/lab"],
        ["deployment/lab"],
        ["lab", "-n", "team-b"],
    ],
)
async def test_a_pod_is_found_by_its_beginning_and_by_its_workload(ask: Ask, arguments: list[str]) -> None:
    code, out, err = await ask(*arguments, workload=Workload(kind="Deployment", name="lab"))
    assert (code, err) == (0, "")
    assert out.startswith(f"Pod        team-b/{NOTEBOOK.pod}\n")


async def test_a_beginning_of_several_names_lists_them(ask: Ask) -> None:
    code, _, err = await ask("llam", twin=True)
    assert code == 2
    assert "several begin with llam; give one of ml/llama-0, other/llama-0" in err
    assert (await ask("llam", "-n", "other", twin=True))[0] == 0


@pytest.mark.parametrize("arguments", [[""], ["ml/"], ["", "-n", "ml"]])
async def test_a_pod_must_be_named(ask: Ask, arguments: list[str]) -> None:
    code, out, err = await ask(*arguments)
    assert (code, out, err) == (2, "", "podgpu: give the name of a pod; `podgpu top` lists them\n")


async def test_the_evidence_for_a_program(ask: Ask) -> None:
    code, out, err = await ask("llama-0", "-o", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["schema"], found["name"]) == (1, "ml/llama-0")
    [node] = found["nodes"]
    [container] = [each for card in node["cards"] for each in card["containers"] if not each["has_ended"]]
    assert container["container"]["pod"] == "llama-0"
    assert container["tenant"]["booking"]["method"]
    assert container["processes"][0]["holder"]["cgroup"]


async def test_a_beginning_is_enough_across_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    async with cluster_serving(StubFeed(CLUSTER)) as server:
        url = f"http://127.0.0.1:{server.ports[0]}"
        assert await asyncio.to_thread(main, ["why", "trai", "--url", url]) == 0
        assert await asyncio.to_thread(main, ["why", "ser", "-n", "ml", "--url", url]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("ml/train ")
    assert "no GPU of 3 nodes has a pod ml/ser; did you mean web/serve" in err
