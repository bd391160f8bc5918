"""A tenant that works until killed and rests only while the driver takes a sample, so that none names it.

`hider.py LOG KIND PIECE REST JITTER SEED`, as `bursts.py`: pieces of PIECE seconds of work, and a rest of REST seconds
around each sample. Twice a second it asks NVML when the last one came, as any container may. Each line of the log is
half a second: begin, end, products done.
"""

import sys
import time
from pathlib import Path

import pynvml
import torch

EVERY = 0.2  # seconds between two samples
ASK = 0.5
BEFORE = 2 / 3  # of the rest lies before the sample


class Samples:
    """When the driver's samples come."""

    def __init__(self) -> None:
        pynvml.nvmlInit()
        self._card = pynvml.nvmlDeviceGetHandleByIndex(0)
        self._stamp = 0.0
        self._asked = 0.0

    def ask(self) -> None:
        """Ask for the time stamp of the newest one, not too often."""
        if time.time() - self._asked < ASK:
            return
        self._asked = time.time()
        try:
            samples = pynvml.nvmlDeviceGetProcessUtilization(self._card, int((self._asked - 1) * 1e6))
        except pynvml.NVMLError:  # nobody was named of late
            return
        self._stamp = max([self._stamp, *(sample.timeStamp / 1e6 for sample in samples)])

    def next(self, now: float) -> float:
        """Return when the next one comes, or one that was due at this moment."""
        return self._stamp + EVERY * -((self._stamp - now) // EVERY) if self._stamp else now


def main() -> None:
    log, _, piece, rest = sys.argv[1:5]
    before, after = BEFORE * float(rest), (1 - BEFORE) * float(rest)
    a, b = (torch.randn(4096, 4096, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    torch.matmul(a, b, out=out)
    torch.cuda.synchronize()
    began = time.time()
    for _ in range(20):
        torch.matmul(a, b, out=out)
    torch.cuda.synchronize()
    steps = max(1, round(float(piece) / ((time.time() - began) / 20)))
    samples, begin, done = Samples(), time.time(), 0
    with Path(log).open("a", buffering=1) as file:
        while True:
            samples.ask()
            now = time.time()
            due = samples.next(now - after)
            if due - before <= now:
                time.sleep(max(0.0, due + after - now))
                continue
            for _ in range(steps):
                torch.matmul(a, b, out=out)
            torch.cuda.synchronize()
            done += steps
            if time.time() - begin >= ASK:
                print(begin, time.time(), done, file=file)
                begin, done = time.time(), 0


main()
