"""A node on which everything around the agent can break: driver, kubelet, API server, dcgm-exporter, files, clients.

Card 0 belongs to a pod, card 1 to nobody. The used memory of both is a clock: it tells when it was read.
"""

import asyncio
import os
import shutil
import ssl
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from uuid import NAMESPACE_DNS, uuid5

from podgpu.kube._gen.pods_pb2 import Metadata, PodMessage, PodStatus
from tests.agent.rig import RunningAgent, running_agent
from tests.fakeapi.server import FakeApi
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import given, pods_api
from tests.fakenvml.fake_node import FakeNode, grows, h200
from tests.faults.exporter import Exporter
from tests.faults.props.processes import Processes
from tests.patience import PATIENCE, PODGPU
from tests.ports import quiet_port

# `make matrix` plays all, on a machine with time for it, and holds the agent to its promises of time. Elsewhere a
# machine may be slow or busy: only what would never come breaks a promise.
IS_WHOLE = os.environ.get("PODGPU_TEST_MATRIX") == "all"
INTERVAL = 0.2  # seconds
NAME = "test-node"
DEVICES, PODS = "/v1.PodResourcesLister/List", "/v1alpha1.Pods/ListPods"
WATCH = "/v1alpha1.Pods/WatchPods"
OFFERS = "/v1.PodResourcesLister/GetAllocatableResources"
BYTES_AT_FIRST, BYTES_PER_SECOND = 1 << 30, 100 << 20

T = TypeVar("T")


def pod_message(name: str, phase: str = "Running") -> bytes:
    """Return a pod as the kubelet's Pods API has it."""
    metadata = Metadata(namespace="n", name=name, uid=uid_of(name))
    return PodMessage(metadata=metadata, status=PodStatus(phase=phase)).SerializeToString()


def uid_of(pod: str) -> str:
    return str(uuid5(NAMESPACE_DNS, pod))


def sound_kubelet() -> dict[str, Reply]:
    """Return the answers of a kubelet that gave card 0 to a pod."""
    return {
        DEVICES: Reply(given(h200(0).uuid.encode())),
        OFFERS: Reply(b""),
        **pods_api(pod_message("p")),
    }


class Node:
    """`agent` is the one that runs, in the phases that have one. `holders` are the pods that each card may name.

    `before` stands before the agent's command, `variables` are added to its environment, `context` is for pages over
    TLS, `headers` are those of good clients, and `clock_ahead` is how many seconds its clock is ahead of the machine's.
    """

    def __init__(self, folder: Path, library: Path, kubelet: Path) -> None:
        self.folder = folder
        self.library = folder / "lib" / library.name
        self.library.parent.mkdir()
        shutil.copy(library, self.library)
        self.port = quiet_port()
        self.log = folder / "stderr"
        self.began = time.monotonic()
        self.driver = FakeNode([h200(number) for number in range(2)], epoch=self.began)
        for gpu in self.driver.gpus:
            gpu.values["memory_used"] = grows(BYTES_AT_FIRST, BYTES_PER_SECOND)
        self.devices = folder / "dev"
        self.driver.make_device_files(self.devices)
        self.holders: dict[str, set[str]] = {h200(0).uuid: {"p"}}
        self.kubelet = FakeKubelet(kubelet, replies=sound_kubelet())
        self.agent: RunningAgent | None = None
        self.before: Sequence[str] = ()
        self.variables: dict[str, str] = {}
        self.context: ssl.SSLContext | None = None
        self.headers: dict[str, str] = {}
        self.clock_ahead = 0.0
        self._closing = ExitStack()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.do(self.kubelet.start())
        self._closing.callback(lambda: self.do(self.kubelet.stop()))

    @cached_property
    def api(self) -> FakeApi:
        """An API server, from when it is first asked for."""
        server = self.do(_made(FakeApi))
        self.do(server.start())
        self._closing.callback(lambda: self.do(server.stop()))
        return server

    @cached_property
    def exporter(self) -> Exporter:
        """A dcgm-exporter, from when it is first asked for."""
        exporter = Exporter(self._dcgm_page)
        self.do(exporter.start())
        self._closing.callback(lambda: self.do(exporter.stop()))
        return exporter

    @cached_property
    def processes(self) -> Processes:
        """What the agent finds in /proc, from when it is first asked for."""
        processes = Processes(self.folder / "proc")
        self._closing.callback(processes.close)
        return processes

    def _dcgm_page(self) -> bytes:
        seconds = time.monotonic() - self.began
        used = (BYTES_AT_FIRST + seconds * BYTES_PER_SECOND) / (1 << 20)
        metrics = {
            "FB_USED": used,
            "FB_FREE": 143_000 - used,
            "GPU_TEMP": 45,
            "POWER_USAGE": 690.375,
            "POWER_MGMT_LIMIT": 700,
            "TOTAL_ENERGY_CONSUMPTION": 1e9 + seconds * 690_375,
            "GPU_UTIL": 96,
        }
        return "".join(
            f'DCGM_FI_DEV_{name}{{gpu="{index}",UUID="{gpu.uuid}",Hostname="{NAME}"}} {value}\n'
            for name, value in metrics.items()
            for index, gpu in enumerate(self.driver.gpus)
        ).encode()

    def on_close(self, work: Callable[[], object]) -> None:
        self._closing.callback(work)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Work in the loop of the fakes."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def call(self, function: Callable[..., object], *args: object) -> None:
        """Call a function of a fake in the loop of the fakes."""

        async def work() -> None:
            function(*args)

        self.do(work())

    def keep_sockets(self, *sockets: str) -> None:
        """Let the kubelet have these sockets only. Comes before the agent."""
        self.do(self.kubelet.stop())
        for name in set(self.kubelet.sockets) - set(sockets):
            (self.kubelet.root / name).parent.rmdir()
        self.kubelet.sockets = sockets
        self.do(self.kubelet.start())

    def drive(self) -> None:
        """Let the driver follow what was changed in it. Before the agent starts, that happens by itself."""
        if self.agent:
            self.agent.rewrite()

    @contextmanager
    def run_agent(self, flags: Sequence[str]) -> Iterator[RunningAgent]:
        own = [f"--path.kubelet={self.kubelet.root}", *flags]
        if not any(flag.startswith("--kube.api") for flag in flags):
            own.append("--kube.api=off")
        with (
            self.log.open("wb") as log,
            running_agent(
                self.driver,
                self.folder,
                self.library,
                interval=INTERVAL,
                flags=own,
                port=self.port,
                devices=self.devices,
                before=self.before,
                program=(sys.executable, "-m", "podgpu") if IS_WHOLE else PODGPU,
                variables=self.variables,
                context=self.context,
                headers=self.headers,
                stderr=log,
            ) as agent,
        ):
            self.agent = agent
            try:
                yield agent
            finally:
                self.agent = None

    def read_log(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def age(self, memory_used: float) -> float:
        """Return how many seconds ago this number was read from the card."""
        return time.monotonic() - self.began - (memory_used - BYTES_AT_FIRST) / BYTES_PER_SECOND

    def close(self) -> None:
        self._closing.close()
        self.do(asyncio.sleep(0.1))  # connections that were cut close in the loop's next turns
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


async def _made(kind: type[T]) -> T:
    """Make an object that belongs to the loop."""
    return kind()


@contextmanager
def broken_node(folder: Path, library: Path) -> Iterator[Node]:
    """Make a node that nothing is wrong with yet."""
    with kubelet_root() as root:
        node = Node(folder, library, root)
        try:
            yield node
        finally:
            node.close()
