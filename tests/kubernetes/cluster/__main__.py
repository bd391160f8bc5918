"""The whole cluster, for as long as a command runs. Started in namespaces of its own, as their first process."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.kubernetes.cluster import machine, programs
from tests.kubernetes.cluster.control_plane import ADDRESS, NODE, ControlPlane
from tests.kubernetes.cluster.node import IMAGE, Node


def main(folder: Path, command: Sequence[str]) -> int:
    machine.furnish(folder, ADDRESS)
    started = programs.Programs(Path("/var/log"))
    plane = ControlPlane(folder, started)
    os.environ["KUBECONFIG"] = str(plane.kubeconfig("admin"))
    plane.start()
    Node(folder, started, plane).start(*(image for image in [IMAGE] if image.exists()))
    programs.run("kubectl", "wait", "--for=create", f"node/{NODE}", "--timeout=60s")
    programs.run("kubectl", "wait", "--for=condition=Ready", f"node/{NODE}", "--timeout=60s")
    return subprocess.run(command, check=False, env=programs.environment()).returncode


if __name__ == "__main__":
    if os.getpid() != 1:
        sys.exit("run python -m tests.kubernetes: this would change the machine itself")
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
