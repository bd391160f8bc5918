"""How commands reach the API server of a whole cluster."""

from pathlib import Path

import pytest

from podgpu.assembly.api_server import open_cluster_api
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.kube.api import ApiServer
from podgpu.kube.api.kubeconfig import KubectlApi


@pytest.fixture
def no_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a kubeconfig, on a machine without kubectl."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return tmp_path


def kubeconfig(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "current-context: here\n"
        "contexts: [{name: here, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443'}}]\n"
        "users: [{name: u, user: {token: secret}}]\n"
    )
    return path


def kubectl(home: Path) -> None:
    program = home / "bin/kubectl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)


async def test_kubectl_comes_first(no_kubectl: Path) -> None:
    kubectl(no_kubectl)
    path = kubeconfig(no_kubectl / ".kube/config")
    assert isinstance(open_cluster_api(load({}, {})), KubectlApi)
    assert isinstance(open_cluster_api(load({"kube_kubeconfig": [str(path)]}, {})), KubectlApi)
    assert isinstance(open_cluster_api(load({"kube_context": ["prod"]}, {})), KubectlApi)


async def test_a_given_address_needs_no_kubectl(no_kubectl: Path) -> None:
    kubectl(no_kubectl)
    found = open_cluster_api(load({"kube_api": ["https://10.0.0.1:6443"]}, {}))
    assert isinstance(found, ApiServer) and not isinstance(found, KubectlApi)


async def test_without_kubectl_a_plain_kubeconfig_will_do(no_kubectl: Path) -> None:
    kubeconfig(no_kubectl / ".kube/config")
    assert isinstance(open_cluster_api(load({}, {})), ApiServer)


async def test_without_kubectl_the_variable_names_the_file(no_kubectl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(no_kubectl / "k/mine")))
    assert isinstance(open_cluster_api(load({}, {})), ApiServer)


@pytest.mark.usefixtures("no_kubectl")
async def test_with_neither_there_is_advice() -> None:
    with pytest.raises(UserError, match=r"install kubectl, or give --kube\.kubeconfig"):
        open_cluster_api(load({}, {}))
    with pytest.raises(UserError, match=r"--kube\.api=off leaves no API server to ask"):
        open_cluster_api(load({"kube_api": ["off"]}, {}))


async def test_a_login_that_a_kubeconfig_would_not_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    chosen = {"kube_context": ["east"], "kube_token_file": [str(tmp_path / "token")]}
    with pytest.raises(UserError, match=r"--kube\.token-file goes with --kube\.api=URL"):
        open_cluster_api(load(chosen, {}))
