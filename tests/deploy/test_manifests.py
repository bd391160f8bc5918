import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from podgpu.config import OPTIONS
from tests.deploy.chart import needs_helm
from tools.chart import PROJECT, manifests, privileges
from tools.chart.__main__ import main


@needs_helm
@pytest.mark.parametrize("kind", manifests.KINDS)
def test_a_manifest_is_what_the_chart_renders_now(kind: str) -> None:
    assert (manifests.FOLDER / kind).read_text(encoding="utf-8") == manifests.text(kind), "run make chart"


@pytest.mark.parametrize("kind", manifests.KINDS)
def test_a_manifest_brings_its_namespace_and_no_mark_of_helm(kind: str) -> None:
    text = (manifests.FOLDER / kind).read_text(encoding="utf-8")
    found = [each for each in yaml.safe_load_all(text) if each]
    assert found[0]["kind"] == "Namespace"
    assert "helm.sh" not in text and "managed-by" not in text
    for each in found:
        if each["kind"] != "PodMonitor":
            kubernetes_validate.validate(each, "1.36", strict=True)


def test_the_restricted_manifest_keeps_the_restricted_standard() -> None:
    text = (manifests.FOLDER / "podgpu-restricted.yaml").read_text(encoding="utf-8")
    namespace, *others = [each for each in yaml.safe_load_all(text) if each]
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    (daemonset,) = [each for each in others if each["kind"] == "DaemonSet"]
    pod = daemonset["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert "hostPID" not in pod and container["securityContext"]["runAsNonRoot"] is True
    assert [list(each)[1] for each in pod["volumes"]] == ["configMap", "emptyDir"]
    assert not [port for port in container["ports"] if "hostPort" in port]


def test_the_folder_holds_these_manifests_and_no_other() -> None:
    assert {path.name for path in manifests.FOLDER.iterdir()} == set(manifests.KINDS)


def test_the_schema_and_the_table_are_fresh() -> None:
    assert main(["--check"]) == 0


def test_an_option_that_the_schema_does_not_know_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new = replace(OPTIONS["interval"], flag="--brand.new")
    monkeypatch.setitem(OPTIONS, "brand_new", new)
    assert main(["--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "deploy/helm/podgpu/values.schema.json is stale: run make chart",
        "deploy/helm/podgpu/files/ranges.yaml is stale: run make chart",
    ]


def test_a_changed_privilege_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    changed = tmp_path / "privileges.yaml"
    changed.write_text(privileges.SOURCE.read_text(encoding="utf-8").replace("hostPID", "hostPIDs"))
    monkeypatch.setattr(privileges, "SOURCE", changed)
    assert main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/install.md is stale: run make chart\n"


def test_the_unit_is_one_that_systemd_understands(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze")
    text = (PROJECT / "deploy/systemd/podgpu.service").read_text(encoding="utf-8")
    program = tmp_path / "podgpu"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "podgpu.service"
    unit.write_text(text.replace("/opt/podgpu/bin/podgpu", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_gives_no_capability_and_keeps_the_devices() -> None:
    text = (PROJECT / "deploy/systemd/podgpu.service").read_text(encoding="utf-8")
    settings = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    assert "CapabilityBoundingSet=" in settings and "NoNewPrivileges=yes" in settings
    assert "ProtectSystem=strict" in settings
    assert not [each for each in settings if each.startswith(("PrivateDevices", "ProtectClock", "ProtectProc"))]
