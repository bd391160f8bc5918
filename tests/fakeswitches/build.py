"""Compiles the preload library. The compiler runs once for each version of its source."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.fakenvml.build import BuildError

_SOURCE = Path(__file__).parent / "device.c"
_FLAGS = ("-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fno-strict-aliasing")


def build(directory: Path) -> Path:
    target = directory / f"fakeswitches-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]}.so"
    compiler = shutil.which("gcc")
    if target.exists():
        return target
    if compiler is None:
        raise BuildError("gcc is not installed; the tests need it to build the fake device nodes")
    part = target.with_suffix(f".{os.getpid()}")
    command = [compiler, *_FLAGS, "-o", str(part), str(_SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"gcc could not build the fake device nodes:\n{done.stderr}")
    part.replace(target)
    return target
