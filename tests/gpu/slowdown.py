"""What tenants lose when two share a real GPU, beside what podgpu predicts from how busy each was alone.

Each tenant is a process in the cgroup of a made-up pod (needs root and cgroup v2). All are started, and stopped by a
signal; then each runs alone, then some in pairs. Kernels done a second, alone against together, are the truth. A
tenant's need is what the agent books of the card while it runs alone. Changes no setting of the card.

Passes if each loss is within the prediction. Takes about two minutes. With `$OUT`, what was measured is written to
`$OUT/slowdown.json.gz`, for `tests/samples/test_slowdown.py`. From the environment: SECONDS of each set.
"""

import asyncio
import gzip
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])

from podgpu.agent.attribution import Attribution  # noqa: E402 - the path is set above
from podgpu.agent.loop import Agent  # noqa: E402
from podgpu.host.procfs import Procfs  # noqa: E402
from podgpu.kube.log_dirs import LogDirs  # noqa: E402
from podgpu.sources.nvml.source import NvmlSource  # noqa: E402
from tests.gpu.pods import MadeUpPod  # noqa: E402
from tests.gpu.switching.listening import Heard, Listening  # noqa: E402
from tests.gpu.tenants import within  # noqa: E402
from tests.gpu.work import Burst, fresh  # noqa: E402
from tests.samples.slowdown import Loss, losses  # noqa: E402
from tests.tree import SETTINGS  # noqa: E402

SECONDS = float(os.environ.get("SECONDS", "5"))
SETTLE_SECONDS = 1.0  # after a set began: for clocks, and for what is left of a round
START_SECONDS = 90.0
INTERVAL = 1.0
WORK = Path(__file__).parent / "rounds.py"

# Kind, kernels that are queued at once, and seconds of rest after them.
TENANTS: dict[str, tuple[str, int, float]] = {
    "tensor": ("tensor", 1, 0.0),
    "queue": ("tensor", 50, 0.0),
    "mem": ("mem", 1, 0.0),
    "infer": ("infer", 1, 0.0),
    "tensor-paced": ("tensor", 100, 0.04),
    "mem-paced": ("mem", 20, 0.05),
}
PAIRS = (
    ("tensor", "mem"),
    ("tensor", "infer"),
    ("mem", "infer"),
    ("tensor", "queue"),
    ("queue", "mem"),
    ("tensor", "tensor-paced"),
    ("infer", "tensor-paced"),
    ("mem", "tensor-paced"),
    ("tensor-paced", "mem-paced"),
)


class Worker:
    """A tenant that works while it is not stopped."""

    def __init__(self, name: str, folder: Path, stack: ExitStack) -> None:
        kind, kernels, pause = TENANTS[name]
        self._log = folder / f"{name}.log"
        self._log.touch()
        pod = stack.enter_context(MadeUpPod(f"slowdown-{name}", folder))
        command = [sys.executable, str(WORK), str(self._log), kind, str(kernels), str(pause)]
        self.process = pod.start(command)
        stack.callback(self._end)

    def _end(self) -> None:
        self.process.kill()
        self.process.wait()

    def is_at_work(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"{self._log.stem} ended before it did any work")
        return bool(self._log.stat().st_size)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def rate(self, begin: float, end: float) -> float:
        """Kernels a second."""
        lines = self._log.read_text().rpartition("\n")[0].splitlines()
        rounds: list[Burst] = [(float(first), float(last), float(done)) for first, last, done in map(str.split, lines)]
        return sum(done for _, _, done in within(rounds, begin, end)) / (end - begin)


@contextmanager
def stopped_workers() -> Iterator[tuple[dict[str, Worker], Path]]:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "pods").mkdir()
        workers = {tenant: Worker(tenant, folder, stack) for tenant in TENANTS}
        deadline = time.monotonic() + START_SECONDS
        while not all(worker.is_at_work() for worker in workers.values()):
            if time.monotonic() > deadline:
                raise RuntimeError("not all tenants are at work")
            time.sleep(0.1)
        for worker in workers.values():
            worker.stop()
        yield workers, folder


@asynccontextmanager
async def running_agent(folder: Path) -> AsyncIterator[Agent]:
    attribution = Attribution(interval=INTERVAL, pod_sources=[LogDirs(folder)], processes=Procfs(Path("/proc")))
    source = NvmlSource(interval=INTERVAL, library=None)
    agent = Agent(source, node="bench", interval=INTERVAL, settings=SETTINGS, attribution=attribution)
    running = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        running.cancel()
        await agent.close()


async def busy_ratio(agent: Agent) -> float:
    """Return which part of the card's time was booked within a set."""
    first = last = (await fresh(agent)).cards[0]
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        last = (await fresh(agent)).cards[0]
    assert first.balance and last.balance
    return (last.balance.busy_us - first.balance.busy_us) / 1e6 / (last.at - first.at)


async def measured(workers: Sequence[Worker], agent: Agent) -> dict[str, Any]:
    """Let some work for a while. The log of context switches is read beside two."""
    for worker in workers:
        worker.go_on()
    await asyncio.sleep(SETTLE_SECONDS)
    begin = time.time()
    listening = Listening(SECONDS - 1) if len(workers) > 1 else None
    busy = await busy_ratio(agent)
    end = time.time()
    for worker in workers:
        worker.stop()
    found = {"busy": busy, "rates": [worker.rate(begin, end) for worker in workers]}
    return found | (await asyncio.to_thread(_switching, listening, workers) if listening else {})


def _switching(listening: Listening, workers: Sequence[Worker]) -> dict[str, Any]:
    try:
        heard: Heard = listening.heard()
    except RuntimeError as error:
        print(f"  no log of context switches: {error}", flush=True)
        return {}
    turns = Counter(part.pid for part in heard.slices)
    on_card = heard.by_pid()
    pids = [worker.process.pid for worker in workers]
    return {
        "switching": heard.switching_ns / heard.covered_ns,
        "switches": 1e9 * heard.switches / heard.covered_ns,
        "turn_us": [on_card[pid] / turns[pid] / 1e3 if turns[pid] else None for pid in pids],
    }


async def recorded() -> dict[str, Any]:
    found: dict[str, Any] = {"tenants": TENANTS, "alone": {}, "together": []}
    with stopped_workers() as (workers, folder):
        async with running_agent(folder) as agent:
            snapshot = await fresh(agent)
            found |= {"model": snapshot.cards[0].gpu.model, "driver": snapshot.driver_version}
            for name, worker in workers.items():
                alone = await measured([worker], agent)
                found["alone"][name] = {"rate": alone["rates"][0], "busy": alone["busy"]}
                print(
                    f"{name:<14} alone: {alone['rates'][0]:8.1f} kernels/s, busy {100 * alone['busy']:5.1f} %",
                    flush=True,
                )
            for pair in PAIRS:
                together = await measured([workers[name] for name in pair], agent)
                found["together"].append({"tenants": pair, **together})
                print(f"{' + '.join(pair):<28} {together}", flush=True)
    return found


def printed(loss: Loss) -> None:
    verdict = "within" if loss.is_within else "OUTSIDE"
    ranges = f"{loss.predicted.least:5.2f}–{loss.predicted.most:5.2f}"
    print(f"{loss.tenant:<14} beside {loss.beside:<14} {loss.real:5.2f} times as slow, predicted {ranges}  {verdict}")


def main() -> int:
    began = time.monotonic()
    found = asyncio.run(recorded())
    if "OUT" in os.environ:
        with gzip.open(Path(os.environ["OUT"]) / "slowdown.json.gz", "wt") as file:
            json.dump(found, file)
    judged = list(losses(found))
    for loss in judged:
        printed(loss)
    outside = sum(not loss.is_within for loss in judged)
    print(f"{len(judged) - outside} of {len(judged)} within the prediction, {time.monotonic() - began:.0f} s")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
