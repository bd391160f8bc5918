"""A process that reads the log of context switches on command: `toggle.py`, then lines of `on`, `off` or `pulse`.

Opening a log takes 3 ms, so that tenants can be measured with and without a reader in turns of a second.
"""

import json
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import pynvml

from podgpu.sources.nvml.child import BUSY_SAMPLE_SECONDS
from podgpu.sources.nvml.gpm import BusySampler
from podgpu.sources.nvml.handle import CallTracker, Handle
from podgpu.sources.switches.child import DRAIN_SECONDS
from tests.gpu.switching.listening import LogReader


class Toggle:
    """The process, from outside. Each command is over when it returns."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._said()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=20)

    def say(self, command: str) -> dict[str, Any]:
        """Return what the reader found while it was on, once it is off."""
        assert self._process.stdin
        print(command, file=self._process.stdin, flush=True)
        return self._said()

    def _said(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the reader ended")
        found: dict[str, Any] = json.loads(line)
        return found


class Reading:
    """The process, from inside: a reader and, if asked for, a pulse."""

    def __init__(self, *, with_pulse: bool) -> None:
        self._began, self._cpu = time.monotonic(), time.process_time()
        self._reader = LogReader()
        self._switches = self._lost = 0
        self._pulse = _pulse() if with_pulse else None
        self._drain_due = self._began + DRAIN_SECONDS
        self._sample_due = self._began

    def turn(self) -> float:
        """Do what is due. Return for how long nothing is."""
        now = time.monotonic()
        if self._pulse and now >= self._sample_due:
            self._pulse.sample()
            self._pulse.drain()
            self._sample_due += BUSY_SAMPLE_SECONDS
        if now >= self._drain_due:
            self._answer()
            self._drain_due += DRAIN_SECONDS
        due = min(self._drain_due, self._sample_due) if self._pulse else self._drain_due
        return max(0.0, due - time.monotonic())

    def close(self) -> dict[str, float]:
        self._answer()
        self._reader.close()
        if self._pulse:
            self._pulse.close()
        seconds, cpu = time.monotonic() - self._began, time.process_time() - self._cpu
        return {"seconds": seconds, "cpu": cpu, "records": 2 * self._switches, "lost": self._lost}

    def _answer(self) -> None:
        log, counts = self._reader.answer()
        self._lost += counts["lost_records"] + counts["overflow"]
        if log:
            self._switches += log.switches


def _pulse() -> BusySampler:
    return BusySampler(Handle(pynvml.nvmlDeviceGetHandleByIndex(0), CallTracker()))


def main() -> None:
    pynvml.nvmlInit()
    print("{}", flush=True)
    reading: Reading | None = None
    while True:
        pause = reading.turn() if reading else None
        if not select.select([sys.stdin], [], [], pause)[0]:
            continue
        command = sys.stdin.readline().strip()
        if not command:
            return
        found = reading.close() if reading else {}
        reading = None if command == "off" else Reading(with_pulse=command == "pulse")
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
