"""A node whose driver keeps a log of context switches, played from records."""

import fcntl
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RECORD = struct.Struct("<HHIBBHIIHBBQ")
START, END = 6, 7
CONTROL_BYTES = 4 << 20


def record(
    event: int,
    pid: int,
    stamp: int,
    *,
    sequence: int,
    context: int = 0,
    gi: int = 0xFF,
    ci: int = 0xFF,
    kind: int = 2,
) -> bytes:
    return RECORD.pack(
        kind, 0, 0, event, 0, sequence & 0xFFFF, context or pid & 0xFFFF, pid & 0xFFFFFFFF, 0, gi, ci, stamp
    )


def recorded(found: dict[str, Any], begin_ns: int) -> bytes:
    """Turn a recording of tests/samples into the driver's own records, beginning at a time of your choice."""
    log, at, records = found["switches"], begin_ns, []
    for number, step in enumerate(log["deltas"]):
        at += step * log["unit_ns"]
        who = int(log["whose"][number // 2])
        event = END if number % 2 else START
        records.append(
            record(
                event,
                found["pids"][who],
                at,
                sequence=log["first_seq"] + number,
                context=found["contexts"][who],
            )
        )
    return b"".join(records)


class SwitchNode:
    """The folder that stands for the device nodes. `library` goes into LD_PRELOAD."""

    def __init__(self, folder: Path, library: Path, cards: int = 2) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "nvidiactl").open("wb") as file:
            file.truncate(CONTROL_BYTES)
        for minor in range(cards):
            (folder / f"nvidia{minor}").touch()
        self.environment = {"FAKESWITCHES": str(folder), "LD_PRELOAD": str(library)}

    def script(self, **values: int) -> None:
        text = "".join(f"{key} {value}\n" for key, value in values.items())
        (self.folder / "part").write_text(text)
        (self.folder / "part").replace(self.folder / "script")

    def play(self, records: bytes | Iterable[bytes]) -> None:
        (self.folder / "records").write_bytes(records if isinstance(records, bytes) else b"".join(records))

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def is_bound(self) -> bool:
        """Whether somebody has the log open. The kernel lets go of the lock with the process that holds it."""
        with (self.folder / "bound").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
            return False

    def wait_until_free(self, seconds: float = 60.0) -> bool:
        return self._waited(seconds, is_bound=False)

    def wait_until_bound(self, seconds: float = 60.0) -> bool:
        return self._waited(seconds, is_bound=True)

    def _waited(self, seconds: float, *, is_bound: bool) -> bool:
        deadline = time.monotonic() + seconds
        while self.is_bound() != is_bound and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.is_bound() == is_bound
