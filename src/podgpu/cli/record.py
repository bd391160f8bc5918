import sys
import time
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import Self

from podgpu.cli._commands import argument_type
from podgpu.cli._target import TARGET_OPTIONS, Target, open_target
from podgpu.cli._target.progress import show_progress
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Cluster
from podgpu.model.frames import MAGIC, frame
from podgpu.numbers import bytes_on_disk, count, duration
from podgpu.option import value
from podgpu.views.cluster.json import encode

HELP = "Write snapshots to a file, for later viewing."
OPTIONS = TARGET_OPTIONS

LONGEST, LARGEST, SOONEST = "1h", "256MiB", "1s"
_WAIT_SECONDS = 1.0


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the recording; there must be no such file yet")
    parser.add_argument(
        "--for",
        dest="length",
        metavar="DURATION",
        type=argument_type(value.duration("100ms", "168h")),
        default=LONGEST,
        help=f"how long to record; default {LONGEST}",
    )
    parser.add_argument(
        "--max-size",
        metavar="SIZE",
        type=argument_type(value.size("4KiB", "64GiB")),
        default=LARGEST,
        help=f"of the file; default {LARGEST}",
    )
    parser.add_argument(
        "--every",
        metavar="DURATION",
        type=argument_type(value.duration("100ms", "1h")),
        default=SOONEST,
        help=f"the least time between two snapshots; default {SOONEST}, and never more often than they change",
    )
    parser.add_argument(
        "--scrub", action="store_true", help="replace the names of nodes, pods, users and GPUs by others"
    )


def run(config: Config, arguments: Namespace) -> int:
    with open_target(config) as target:
        with RecordingFile(Path(arguments.file), arguments.max_size, is_scrubbed=arguments.scrub) as file:
            try:
                _record(target, file, arguments.length, arguments.every)
            except KeyboardInterrupt:
                file.ended = "stopped"
        print(f"{arguments.file}: {file.summary}; {file.ended}", file=sys.stderr)
    return 0


def _record(target: Target, file: "RecordingFile", length: float, every: float) -> None:
    until = time.monotonic() + length
    seen = target.cluster
    while file.add(seen):
        due = time.monotonic() + every
        newest = seen
        while newest is seen or time.monotonic() < due:
            if (left := until - time.monotonic()) <= 0:
                return
            time.sleep(min(max(due - time.monotonic(), 0.0), _WAIT_SECONDS, left))
            newest = target.changed(seen, min(_WAIT_SECONDS, left))
            file.show_progress()
        seen = newest


class RecordingFile:
    """Each snapshot is written whole, so that what was recorded stays readable whatever happens."""

    def __init__(self, path: Path, most: int, *, is_scrubbed: bool) -> None:
        from secrets import token_bytes

        from podgpu.views.cluster.scrub import Scrubber

        self.ended = "the time is up"
        self._path = path
        self._most = most
        self._scrubber = Scrubber(token_bytes(16)) if is_scrubbed else None
        self._count = self._bytes = 0
        self._begun = time.monotonic()
        try:
            self._file = path.open("xb")
        except FileExistsError:
            raise UserError(f"{path} exists; choose another name, a recording replaces no file") from None
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}; choose another place") from None

    def __enter__(self) -> Self:
        self._write(MAGIC)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # of a write that failed already
            self._file.close()
        show_progress("")

    @property
    def summary(self) -> str:
        return f"{count(self._count, 'snapshot')}, {bytes_on_disk(self._bytes)}"

    def add(self, cluster: Cluster) -> bool:
        """Write a snapshot. Return False if there is no room for it."""
        document = encode(self._scrubber.scrubbed(cluster) if self._scrubber else cluster)
        data = frame(cluster.taken_at, (document,))
        if self._bytes + len(data) > self._most:
            self.ended = "the file is as large as it may be"
            return False
        self._write(data)
        self._count += 1
        self.show_progress()
        return True

    def show_progress(self) -> None:
        lasted = duration(time.monotonic() - self._begun)
        show_progress(f"recording: {self.summary}, {lasted}; Ctrl-C ends it")

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            kept = f"the {count(self._count, 'snapshot')} in it can be replayed"
            raise UserError(f"cannot write {self._path}: {error.strerror}; {kept}") from None
        self._bytes += len(data)
