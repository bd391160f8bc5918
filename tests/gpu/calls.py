"""What each of the sampler's calls costs on a real GPU: CPU time a second at an interval of 1 s, the costliest first.

Pass the seconds to measure. Other programs decide what runs on the card meanwhile.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import pynvml  # noqa: E402 - the path is set above

from podgpu.sources.nvml.handle import CallTracker  # noqa: E402 - as above
from podgpu.sources.nvml.reader import GpuReader  # noqa: E402 - as above

INTERVAL = 1.0
COSTLIEST = 14


class TimedTracker(CallTracker):
    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[str, float] = {}
        self.calls: Counter[str] = Counter()

    def run(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        title = " ".join([name, *(str(arg) for arg in args if isinstance(arg, int) and arg < 1 << 16)])
        began = time.thread_time()
        try:
            return super().run(name, function, *args)
        finally:
            spent = time.thread_time() - began
            self.seconds[title] = self.seconds.get(title, 0.0) + spent
            self.calls[title] += 1


def main() -> None:
    seconds = float(sys.argv[1])
    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    tracker = TimedTracker()
    reader = GpuReader(card, pynvml.nvmlDeviceGetUUID(card), 0, tracker)
    reader.read()
    tracker.seconds.clear()
    tracker.calls.clear()
    began, before = time.monotonic(), time.thread_time()
    while time.monotonic() - began < seconds:
        due = time.monotonic() + INTERVAL
        reader.read()
        time.sleep(max(0.0, due - time.monotonic()))
    elapsed, busy = time.monotonic() - began, time.thread_time() - before
    for title, spent in sorted(tracker.seconds.items(), key=itemgetter(1), reverse=True)[:COSTLIEST]:
        print(f"  {title:<44} {spent * 1e3 / elapsed:6.2f} ms/s {tracker.calls[title] / elapsed:6.2f} calls/s")
    inside = sum(tracker.seconds.values())
    print(f"  all calls {inside * 1e3 / elapsed:.2f} ms/s, our own code {(busy - inside) * 1e3 / elapsed:.2f} ms/s")


if __name__ == "__main__":
    main()
