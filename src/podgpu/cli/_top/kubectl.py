"""kubectl for the chosen pod: its logs, its description, a shell in it."""

import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass

from podgpu.errors import UserError
from podgpu.insight.rows import SummaryItem
from podgpu.insight.tenants import is_outsider
from podgpu.model import ContainerRef
from podgpu.views.text import line

PATIENCE_SECONDS = 15.0
_POD_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_SHELL = "command -v bash >/dev/null && exec bash || exec sh"
# What the API server shows of a static pod has a UID of its own, and the kubelet's beside it.
_UIDS = r"-o=jsonpath={.metadata.uid} {.metadata.annotations.kubernetes\.io/config\.mirror}"
LOGS, DESCRIBE, EXEC = "l", "d", "e"
KEYS = {
    LOGS: ("logs", ("--tail=200", "--follow"), ()),
    DESCRIBE: ("describe pod", (), ()),
    EXEC: ("exec", ("--stdin", "--tty"), ("--", "sh", "-c", _SHELL)),
}


@dataclass(frozen=True, slots=True)
class Kubectl:
    """Calls it with the cluster that the user chose, or else with kubectl's own."""

    kubeconfig: str = ""
    context: str = ""

    def command(self, key: str, container: ContainerRef) -> list[str]:
        verb, flags, after = KEYS[key]
        of = () if key == DESCRIBE else (f"--container={container.container}",)
        return [*self._call(container), *verb.split(), container.pod, *of, *flags, *after]

    def check(self, container: ContainerRef) -> None:
        """Raise UserError unless kubectl's pod of that name is this very pod: the cluster may be another."""
        command = [*self._call(container), "get", "pod", container.pod, _UIDS]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        except FileNotFoundError:
            raise UserError("kubectl is not installed here; install it, or run top where it is") from None
        except subprocess.TimeoutExpired:
            raise UserError("kubectl does not answer; check it with `kubectl get pods`") from None
        if done.returncode:
            said = done.stderr.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
            raise UserError(f"kubectl cannot read the pod: {line(said)}; choose its cluster with --context")
        if container.pod_uid and container.pod_uid not in done.stdout.split():
            name = f"{container.namespace}/{container.pod}"
            raise UserError(f"kubectl's {name} is another pod (its UID differs); choose the cluster with --context")

    def _call(self, container: ContainerRef) -> list[str]:
        where = [f"--kubeconfig={self.kubeconfig}"] * bool(self.kubeconfig)
        where += [f"--context={self.context}"] * bool(self.context)
        return ["kubectl", *where, f"--namespace={container.namespace}"]


def chosen_container(key: str, view: str, entry: SummaryItem | None) -> ContainerRef:
    """Return the first container of the chosen pod that is on a GPU. Raise UserError if no pod is chosen."""
    if view != "pods" or entry is None:
        raise UserError("kubectl is called for a pod: press 1, then choose one")
    if entry.places:
        container = entry.places[0].tenant.container
    elif key == DESCRIBE:
        container = ContainerRef(entry.row.namespace, entry.row.name, "")
    else:
        raise UserError("the pod is on no node yet: d describes it, and says why")
    if is_outsider(container):
        raise UserError(f"{line(container.container)} is outside Kubernetes, so kubectl does not know it")
    if not _POD_NAME.fullmatch(container.pod):  # it would be an option of kubectl
        raise UserError(f"{line(container.pod)} is no name of a pod")
    return container


def call(kubectl: Kubectl, key: str, container: ContainerRef) -> None:
    """Run it on the terminal, and wait until the user has read what it wrote. Ctrl-C ends it alone."""
    command = kubectl.command(key, container)
    print(f"$ {shlex.join(command)}", flush=True)
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        kubectl.check(container)
        code = subprocess.run(command, check=False).returncode
        print(f"kubectl ended with {code}.", end="" if code else "\r")
    except UserError as error:
        print(f"podgpu: {error}.", end="")
    finally:
        print("  Enter goes back to podgpu top. ", end="", flush=True)
        sys.stdin.readline()
        signal.signal(signal.SIGINT, before)
