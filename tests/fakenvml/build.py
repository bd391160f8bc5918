"""Compiles the fake library. The compiler runs once for each set of sources and left-out symbols."""

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from fcntl import LOCK_EX, flock
from pathlib import Path

_SOURCES = Path(__file__).parent
_FLAGS = ("-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread")


class BuildError(Exception):
    """The fake library could not be built."""


def build(directory: Path, omit: Sequence[str] = ()) -> Path:
    """The path of a `libnvidia-ml.so.1` under `directory`. An old driver's lacks the symbols in `omit`."""
    target = directory / _fingerprint(omit) / "libnvidia-ml.so.1"
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        flock(lock, LOCK_EX)  # whoever comes second waits, and finds it built
        if not target.exists():
            _make(target, omit)
    return target


def _make(target: Path, omit: Sequence[str]) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise BuildError("gcc is not installed; the tests need it to build the fake NVML library")
    exports = target.parent / "exports.map"
    exports.write_text(_exports(omit))
    _compile(compiler, exports, target)


def _fingerprint(omit: Sequence[str]) -> str:
    digest = hashlib.sha256("\n".join(sorted(omit)).encode())
    for source in sorted(_SOURCES.glob("*.[ch]")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _exports(omit: Sequence[str]) -> str:
    hidden = "".join(f" {name};" for name in sorted(omit))
    return f"{{ global: nvml*; fakenvml_*; local:{hidden} *; }};\n"


def _compile(compiler: str, exports: Path, target: Path) -> None:
    # Built beside its place and renamed, so that a run that was stopped never leaves half a library.
    part = target.with_suffix(".part")
    sources = sorted(str(source) for source in _SOURCES.glob("*.c"))
    linking = (f"-Wl,--version-script={exports}", "-Wl,-soname,libnvidia-ml.so.1", "-lm")
    done = subprocess.run(
        [compiler, *_FLAGS, "-o", str(part), *sources, *linking],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(f"gcc could not build the fake NVML library:\n{done.stderr}")
    part.replace(target)
