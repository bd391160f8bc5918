"""`podgpu doctor` end to end: over the simulator, over the fake library, and against a real server."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podgpu.cli.doctor import Examination
from podgpu.cli.main import main
from podgpu.model import Cluster, ClusterNode
from tests.doctor.sound_node import HERE, NOW, SOUND, with_down
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import given
from tests.fakenvml.conftest import library
from tests.fakenvml.fake_node import FakeNode, environment, h200
from tests.serve.rig import StubNode, serving

__all__ = ["library"]


def checks(out: str) -> dict[str, Any]:
    return {check["id"]: check for check in json.loads(out)["checks"]}


@pytest.fixture
def fake(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options for one H200 that answers, on a node with nothing else."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    FakeNode([h200(0)]).write(tmp_path / "script")
    for name, value in environment(library, tmp_path / "script").items():
        monkeypatch.setenv(name, value)
    folders = [f"--path.{name}={tmp_path / name}" for name in ("kubelet", "logs")]
    return [f"--nvml.library={library}", *folders, "--kube.api=off", "--node-name=node-7"]


def test_the_simulated_node_has_nothing_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--source=simulator", "--node-name=node-7"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert out.startswith("DEMO  node-7\n")
    assert "PASS  sharing.hami" in out
    assert "\x1b" not in out
    assert out.splitlines()[-1].startswith("0 failed, ")


def test_without_a_driver_it_fails_and_says_what_to_do(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-o", "json", f"--nvml.library={Path(__file__)}"]) == 1
    library = checks(capfd.readouterr().out)["nvml.library"]
    assert library["status"] == "FAIL"
    assert library["detail"].startswith("library_not_found in dlopen")
    assert "nvidia runtime class" in library["advice"]


def test_a_machine_without_kubernetes_passes(fake: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-o", "json", *fake]) == 0
    found = checks(capfd.readouterr().out)
    assert found["nvml.gpus"] | {"status": "PASS", "detail": "1 NVIDIA H200"} == found["nvml.gpus"]
    assert found["kubelet.socket"]["status"] == "SKIP"


def test_a_missing_socket_fails(fake: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kubelet").mkdir()
    assert main(["doctor", "-o", "json", *fake]) == 1
    socket = checks(capfd.readouterr().out)["kubelet.socket"]
    assert socket["detail"].startswith("no_socket in List")
    assert "the directory and not the socket" in socket["advice"]


def test_a_pod_without_the_kubelets_folder_fails(
    fake: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert main(["doctor", "-o", "json", *fake]) == 1
    assert checks(capfd.readouterr().out)["kubelet.socket"]["detail"].startswith("there is no ")


def test_a_pid_namespace_of_its_own_fails(fake: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "proc" / "self"
    own.mkdir(parents=True)
    (own / "status").write_text("Name:\tpodgpu\nNSpid:\t4242\t7\n")
    assert main(["doctor", "-o", "json", *fake, f"--path.procfs={tmp_path / 'proc'}"]) == 1
    found = checks(capfd.readouterr().out)
    assert "hostPID: true" in found["proc.host-pid"]["advice"]
    assert found["proc.hidepid"]["status"] == "WARN"  # no PID 1 there either


async def test_an_id_that_nobody_knows_is_shown(fake: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with kubelet_root() as root:
        async with FakeKubelet(root, sockets=("pod-resources/kubelet.sock",)) as kubelet:
            kubelet.replies["/v1.PodResourcesLister/List"] = Reply(given(b"odd-1", h200(0).uuid.encode()))
            arguments = ["doctor", "-o", "json", *fake, f"--path.kubelet={root}"]
            assert await asyncio.to_thread(main, arguments) == 1
    found = checks(capfd.readouterr().out)
    assert found["kubelet.socket"]["status"] == "PASS"
    assert found["sharing.exclusive"]["detail"] == "1 claim"
    assert found["sharing.unknown-ids"]["detail"] == "n/p: no sharing system knows the device odd-1 of nvidia.com/gpu."
    assert found["pods.source"]["status"] == "FAIL"  # no part lists pods here


@pytest.mark.parametrize(("reason", "code"), [("", 0), ("no_socket", 1)])
async def test_a_running_agent_is_judged_by_its_snapshot(
    reason: str, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    node = StubNode()
    node.current = replace(with_down("podresources", reason) if reason else SOUND, node="far-away")
    async with serving(node) as server:
        url = f"http://127.0.0.1:{server.ports[0]}"
        assert await asyncio.to_thread(main, ["doctor", "--url", url]) == code
    out, err = capfd.readouterr()
    assert err == ""
    assert out.startswith("far-away\n")
    assert ("FAIL  kubelet.socket" in out) == bool(reason)


@pytest.mark.parametrize("arguments", [["--url", "nonsense"], ["-o", "prom"], ["--no-such-option"]])
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *arguments]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1


def test_nodes_of_one_name_in_two_clusters_are_both_judged_by_their_own_snapshots() -> None:
    nodes = tuple(
        ClusterNode(name=f"{cluster}/gpu-1", cluster=cluster, state="fresh", snapshot=replace(SOUND, cards=()))
        for cluster in ("east", "west")
    )
    east, west = replace(SOUND, node="gpu-1"), replace(SOUND, node="gpu-1", version="2")
    examined = {"east/gpu-1": (east, HERE), "west/gpu-1": (west, HERE)}
    examination = Examination(Cluster(taken_at=NOW, version="1", nodes=nodes), examined, of_cluster=True)
    assert [node.snapshot for node in examination.cluster.nodes] == [east, west]
    text = examination.text()
    assert "\neast/gpu-1\n" in text and "\nwest/gpu-1\n" in text
    assert [node["node"] for node in json.loads(examination.json())["nodes"]] == ["east/gpu-1", "west/gpu-1"]
