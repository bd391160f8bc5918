"""Runs a command beside a real Kubernetes of one node, and removes the cluster again.

python -m tests.kubernetes kubectl get nodes
python -m tests.kubernetes bash

The command runs in the namespaces of the node. It has KUBECONFIG, and kubectl, helm and ctr on its PATH.
"""

import signal
import sys
import tempfile
from collections.abc import Sequence

from tests.kubernetes.cluster import machine, programs
from tests.kubernetes.cluster.node import IMAGE


def main(command: Sequence[str]) -> int:
    if not IMAGE.exists():
        sys.stderr.write("skipped: needs the image: run make image\n")
        return 0
    return run_beside_cluster(command)


def run_beside_cluster(command: Sequence[str]) -> int:
    if reason := programs.missing():
        sys.stderr.write(f"skipped: {reason}\n")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is removed too
    with tempfile.TemporaryDirectory(prefix="podgpu-kubernetes-") as folder:
        return machine.run_apart("tests.kubernetes.cluster", [folder, *command])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
