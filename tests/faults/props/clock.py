"""A clock that only one program sees, with all that it starts, and that the test sets."""

import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")
_FLAGS = ("-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


class Clock:
    """What is started with `variables` in its environment has it."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("gcc")
        assert compiler, "gcc is not installed; the tests need it to build the fake NVML library too"
        library = folder / "clock.so"
        subprocess.run([compiler, *_FLAGS, "-o", str(library), str(_SOURCE)], check=True)
        self._file = folder / "clock"
        self._file.write_bytes(bytes(16))
        self.variables = {"LD_PRELOAD": str(library), "FAKECLOCK": str(self._file)}

    def set(self, *, wall: float = 0.0, boot: float = 0.0) -> None:
        """Let the wall clock, and the time since boot, be so many seconds ahead. The file is mapped: write in place."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("dd", wall, boot))
