"""Two tenants on one real GPU: what podgpu books to each against the work each really did.

Each tenant is a process in the cgroup of a made-up pod (needs root and cgroup v2), so that the whole way from the
driver's PID to the pod's name is the real one. True shares are work done against what the same program does alone at
full duty. Changes no setting of the card.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])

from podgpu.agent.attribution import Attribution  # noqa: E402 - the path is set above
from podgpu.agent.loop import Agent  # noqa: E402
from podgpu.host.procfs import Procfs  # noqa: E402
from podgpu.kube.log_dirs import LogDirs  # noqa: E402
from podgpu.model import Booking, Rest, Snapshot  # noqa: E402
from podgpu.sources.nvml.sampler import Sampler  # noqa: E402
from tests.gpu.pods import MadeUpPod  # noqa: E402

SECONDS = float(os.environ.get("SECONDS_PER_PAIR", "40"))
INTERVAL = 2.0
WORK = """
import mmap, random, sys, time, torch
path, kind, size, duty, rhythm = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}[kind]
a, b = (torch.randn(size, size, dtype=dtype, device="cuda") for _ in range(2))
out = torch.empty_like(a)
file = open(path, "r+b")
shared = mmap.mmap(file.fileno(), 8)
batch, done = (2, 0) if size > 4096 else (16, 0)
while True:
    began = time.monotonic()
    while True:
        for _ in range(batch):
            torch.matmul(a, b, out=out)
        torch.cuda.synchronize()
        done += batch
        shared[:8] = done.to_bytes(8, "little")
        if time.monotonic() - began >= 0.1 * duty:
            break
    if duty < 1 and rhythm == "steady":
        time.sleep(max(0.0, 0.1 - (time.monotonic() - began)))
    elif duty < 1:
        time.sleep(0.1 * (1 - duty) * random.uniform(0.5, 1.5))
"""


@dataclass(frozen=True)
class WorkPlan:
    name: str
    kind: str
    size: int
    duty: float
    rhythm: str = "free"


# A steady rhythm of 100 ms beats in step with the driver, which looks every 200 ms; a free one does not.
A = WorkPlan("a", "bf16", 8192, 1.0)
B = WorkPlan("b", "bf16", 8192, 0.3)
C = WorkPlan("c", "fp32", 2048, 1.0)
D = WorkPlan("d", "bf16", 8192, 0.1)
STEADY_B = WorkPlan("b-steady", "bf16", 8192, 0.3, "steady")
STEADY_D = WorkPlan("d-steady", "bf16", 8192, 0.1, "steady")
PAIRS = ((A, B), (A, D), (A, C), (B, C), (B, D), (A, STEADY_B), (STEADY_B, STEADY_D))


class Load:
    """A tenant at work, and how much it has done."""

    def __init__(self, tenant: WorkPlan, folder: Path) -> None:
        self.tenant = tenant
        self._counter = folder / f"{tenant.name}.count"
        self._counter.write_bytes(bytes(8))
        self._pod = MadeUpPod(tenant.name, folder)
        self._pod.__enter__()
        self.process = self._pod.start(
            [
                *(sys.executable, "-c", WORK, str(self._counter), tenant.kind, str(tenant.size)),
                *(str(tenant.duty), tenant.rhythm),
            ]
        )

    @property
    def uid(self) -> str:
        return self._pod.uid

    def done(self) -> int:
        return int.from_bytes(self._counter.read_bytes(), "little")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._pod.__exit__()


@contextmanager
def at_work(*tenants: WorkPlan) -> Iterator[tuple[list[Load], Path]]:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "pods").mkdir()
        loads = []
        for tenant in tenants:
            loads.append(Load(tenant, folder))
            stack.callback(loads[-1].stop)
        while not all(load.done() for load in loads):
            if any(load.process.poll() is not None for load in loads):
                raise RuntimeError("a tenant ended before it did any work")
            time.sleep(0.1)
        time.sleep(2)
        yield loads, folder


def rate_alone(tenant: WorkPlan) -> float:
    """Products a second at full duty with nobody else there."""
    alone = WorkPlan(f"{tenant.name}-alone", tenant.kind, tenant.size, 1.0)
    with at_work(alone) as (loads, _):
        began, before = time.monotonic(), loads[0].done()
        time.sleep(5)
        return (loads[0].done() - before) / (time.monotonic() - began)


@dataclass(frozen=True)
class Outcome:
    true: list[float]
    read: list[float]
    joules: list[float]
    watts: float
    memory_equal: bool
    exact: bool


async def observe(loads: list[Load], folder: Path, alone: dict[str, float]) -> Outcome:
    attribution = Attribution(
        interval=INTERVAL, pod_sources=[LogDirs(folder)], processes=Procfs(Path("/proc"))
    )
    agent = Agent(
        Sampler(interval=INTERVAL, library=None), node="bench", interval=INTERVAL, attribution=attribution
    )
    running = asyncio.create_task(agent.run())
    await asyncio.sleep(2 * INTERVAL)
    before, done, began = await fresh(agent), [load.done() for load in loads], time.monotonic()
    await asyncio.sleep(SECONDS)
    after, later, ended = await fresh(agent), [load.done() for load in loads], time.monotonic()
    memory = memory_of_nvidia_smi()
    running.cancel()
    await agent.close()
    seconds, elapsed = ended - began, after.cards[0].at - before.cards[0].at
    pairs = [(booked(before, load), booked(after, load)) for load in loads]
    return Outcome(
        true=[
            (now - was) / seconds / alone[load.tenant.kind]
            for load, was, now in zip(loads, done, later, strict=True)
        ],
        read=[(now.busy_us - was.busy_us) / 1e6 / elapsed for was, now in pairs],
        joules=[(now.energy_mj - was.energy_mj) / 1e3 for was, now in pairs],
        watts=(drawn(after) - drawn(before)) / 1e3 / elapsed,
        memory_equal=all(
            (booked(after, load).memory_bytes or 0) >> 20 == memory[load.process.pid] for load in loads
        ),
        exact=balances(after),
    )


async def fresh(agent: Agent) -> Snapshot:
    """The next snapshot, right when it is taken."""
    snapshot = await agent.changed(agent.snapshot)
    while not snapshot.cards:
        snapshot = await agent.changed(snapshot)
    return snapshot


def booked(snapshot: Snapshot, load: Load) -> Booking:
    return next(one.booking for one in snapshot.cards[0].tenants if one.container.pod_uid == load.uid)


def drawn(snapshot: Snapshot) -> int:
    """Millijoules."""
    balance = snapshot.cards[0].balance
    return balance.energy_mj if balance else 0


def balances(snapshot: Snapshot) -> bool:
    (card,) = snapshot.cards
    balance = card.balance
    lines: list[Booking | Rest] = [one.booking for one in (*card.tenants, *card.ended)]
    lines += card.rest
    return balance is not None and (
        sum(one.busy_us for one in lines) == balance.busy_us
        and sum(one.energy_mj for one in lines) == balance.energy_mj
        and sum(one.memory_bytes or 0 for one in lines) == balance.memory_bytes
    )


def memory_of_nvidia_smi() -> dict[int, int]:
    done = subprocess.run(
        ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        int(pid): int(mebibytes) for pid, mebibytes in (line.split(",") for line in done.stdout.splitlines())
    }


def main() -> int:
    alone = {"bf16": rate_alone(A), "fp32": rate_alone(C)}
    print(f"alone: {alone['bf16']:.1f} bf16 and {alone['fp32']:.1f} fp32 products a second", flush=True)
    print(
        f"{'tenants':<20}  true share     read share     off by   energy by work / booked   W      memory  sums"
    )
    for pair in PAIRS:
        with at_work(*pair) as (loads, folder):
            print_outcome(pair, asyncio.run(observe(loads, folder, alone)))
    return 0


def print_outcome(pair: tuple[WorkPlan, ...], outcome: Outcome) -> None:
    names = " + ".join(tenant.name.upper() for tenant in pair)
    true, read = ([f"{100 * value:5.1f}" for value in values] for values in (outcome.true, outcome.read))
    off = max(abs(one - other) for one, other in zip(outcome.true, outcome.read, strict=True))
    work = outcome.true[0] / sum(outcome.true)
    given = outcome.joules[0] / sum(outcome.joules)
    print(
        f"{names:<20}  {' / '.join(true)}  {' / '.join(read)}  {100 * off:5.1f}   "
        f"{100 * work:5.1f} / {100 * given:5.1f}             {outcome.watts:5.0f}  "
        f"{'equal' if outcome.memory_equal else 'DIFFER'}   {'exact' if outcome.exact else 'OFF'}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
