"""Two MPS clients on one real GPU: what the driver reports about them, and what podgpu books to each.

The driver counts the clients' time as their server's, so podgpu divides it by their claims. A holds three replicas of
four, B one. Starts an MPS daemon of its own and stops it; changes no setting of the card.
"""
# ruff: noqa: E402 - the path is set before the imports

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])

from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent
from podgpu.host.procfs import Procfs
from podgpu.kube.kubelet.podresources import PodResourceLists
from podgpu.kube.log_dirs import LogDirs
from podgpu.model import Allocation, PartStatus, Snapshot
from podgpu.sources.nvml.source import NvmlSource
from tests.gpu.work import INTERVAL, Load, Tenant, at_work, balances, booked, fresh, memory_of_nvidia_smi
from tests.tree import SETTINGS

SECONDS = 20.0
A, B = Tenant("a", "tensor", 0.5, 0.0, 0.0), Tenant("b", "tensor", 0.03, 0.07, 0.5)
REPLICAS = {"a": (0, 1, 2), "b": (3,)}


class Replicas:
    """What a kubelet would list: replicas of the card, given to the tenants."""

    name = "podresources"

    def __init__(self, card: str) -> None:
        self.errors: Counter[str] = Counter()
        self._card = card

    async def read(self) -> PodResourceLists:
        resource = "nvidia.com/gpu.shared"
        return PodResourceLists(
            devices=tuple(
                Allocation(
                    namespace="bench",
                    pod=pod,
                    container="main",
                    resource=resource,
                    device_id=f"{self._card}::{number}",
                )
                for pod, numbers in REPLICAS.items()
                for number in numbers
            ),
            allocatable=tuple((resource, f"{self._card}::{number}") for number in range(4)),
        )

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)


@contextmanager
def mps() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUDA_MPS_PIPE_DIRECTORY"] = os.environ["CUDA_MPS_LOG_DIRECTORY"] = folder
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=True)
        try:
            yield
        finally:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, check=True)
            time.sleep(1)
            del os.environ["CUDA_MPS_PIPE_DIRECTORY"], os.environ["CUDA_MPS_LOG_DIRECTORY"]


def card() -> str:
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]


async def observe(loads: list[Load], folder: Path) -> tuple[Snapshot, Snapshot]:
    attribution = Attribution(
        interval=INTERVAL,
        allocations=Replicas(card()),
        pod_sources=[LogDirs(folder)],
        processes=Procfs(Path("/proc")),
    )
    agent = Agent(
        NvmlSource(interval=INTERVAL, library=None),
        node="bench",
        interval=INTERVAL,
        settings=SETTINGS,
        attribution=attribution,
    )
    running = asyncio.create_task(agent.run())
    await asyncio.sleep(2 * INTERVAL)
    before = await fresh(agent)
    await asyncio.sleep(SECONDS)
    after = await fresh(agent)
    running.cancel()
    await agent.close()
    return before, after


def main() -> int:
    with mps(), at_work(A, B) as (loads, folder):
        before, after = asyncio.run(observe(loads, folder))
        memory = memory_of_nvidia_smi()
    elapsed = after.cards[0].at - before.cards[0].at
    for process in after.cards[0].processes:
        kinds = "+".join(process.kinds)
        print(f"driver: pid {process.pid:<7} {kinds:<12} sampled {100 * (process.sm_ratio or 0):5.1f} %")
    for load in loads:
        was, now = booked(before.cards[0], load), booked(after.cards[0], load)
        share = 100 * (now.busy_us - was.busy_us) / 1e6 / elapsed
        joules = (now.energy_mj - was.energy_mj) / 1e3
        equal = "equal" if (now.memory_bytes or 0) >> 20 == memory[load.process.pid] else "DIFFERS"
        print(f"booked: {load.tenant.name}  {now.method:<10} busy {share:5.1f} %  {joules:7.0f} J  memory {equal}")
    systems = ", ".join(sorted({claim.system for tenant in after.cards[0].tenants for claim in tenant.claims}))
    print(f"system: {systems}; sums {'exact' if balances(after.cards[0]) else 'OFF'}")
    return 0 if balances(after.cards[0]) else 1


if __name__ == "__main__":
    sys.exit(main())
