"""The whole of it: a node, an agent beside it, what changes the one and what watches the other."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from tests.agent.rig import RunningAgent
from tests.fakekubelet.kubelet import kubelet_root
from tests.fakenvml.fake_node import FakeNode, environment, h200
from tests.patience import PATIENCE
from tests.ports import quiet_port
from tests.soak.churn import Churn
from tests.soak.cluster import NODE, Cluster
from tests.soak.machine import Machine
from tests.soak.observer import STOP, Findings, Observer, Sample, Seen, kept_open, weighed

INTERVAL = "100ms"
OWNERS = "owners"
GPUS = 4
NOTHING = Seen(0, 0, 0, 0)
STEP_SECONDS = 0.2
REST_SECONDS = 6.0  # after the last change
_PROCESSES = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Outcome:
    seconds: float
    findings: Findings
    churn: Counter[str]
    before: Sample  # at rest
    after: Sample
    exit_code: int | None  # of an agent that ended by itself
    log: str


async def soak(seconds: float, seed: int, folder: Path, cgroups: Path, library: Path, least: Seen = NOTHING) -> Outcome:
    """It takes longer if not so much was seen by then."""
    with kubelet_root() as root:
        cluster, machine = Cluster.at(root), Machine(cgroups, folder / OWNERS)
        await cluster.start()
        try:
            with started(folder, library, root, cluster.api.url) as (agent, port):
                await _readiness(agent)
                churn = Churn(agent, cluster, machine, seed)
                return await _watched(agent, port, churn, seconds, folder, least)
        finally:
            machine.close()
            await cluster.stop()


async def _watched(agent: RunningAgent, port: int, churn: Churn, seconds: float, folder: Path, least: Seen) -> Outcome:
    await asyncio.sleep(min(REST_SECONDS, seconds / 4))
    before = weighed(agent.process.pid)
    with _observing(port, agent.process.pid, folder / OWNERS) as observer:
        began = time.monotonic()
        await churn.populate()
        while agent.process.poll() is None and (
            time.monotonic() - began < seconds or not await _has_seen(observer, least)
        ):
            assert time.monotonic() - began < seconds + PATIENCE, "the observer sees too little"
            await churn.step()
            await asyncio.sleep(STEP_SECONDS)
        took = time.monotonic() - began
        await churn.calm()
        await asyncio.sleep(min(REST_SECONDS, seconds / 2))
        observer.send(STOP)
        findings: Findings = await asyncio.to_thread(observer.recv)
    after = await _at_rest(agent.process.pid, before)
    log = (folder / "agent.log").read_text(errors="replace")
    return Outcome(took, findings, churn.done, before, after, agent.process.poll(), log)


async def _at_rest(pid: int, before: Sample) -> Sample:
    """A busy machine takes a while to close what was open."""
    deadline = time.monotonic() + PATIENCE
    while True:
        after = weighed(pid)
        if not kept_open(before, after) or time.monotonic() > deadline:
            return after
        await asyncio.sleep(STEP_SECONDS)


@contextmanager
def started(folder: Path, library: Path, kubelet: Path, api: str) -> Iterator[tuple[RunningAgent, int]]:
    """Run an agent whose log goes to a file: an hour's would fill a pipe."""
    node = FakeNode([h200(number) for number in range(GPUS)], epoch=time.monotonic())
    script, port = folder / "script", quiet_port()
    node.write(script)
    command = [
        *(sys.executable, "-m", "podgpu", "agent", f"--interval={INTERVAL}", f"--node-name={NODE}"),
        *(f"--web.listen-address=127.0.0.1:{port}", f"--path.kubelet={kubelet}", f"--kube.api={api}"),
    ]
    fake = environment(library, script)
    with (folder / "agent.log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **fake}, stderr=log)
    try:
        yield RunningAgent(process, port, node, script), port
    finally:
        process.kill()
        process.wait()


async def _readiness(agent: RunningAgent) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if (await asyncio.to_thread(agent.request, "/-/ready"))[0] == 200:
                return
        except OSError:
            assert time.monotonic() < deadline, "the agent does not answer"
        await asyncio.sleep(0.05)


async def _has_seen(observer: Connection, least: Seen) -> bool:
    observer.send("so far")
    seen: Seen = await asyncio.to_thread(observer.recv)
    return all(have >= wanted for have, wanted in zip(seen, least, strict=True))


@contextmanager
def _observing(port: int, pid: int, owners: Path) -> Iterator[Connection]:
    ours, theirs = _PROCESSES.Pipe()
    process = _PROCESSES.Process(target=_observe, args=(port, pid, owners, theirs), daemon=True)
    process.start()
    try:
        yield ours
    finally:
        process.join(PATIENCE)
        process.kill()


def _observe(port: int, pid: int, owners: Path, pipe: Connection) -> None:
    Observer(port, pid, owners).run(pipe)
