"""What keeps the cluster apart from the machine: namespaces, folders and a network of its own."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.kubernetes.cluster.programs import environment, run

# Folders that the programs use by these names. In the cluster's mount namespace each is a folder of its own.
FOLDERS = ("/run", "/etc/cni", "/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log")
# The kubelet sets these for the whole machine.
_KERNEL = (
    "vm/overcommit_memory",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
)
_SETTINGS, _CGROUPS = Path("/proc/sys"), Path("/sys/fs/cgroup")


def run_apart(module: str, words: Sequence[str]) -> int:
    """Run a module in namespaces of its own. Whatever it starts and mounts ends with it."""
    namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = ["unshare", *namespaces, sys.executable, "-m", module, *words]
    with _put_back():
        return subprocess.run(command, check=False, env=environment()).returncode


def furnish(folder: Path, address: str) -> None:
    """Give the namespaces their folders, below this one, and a network with the node's address."""
    for path in FOLDERS:
        own = folder / path.strip("/")
        own.mkdir(parents=True)
        Path(path).mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", str(own), path)
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "node0", "type", "bridge")
    run("ip", "addr", "add", f"{address}/24", "dev", "node0")
    run("ip", "link", "set", "node0", "up")
    run("ip", "route", "add", "default", "via", address)


@contextmanager
def _put_back() -> Iterator[None]:
    kept = {name: (_SETTINGS / name).read_text() for name in _KERNEL}
    try:
        yield
    finally:
        for name, value in kept.items():
            (_SETTINGS / name).write_text(value)
        _remove_cgroups()


def _remove_cgroups() -> None:
    for top in (*_CGROUPS.glob("kubepods"), *_CGROUPS.glob("*/kubepods")):
        for path in sorted((top, *top.glob("**/")), key=lambda each: len(each.parts), reverse=True):
            with suppress(OSError):
                path.rmdir()
