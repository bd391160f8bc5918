"""Plain manifests for those who do not use Helm: the chart rendered for a few kinds of cluster."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.chart import CHART, PROJECT

FOLDER = PROJECT / "deploy/manifests"
NAMESPACE = "podgpu"
KUBERNETES = "1.36.0"

# One file each. A kind that needs no more than device metrics also runs where pods are restricted.
_RESTRICTED = ("hostPID=false", "hostPaths.podResources=false")
KINDS: Mapping[str, Sequence[str]] = {
    "podgpu.yaml": (),
    "podgpu-podmonitor.yaml": ("podMonitor.enabled=true",),
    "podgpu-dcgm-port.yaml": ("listeners[0].port=9400", "listeners[0].dialect=dcgm", "service.enabled=true"),
    "podgpu-restricted.yaml": _RESTRICTED,
    "podgpu-cluster.yaml": ("cluster.enabled=true",),
}
_NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: {name}
  labels:
    pod-security.kubernetes.io/enforce: {level}
"""
_HEAD = "# Rendered from deploy/helm/podgpu{values} by `make chart`. Do not edit.\n"
_HELMS_OWN = ("helm.sh/chart:", "app.kubernetes.io/managed-by:", "# Source:")


def helm() -> str | None:
    """Where helm is. `go install` puts it below the home folder."""
    return shutil.which("helm") or shutil.which("helm", path=str(Path.home() / "go/bin"))


def text(kind: str) -> str:
    chosen = KINDS[kind]
    arguments = [f"--set={value}" for value in chosen]
    level = "restricted" if chosen == _RESTRICTED else "privileged"
    head = _HEAD.format(values="".join(f" {each}" for each in arguments))
    return head + _NAMESPACE.format(name=NAMESPACE, level=level) + _plain(_template(arguments))


def _template(arguments: Sequence[str]) -> str:
    program = helm()
    if program is None:
        raise FileNotFoundError("helm is not installed; .ci/run shows how to build it")
    command = [program, "template", "podgpu", str(CHART), f"--namespace={NAMESPACE}"]
    done = subprocess.run(
        [*command, f"--kube-version={KUBERNETES}", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def _plain(rendered: str) -> str:
    """Without the marks that would make Helm believe the objects are its own."""
    lines = rendered.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip().startswith(_HELMS_OWN))
