"""Pods that no kubelet made: a cgroup and a log folder, so that processes on a real card have owners."""

import os
import subprocess
import time
from pathlib import Path
from typing import Self
from uuid import NAMESPACE_OID, uuid5

CGROUPS = Path("/sys/fs/cgroup/kubepods.slice")
NAMESPACE = "bench"


def pod_uid(name: str) -> str:
    return str(uuid5(NAMESPACE_OID, name))


def container_id(name: str) -> str:
    """Of the only container of the pod."""
    return (pod_uid(name).replace("-", "") * 2)[:64]


class MadeUpPod:
    """A pod of one container, `main`. `logs` is where its log folder is made, for its name."""

    def __init__(self, name: str, logs: Path) -> None:
        self.name = name
        self.uid = pod_uid(name)
        (logs / "pods" / f"{NAMESPACE}_{name}_{self.uid}" / "main").mkdir(parents=True)
        pod = f"kubepods-besteffort-pod{self.uid.replace('-', '_')}.slice"
        self._cgroup = CGROUPS / "kubepods-besteffort.slice" / pod / f"cri-containerd-{container_id(name)}.scope"

    def start(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Start a process in the pod."""
        return subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: (self._cgroup / "cgroup.procs").write_text(str(os.getpid())),
        )

    def __enter__(self) -> Self:
        self._cgroup.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(0.2)  # the kernel needs a moment after the last process
        self._cgroup.rmdir()
