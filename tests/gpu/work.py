"""Tenants at work on a real GPU, what they did, and what is booked to them."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from podgpu.agent.loop import Agent
from podgpu.model import Booking, Card, Rest, Snapshot
from tests.gpu.pods import MadeUpPod

INTERVAL = 2.0
WORK = Path(__file__).parent / "bursts.py"
HIDER = Path(__file__).parent / "hider.py"

# Begin, end, and kernels done.
Burst = tuple[float, float, float]


@dataclass(frozen=True)
class Tenant:
    """Seconds of work and rest, and by which share they vary. `name` is that of its pod.

    With `every`, work begins so many seconds after it last began.
    """

    name: str
    kind: str
    burst: float
    pause: float
    jitter: float
    every: float = 0.0


class Load:
    """A tenant at work, in a pod of its own (needs root and cgroup v2)."""

    def __init__(self, tenant: Tenant, folder: Path, seed: int) -> None:
        self.tenant = tenant
        self._log = folder / f"{tenant.name}.log"
        self._log.touch()
        self._pod = MadeUpPod(tenant.name, folder)
        self._pod.__enter__()
        numbers = (tenant.burst, tenant.pause, tenant.jitter, seed, tenant.every)
        script = HIDER if tenant.kind == "hider" else WORK
        self.process = self._pod.start([sys.executable, str(script), str(self._log), tenant.kind, *map(str, numbers)])

    @property
    def uid(self) -> str:
        return self._pod.uid

    def bursts(self) -> list[Burst]:
        """Those that are over."""
        lines = self._log.read_text().rpartition("\n")[0].splitlines()
        return [(float(begin), float(end), float(done)) for begin, end, done in map(str.split, lines)]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._pod.__exit__()


@contextmanager
def at_work(*tenants: Tenant, seed: int = 0) -> Iterator[tuple[list[Load], Path]]:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "pods").mkdir()
        loads = []
        for number, tenant in enumerate(tenants):
            loads.append(Load(tenant, folder, seed + number))
            stack.callback(loads[-1].stop)
        while not all(load.bursts() for load in loads):
            if any(load.process.poll() is not None for load in loads):
                raise RuntimeError("a tenant ended before it did any work")
            time.sleep(0.1)
        yield loads, folder


async def fresh(agent: Agent) -> Snapshot:
    """The next snapshot with a card, right when it is taken."""
    snapshot = await agent.changed(agent.snapshot)
    while not snapshot.cards:
        snapshot = await agent.changed(snapshot)
    return snapshot


def booked(card: Card, load: Load) -> Booking:
    return next(tenant.booking for tenant in card.tenants if tenant.container.pod_uid == load.uid)


def balances(card: Card) -> bool:
    lines: list[Booking | Rest] = [tenant.booking for tenant in (*card.tenants, *card.ended)]
    lines += card.rest
    return card.balance is not None and (
        sum(line.busy_us for line in lines) == card.balance.busy_us
        and sum(line.energy_mj for line in lines) == card.balance.energy_mj
        and sum(line.memory_bytes or 0 for line in lines) == card.balance.memory_bytes
    )


def memory_of_nvidia_smi() -> dict[int, int]:
    done = subprocess.run(
        ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {int(pid): int(mebibytes) for pid, mebibytes in (line.split(",") for line in done.stdout.splitlines())}
