"""Options about sharing have an effect on the claims."""

import asyncio
import json
from pathlib import Path

import pytest

from podgpu.cli.main import main
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import given
from tests.fakenvml.conftest import library
from tests.fakenvml.fake_node import FakeNode, environment, h200

__all__ = ["library"]


async def test_the_ratio_file_says_what_a_virtual_gpu_is_of_a_card(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    FakeNode([h200(0)]).write(tmp_path / "script")
    for name, value in environment(library, tmp_path / "script").items():
        monkeypatch.setenv(name, value)
    ratio = tmp_path / "gpu_allocation.txt"
    ratio.write_text("4\n")
    options = [f"--nvml.library={library}", f"--sharing.ratio-file={ratio}", f"--path.logs={tmp_path}"]
    with kubelet_root() as root:
        async with FakeKubelet(root, sockets=("pod-resources/kubelet.sock",)) as kubelet:
            kubelet.replies["/v1.PodResourcesLister/List"] = Reply(given(f"{h200(0).uuid}-0".encode()))
            arguments = ["snapshot", "-o", "json", "--kube.api=off", f"--path.kubelet={root}", *options]
            assert await asyncio.to_thread(main, arguments) == 0
    (card,) = json.loads(capfd.readouterr().out)["cards"]
    (tenant,) = card["tenants"]
    (claim,) = tenant["claims"]
    assert (claim["system"], claim["share"], claim["container"]["pod"]) == ("ratio", 0.25, "p")
