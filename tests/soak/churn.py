"""Keeps changing a node: pods, processes, MIG, the driver, the kubelet and the API server, by a seed."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random
from uuid import UUID

import pynvml
from grpclib.const import Status

from tests.agent.rig import RunningAgent
from tests.fakekubelet.kubelet import Reply
from tests.fakenvml.fake_node import FakeEvent, FakeFault, FakeGpu, FakeMig, FakeProcess
from tests.soak.cluster import DEVICES, PODS, Cluster, SoakPod
from tests.soak.machine import Machine

MIG_CARD = 2
FIRST_PODS, MOST_PODS, MOST_PROCESSES = 6, 24, 60
# Gpu instances by their slices; what is left of a card's seven is empty.
LAYOUTS = ((1,) * 7, (3, 3), (2, 2, 3), (4, 1), (7,))
_GIB = 1 << 30

FAULTS = (
    FakeFault(f"return {pynvml.NVML_ERROR_GPU_IS_LOST}", device=1),
    FakeFault(f"return {pynvml.NVML_ERROR_UNKNOWN}", device=3),
    FakeFault(f"return {pynvml.NVML_ERROR_NOT_SUPPORTED}", call="nvmlDeviceGetPowerUsage", times=3),
    FakeFault(f"return {pynvml.NVML_ERROR_NO_PERMISSION}", call="nvmlDeviceGetTotalEnergyConsumption"),
    FakeFault(f"return {pynvml.NVML_ERROR_TIMEOUT}", call="nvmlDeviceGetComputeRunningProcesses_v3", times=5),
    FakeFault("hang", call="nvmlDeviceGetMemoryInfo_v2", device=0),
    FakeFault("delay 150000", call="nvmlDeviceGetUtilizationRates", device=1),
    FakeFault("sentinel", call="nvmlDeviceGetTotalEnergyConsumption", device=1, times=2),
    FakeFault("sentinel", call="nvmlDeviceGetProcessesUtilizationInfo", device=3, times=5),
    FakeFault("crash", call="nvmlDeviceGetTemperature", device=3, times=1),
)
REPLIES: tuple[tuple[str, Callable[[], Reply]], ...] = (
    (DEVICES, lambda: Reply(hangs=True)),
    (DEVICES, lambda: Reply(b"\x0a\xff")),
    (DEVICES, lambda: Reply(status=Status.RESOURCE_EXHAUSTED)),
    (DEVICES, lambda: Reply(status=Status.FAILED_PRECONDITION)),
    (PODS, lambda: Reply(status=Status.INTERNAL)),
)
DRIVERS = ("580.159.04", "580.160.01")

Step = Callable[[], Awaitable[object]]


class Churn:
    """One change at a time. `done` counts those of each kind."""

    def __init__(self, agent: RunningAgent, cluster: Cluster, machine: Machine, seed: int) -> None:
        self.done: Counter[str] = Counter()
        self._agent = agent
        self._node = agent.node
        self._cards = list(agent.node.gpus)
        self._cluster = cluster
        self._machine = machine
        self._random = Random(seed)
        self._processes: dict[int, tuple[str, FakeGpu]] = {}  # whose it is, by PID; an empty UID is the host
        self._xids = 0
        # How often in a hundred, roughly; those that break something last a while and are rare.
        self._steps: dict[str, tuple[int, Step]] = {
            "pods started": (20, self._start_pod),
            "pods ended": (12, self._end_pod),
            "processes started": (16, self._start_process),
            "processes ended": (14, self._end_process),
            "host processes started": (3, self._start_host_process),
            "loads changed": (14, self._change_load),
            "MIG layouts changed": (2, self._flip_mig),
            "driver faults": (5, self._break_driver),
            "GPUs lost from the bus": (1, self._lose_gpu),
            "XIDs": (3, self._send_xid),
            "drivers replaced": (1, self._replace_driver),
            "samplers killed": (2, self._kill_sampler),
            "samplers stopped": (1, self._stop_sampler),
            "releases": (2, self._release),
            "kubelet restarts": (2, self._restart_kubelet),
            "bad answers of the kubelet": (2, self._answer_badly),
            "API server restarts": (1, self._restart_api),
            "watches ended": (1, self._end_watches),
        }

    async def populate(self) -> None:
        """Begin with some pods."""
        while len(self._cluster.pods) < FIRST_PODS:
            self.done["pods started"] += await self._start_pod()

    async def step(self) -> None:
        names = list(self._steps)
        (name,) = self._random.choices(names, [self._steps[step][0] for step in names])
        if await self._steps[name][1]() is not False:
            self.done[name] += 1

    async def calm(self) -> None:
        """End every pod and process, so that what is left is what the agent keeps."""
        for pod in list(self._cluster.pods.values()):
            self._end(pod)
        for pid in list(self._processes):
            self._drop(pid)
        self._follow()

    # Pods and processes

    async def _start_pod(self) -> bool:
        places = self._places()
        if not places or len(self._cluster.pods) >= MOST_PODS:
            return False
        cards = {gpu.uuid for gpu, _, _ in places}
        card = self._random.choice(sorted(cards))
        gpu, mig, device_id = self._random.choice([place for place in places if place[0].uuid == card])
        bits = self._random.getrandbits(128)
        # Some come again under the name of one that ended, as those of a StatefulSet do.
        taken = {pod.name for pod in self._cluster.pods.values()}
        name = f"set-{self._random.randrange(8)}" if self._random.random() < 0.3 else f"pod-{bits:032x}"[:14]
        if name in taken:
            return False
        container_id = f"{self._random.getrandbits(256):064x}"
        pod = SoakPod(name, str(UUID(int=bits)), container_id, gpu.uuid, mig, device_id)
        self._cluster.add(pod)
        for _ in range(self._random.randrange(3)):
            self._run(pod)
        self._follow()
        return True

    def _places(self) -> list[tuple[FakeGpu, str, str]]:
        """List what a plugin has left: instances, a whole card, and replicas of the shared ones."""
        taken = {pod.device_id for pod in self._cluster.pods.values()}
        found: list[tuple[FakeGpu, str, str]] = []
        for number, gpu in enumerate(self._cards):
            if gpu.mig_enabled:
                found += [(gpu, mig.uuid, mig.uuid) for mig in gpu.migs]
            elif number == 0:
                found.append((gpu, "", gpu.uuid))
            else:
                found += [(gpu, "", f"{gpu.uuid}::{replica}") for replica in range(8)]
        return [place for place in found if place[2] not in taken]

    async def _end_pod(self) -> bool:
        if not (pods := list(self._cluster.pods.values())):
            return False
        self._end(self._random.choice(pods))
        self._follow()
        return True

    def _end(self, pod: SoakPod) -> None:
        for pid in [pid for pid, (uid, _) in self._processes.items() if uid == pod.uid]:
            self._drop(pid)
        self._cluster.remove(pod)
        self._machine.remove_pod(pod.uid)

    async def _start_process(self) -> bool:
        pods = list(self._cluster.pods.values())
        if not pods or len(self._processes) >= MOST_PROCESSES:
            return False
        self._run(self._random.choice(pods))
        self._follow()
        return True

    def _run(self, pod: SoakPod) -> None:
        gpu = next(gpu for gpu in self._cards if gpu.uuid == pod.gpu)
        process = self._listed(self._machine.start(pod.uid, pod.container_id))
        for mig in gpu.migs:
            if mig.uuid == pod.mig:
                process.gpu_instance, process.compute_instance = mig.gpu_instance, mig.compute_instance
        gpu.processes.append(process)
        self._processes[process.pid] = (pod.uid, gpu)

    def _listed(self, pid: int) -> FakeProcess:
        kinds: Sequence[tuple[str, ...]] = (("compute",), ("compute",), ("graphics",), ("compute", "mps"))
        memory = self._random.randrange(1, 8) * _GIB + self._random.randrange(_GIB)
        return FakeProcess(pid, memory, self._random.choice(kinds), sm=self._random.randrange(60))

    async def _start_host_process(self) -> bool:
        if len(self._processes) >= MOST_PROCESSES:
            return False
        gpu = self._random.choice([gpu for gpu in self._cards if not gpu.mig_enabled])
        process = self._listed(self._machine.start())
        gpu.processes.append(process)
        self._processes[process.pid] = ("", gpu)
        self._follow()
        return True

    async def _end_process(self) -> bool:
        if not self._processes:
            return False
        self._drop(self._random.choice(list(self._processes)))
        self._follow()
        return True

    def _drop(self, pid: int) -> None:
        """The driver still lists it until the next change."""
        _, gpu = self._processes.pop(pid)
        gpu.processes = [process for process in gpu.processes if process.pid != pid]
        self._machine.end(pid)

    async def _change_load(self) -> None:
        gpu = self._random.choice(self._cards)
        for process in gpu.processes:
            process.sm = self._random.choice((0, self._random.randrange(100)))
            process.memory = self._random.randrange(1, 8) * _GIB
        gpu.values["utilization_gpu"] = busy = self._random.randrange(101)
        gpu.gpm |= {1: float(busy), 2: busy * 0.9}
        for mig in gpu.migs:
            mig.gpm |= {2: float(self._random.randrange(101))}
        self._follow()

    # The driver

    async def _flip_mig(self) -> None:
        """MIG is changed only while nobody is on the card."""
        card = self._cards[MIG_CARD]
        for pod in [pod for pod in self._cluster.pods.values() if pod.gpu == card.uuid]:
            self._end(pod)
        for pid in [pid for pid, (_, gpu) in self._processes.items() if gpu is card]:
            self._drop(pid)
        card.mig_enabled = not card.mig_enabled or self._random.random() < 0.5
        card.migs = _cut(card, self._random.choice(LAYOUTS)) if card.mig_enabled else []
        self._follow()

    async def _break_driver(self) -> None:
        self._node.faults = [self._random.choice(FAULTS)]
        self._follow()
        await self._pause(0.2, 2.0)
        self._node.faults = []
        self._follow()

    async def _lose_gpu(self) -> None:
        """The indices of those behind it shift, as after a loss on the bus."""
        self._node.gpus = [gpu for gpu in self._cards if gpu is not self._random.choice(self._cards[:2])]
        self._follow()
        await self._pause(0.5, 4.0)
        self._node.gpus = list(self._cards)
        self._follow()

    async def _send_xid(self) -> None:
        self._xids += 1
        xid = self._random.choice((13, 31, 43, 48, 79, 94))
        self._node.events = [FakeEvent(self._random.randrange(len(self._node.gpus)), xid, self._xids)]
        self._follow()

    async def _replace_driver(self) -> None:
        self._node.driver = next(driver for driver in DRIVERS if driver != self._node.driver)
        self._follow()

    async def _kill_sampler(self) -> bool:
        return self._signal(signal.SIGKILL)

    async def _stop_sampler(self) -> bool:
        return self._signal(signal.SIGSTOP)

    def _signal(self, which: signal.Signals) -> bool:
        children = self._agent.children()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, which)
        return bool(children)

    async def _release(self) -> None:
        """It is answered by another process, so that the loop here must not wait for it."""
        await asyncio.to_thread(self._agent.request, "/-/release?seconds=1", "POST")

    # Kubernetes

    async def _restart_kubelet(self) -> None:
        await self._cluster.kubelet.stop()
        await self._pause(0.2, 3.0)
        await self._cluster.kubelet.start()

    async def _answer_badly(self) -> None:
        method, reply = self._random.choice(REPLIES)
        self._cluster.kubelet.replies[method] = reply()
        await self._pause(0.2, 2.0)
        self._cluster.answer_truly()

    async def _restart_api(self) -> None:
        await self._cluster.api.stop()
        await self._pause(0.2, 3.0)
        await self._cluster.api.start()

    async def _end_watches(self) -> None:
        self._cluster.api.oldest = self._random.choice((0, self._cluster.api.version))
        self._cluster.api.end_watches()

    async def _pause(self, least: float, most: float) -> None:
        await asyncio.sleep(self._random.uniform(least, most))

    def _follow(self) -> None:
        """Let the library see what changed, with the memory that its processes hold."""
        for gpu in self._cards:
            held = sum(int(process.memory) for process in gpu.processes)
            gpu.values["memory_used"] = held + self._random.randrange(_GIB)
            for mig in gpu.migs:
                own = [process for process in gpu.processes if process.gpu_instance == mig.gpu_instance]
                mig.memory_used = sum(int(process.memory) for process in own) + (1 << 25)
        self._agent.rewrite()


def _cut(card: FakeGpu, layout: Sequence[int]) -> list[FakeMig]:
    """The same instance has the same UUID whenever it is made again."""
    return [
        FakeMig(
            uuid=f"MIG-{slices:08x}-7c44-5d55-9e66-{index:02x}{card.uuid[-10:]}",
            index=index,
            gpu_instance=(0 if slices == 7 else 7 // slices) * 8 + index,
            profile=f"{slices}g.{18 * slices}gb",
            memory_total=slices * 16 * _GIB,
            multiprocessors=16 * slices,
            gpu_slices=slices,
            compute_slices=slices,
            gpm={1: 40.0, 2: 30.0},
        )
        for index, slices in enumerate(layout)
    ]
