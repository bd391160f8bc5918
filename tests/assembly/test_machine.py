"""Only this module looks at the machine, and only when it is used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podgpu.assembly import machine
from podgpu.assembly.agent import open_attribution, pod_sources
from podgpu.config import Config
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.kube.api import ApiServer
from podgpu.kube.kubelet.pods_api import PodsApi
from podgpu.kube.object_watch import PodWatch

ROOT = Path(__file__).parents[2]

POISONED = """
import os
import pathlib

from podgpu import library
from tests.sources.dcgm.exporter import recorded

snapshot = library.read_page(recorded("gke_mps_vgpu_label_pr432"), node="worker-1")


def looked(*_, **__):
    raise AssertionError("somebody looks at the machine")


class Poison(dict):
    __getitem__ = __contains__ = __iter__ = get = items = keys = looked


os.environ = Poison()
os.uname = os.getenv = os.stat = os.listdir = os.scandir = os.open = looked
pathlib.Path.is_dir = pathlib.Path.is_file = pathlib.Path.exists = pathlib.Path.open = looked

config = library.Config()
rows = library.gpu_metrics(snapshot)
print(config.source, config.node_name, config.path_procfs, len(rows))
"""


def test_a_configuration_and_the_rows_of_a_page_take_no_look_at_the_machine() -> None:
    done = subprocess.run([sys.executable, "-c", POISONED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", "nvml None /proc 2\n")


def test_the_hostname_stands_in_for_the_node_name() -> None:
    assert machine.node_name(load({}, {})) == os.uname().nodename
    assert machine.node_name(load({}, {"NODE_NAME": "worker-1"})) == "worker-1"


@pytest.mark.parametrize("flag", ["procfs", "root"])
def test_a_folder_that_is_not_there_is_named_with_its_flag(flag: str, tmp_path: Path) -> None:
    config = load({f"path_{flag}": [str(tmp_path / "gone")]}, {})
    with pytest.raises(UserError, match=rf"^--path\.{flag}: there is no folder '.*gone'; give the path of one"):
        open_attribution(config)


def test_a_demo_needs_no_folder_of_the_machine(tmp_path: Path) -> None:
    open_attribution(Config(source="simulator", path_procfs=tmp_path / "gone", path_root=tmp_path / "gone"))


def test_what_the_kubelet_left_is_looked_for_in_its_folders(tmp_path: Path) -> None:
    config = Config(path_kubelet=tmp_path / "kubelet", path_logs=tmp_path / "log")
    found = (machine.has_kubelet, machine.has_pods_api, machine.has_pod_logs)
    assert [look(config) for look in found] == [False, False, False]
    (tmp_path / "kubelet/pods-api").mkdir(parents=True)
    (tmp_path / "log/pods").mkdir(parents=True)
    assert [look(config) for look in found] == [True, True, True]


def test_a_ratio_file_in_the_working_directory_is_found_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert machine.ratios(Config()) == ()
    (tmp_path / "gpu_allocation.txt").write_text("2\n")
    (tmp_path / "other.txt").write_text("4\n")
    assert machine.ratios(Config()) == (2.0,)
    assert machine.ratios(load({"sharing_ratio_file": ["other.txt"]}, {})) == (4.0,)


@pytest.mark.parametrize(("text", "reason"), [("two\n", "gpu_allocation.txt, line 1: 'two'"), (None, "Is a directory")])
def test_a_ratio_file_that_nobody_asked_for_stops_no_agent_and_is_named_in_the_log(
    text: str | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A mounted file that is missing on the node becomes a directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "gpu_allocation.txt"
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    assert machine.ratios(Config()) == ()
    (record,) = caplog.records
    assert "gpu_allocation.txt" in str(vars(record)) and reason in str(vars(record))
    with pytest.raises(UserError, match=r"gpu_allocation\.txt"):
        load({"sharing_ratio_file": [str(path)]}, {})


def test_folders_that_may_not_be_entered_are_not_used(tmp_path: Path) -> None:
    """Where the kubelet makes its folder itself, only root may enter it."""
    (tmp_path / "kubelet" / "pods-api").mkdir(parents=True)
    (tmp_path / "kubelet").chmod(0)
    config = Config(path_kubelet=tmp_path / "kubelet", path_logs=tmp_path / "kubelet")
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        assert (machine.has_pods_api(config), machine.has_pod_logs(config)) == (False, False)
    finally:
        os.seteuid(user)
        (tmp_path / "kubelet").chmod(0o700)


@pytest.mark.parametrize(("chosen", "sources"), [("auto", [PodsApi, PodWatch]), ("kubelet", [PodsApi])])
def test_the_kubelet_alone_can_be_asked_for_pods(chosen: str, sources: list[type], tmp_path: Path) -> None:
    (tmp_path / "pods-api").mkdir()
    config = Config(kube_pods=chosen, path_kubelet=tmp_path)
    api = ApiServer("http://127.0.0.1:9")
    assert [type(source) for source in pod_sources(config, api)] == sources
