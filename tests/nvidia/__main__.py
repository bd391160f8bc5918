"""Checks podgpu beside NVIDIA's own device plugin and DRA driver: python -m tests.nvidia PLUGIN DRIVER [PYTEST'S WORDS]

Both run over the fake driver library on a real node. Without them nothing can be tried.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.kubernetes.__main__ import run_beside_cluster
from tests.nvidia.programs import VARIABLES


def main(plugin: str, driver: str, words: Sequence[str]) -> int:
    missing = [name for name, path in (("PLUGIN", plugin), ("DRIVER", driver)) if not path]
    if missing:
        usage = "make test-nvidia PLUGIN=PATH DRIVER=PATH, with paths of nvidia-device-plugin and gpu-kubelet-plugin"
        sys.stderr.write(f"skipped: {' and '.join(missing)} not given: {usage}\n")
        return 0
    for name, path in zip(VARIABLES, (plugin, driver), strict=True):
        if not os.access(path, os.X_OK):
            sys.stderr.write(f"{path} is no program. Give the path of the one that you built from NVIDIA's source.\n")
            return 2
        os.environ[name] = str(Path(path).resolve())
    options = ["-q", "-rs", "-p", "no:cacheprovider", "-o", "python_files=check_*.py"]
    return run_beside_cluster([sys.executable, "-m", "pytest", *options, "tests/nvidia", *words])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
