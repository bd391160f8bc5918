"""A reader of the driver's log of context switches in a process of its own: `listening.py SECONDS FILE`."""

import ctypes
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from podgpu.model import Slice, SwitchLog
from podgpu.sources.switches.child import CardLogReader
from podgpu.sources.switches.slices import CardRecords, SliceBuilder

Check = tuple[str, str, bool | None]  # None: a figure to read, neither passed nor failed

MINOR = int(os.environ.get("MINOR", "0"))
CAPABILITIES = 64
_PR_CAPBSET_DROP = 24


@dataclass
class Heard:
    """What a reader in a process of its own heard."""

    slices: list[Slice] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    switches: int = 0
    switching_ns: int = 0
    covered_ns: int = 0
    cpu_ms: float = 0.0  # for each second
    open_ms: float = 0.0

    @property
    def resident_ns(self) -> int:
        return sum(part.end_ns - part.begin_ns for part in self.slices)

    @property
    def records_per_second(self) -> float:
        return 2e9 * self.switches / self.covered_ns if self.covered_ns else 0.0

    def by_pid(self) -> Counter[int]:
        found: Counter[int] = Counter()
        for part in self.slices:
            found[part.pid] += part.end_ns - part.begin_ns
        return found


class Listening:
    """A reader at work. `heard` is there once it has ended."""

    def __init__(self, seconds: float, *, capable: bool = True, beside: bool = False) -> None:
        """`beside` another reader: without the lock by which podgpu's readers keep each other out."""
        self._file = Path(tempfile.mkstemp(suffix=".json")[1])
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(seconds), str(self._file), *(["beside"] if beside else [])],
            stderr=subprocess.PIPE,
            preexec_fn=None if capable else without_capabilities,
        )

    def heard(self) -> Heard:
        _, errors = self._process.communicate(timeout=60)
        if self._process.returncode:
            raise RuntimeError(f"the reader failed: {errors.decode()[-600:]}")
        found = json.loads(self._file.read_text())
        self._file.unlink()
        found["slices"] = [Slice(*fields) for fields in found["slices"]]
        found["counts"] = Counter(found["counts"])
        return Heard(**found)


class LogReader:
    """A card's log, read and turned into slices in this process."""

    def __init__(self) -> None:
        self._reader = CardLogReader(MINOR)
        self._builder: SliceBuilder | None = None

    def answer(self) -> tuple[SwitchLog | None, Counter[str]]:
        """Return the log since the last time, and what was odd in it."""
        found = msgspec.convert(self._reader.answer(), CardRecords)
        builder = self._builder = self._builder or SliceBuilder(found.began_ns)
        log, counts = builder.log(found), Counter(builder.counts)
        builder.counts.clear()
        return log, counts

    def close(self) -> None:
        self._reader.close()


def read(seconds: float, path: str) -> None:
    """Listen in this process: once a second, as an agent at an interval of one second does."""
    began = time.monotonic()
    reader = LogReader()
    heard = Heard(open_ms=1000 * (time.monotonic() - began))
    cpu, deadline = time.process_time(), time.monotonic() + seconds
    kept: list[tuple[int, int, int]] = []
    while time.monotonic() < deadline:
        time.sleep(1.0)
        log, counts = reader.answer()
        heard.counts.update(counts)
        if log:
            heard.covered_ns += log.end_ns - log.begin_ns
            heard.lost += len(log.lost)
            heard.switches += log.switches
            heard.switching_ns += log.switching_ns
            kept += [(part.pid, part.begin_ns, part.end_ns) for part in log.slices]
    heard.cpu_ms = 1000 * (time.process_time() - cpu) / (time.monotonic() - deadline + seconds)
    reader.close()
    Path(path).write_text(json.dumps({**vars(heard), "slices": kept}))


def without_capabilities() -> None:
    """Root that is started after this has no capability left."""
    library = ctypes.CDLL(None)
    for number in range(CAPABILITIES):
        library.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)


if __name__ == "__main__":
    if "beside" in sys.argv:
        fcntl.flock = lambda *_: None
    read(float(sys.argv[1]), sys.argv[2])
