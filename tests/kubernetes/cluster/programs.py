"""Where the programs of a cluster are, and how one is started and stopped."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

HOME = Path(os.environ.get("PODGPU_KUBERNETES", Path.home() / ".cache" / "podgpu-kubernetes"))
BUILT = (
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
)  # fmt: skip
PACKAGED = {"containerd": "containerd", "ctr": "containerd", "runc": "runc", "openssl": "openssl"} | {
    "iptables": "iptables",
    "unshare": "util-linux",
    "ip": "iproute2",
    "gcc": "gcc",
}
PLUGINS = Path("/usr/lib/cni")
PATH = os.pathsep.join([str(HOME / "bin"), str(Path.home() / "go/bin"), os.environ.get("PATH", ""), "/usr/sbin"])
_START_SECONDS = 120.0
_STOP_SECONDS = 20.0


def missing() -> str:
    """Return why no cluster can be started here; empty if it can."""
    if os.geteuid() != 0:
        return "needs root, for namespaces and containers"
    unbuilt = [each for each in BUILT if not (HOME / "bin" / each).exists()]
    if unbuilt:
        return f"needs {', '.join(unbuilt)}: run make kubernetes-tools"
    packages = {package for name, package in PACKAGED.items() if not shutil.which(name, path=PATH)}
    if not PLUGINS.exists():
        packages.add("containernetworking-plugins")
    if packages:
        return f"needs Debian's {', '.join(sorted(packages))}"
    return "" if shutil.which("helm", path=PATH) else "needs helm; .ci/run builds it"


class NotReady(Exception):
    """A program ended, or did not get ready in time. Says where its log is."""


@dataclass
class Programs:
    """Those that were started, with a log each. They are stopped in the opposite order."""

    logs: Path
    started: list[tuple[str, "subprocess.Popen[bytes]"]] = field(default_factory=list)

    def start(self, name: str, *words: str, ready: Callable[[], bool]) -> None:
        log = self.logs / f"{name}.log"
        with log.open("ab") as output:
            command = [str(shutil.which(name, path=PATH)), *words]
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment())
        self.started.append((name, process))
        deadline = monotonic() + _START_SECONDS
        while not ready():
            if process.poll() is not None or monotonic() > deadline:
                last = log.read_text(errors="replace")[-2000:]
                raise NotReady(f"{name} is not ready; its log is {log}, and ends with:\n{last}")
            sleep(0.2)

    def stop(self, name: str) -> None:
        for each in [each for each in self.started if each[0] == name]:
            _end(each[1])
            self.started.remove(each)

    def stop_all(self) -> None:
        for name, _ in reversed(self.started.copy()):
            self.stop(name)


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": PATH}


def run(*words: str, stdin: str | None = None) -> str:
    """Run a program to its end and return what it printed. It must succeed."""
    done = subprocess.run(words, input=stdin, text=True, capture_output=True, check=False, env=environment())
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
