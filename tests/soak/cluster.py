"""The pods of a node that keeps changing, as its kubelet and its API server both show them."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpclib.server import Stream

from podgpu.kube._gen.pods_pb2 import (
    ContainerSpec,
    ContainerStatus,
    ListResponse,
    Metadata,
    PodMessage,
    PodSpec,
    PodStatus,
    Running,
    State,
    WatchEvent,
)
from tests.fakeapi.server import FakeApi
from tests.fakekubelet.kubelet import FakeKubelet, Reply
from tests.fakekubelet.rig import given

NODE = "soak-node"
DEVICES, PODS, WATCH = (
    "/v1.PodResourcesLister/List",
    "/v1alpha1.Pods/ListPods",
    "/v1alpha1.Pods/WatchPods",
)
_ADDED, _DELETED, _SYNCED = 1, 3, 4


@dataclass(frozen=True)
class SoakPod:
    """One container with one device: `gpu` and `mig` say where it is, `device_id` how the plugin wrote it."""

    name: str
    uid: str
    container_id: str
    gpu: str
    mig: str
    device_id: str

    def given(self) -> bytes:
        return given(self.device_id.encode(), pod=self.name.encode(), namespace=b"team", container=b"main")

    def message(self) -> bytes:
        status = ContainerStatus(
            name="main", container_id=f"containerd://{self.container_id}", state=State(running=Running())
        )
        return PodMessage(
            metadata=Metadata(name=self.name, namespace="team", uid=self.uid),
            spec=PodSpec(containers=[ContainerSpec(name="main")]),
            status=PodStatus(phase="Running", containers=[status]),
        ).SerializeToString()

    def object(self, version: int) -> dict[str, Any]:
        status = {
            "name": "main",
            "containerID": f"containerd://{self.container_id}",
            "state": {"running": {}},
        }
        return {
            "metadata": {
                "name": self.name,
                "namespace": "team",
                "uid": self.uid,
                "resourceVersion": str(version),
            },
            "spec": {"nodeName": NODE, "containers": [{"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": [status]},
        }


class PodStream(Reply):
    """A watch that begins with all pods and follows them, for however many calls there are."""

    def __init__(self, pods: dict[str, SoakPod]) -> None:
        super().__init__()
        self._pods = pods
        self._readers: set[asyncio.Queue[bytes]] = set()

    def tell(self, kind: int, pod: SoakPod) -> None:
        for reader in self._readers:
            reader.put_nowait(_event(kind, pod.message()))

    async def send(self, stream: Stream[bytes, bytes]) -> None:
        news: asyncio.Queue[bytes] = asyncio.Queue()
        self._readers.add(news)
        try:
            for pod in list(self._pods.values()):
                await stream.send_message(_event(_ADDED, pod.message()))
            await stream.send_message(_event(_SYNCED, b""))
            while True:
                await stream.send_message(await news.get())
        finally:
            self._readers.discard(news)


@dataclass
class Cluster:
    kubelet: FakeKubelet
    api: FakeApi = field(default_factory=FakeApi)
    pods: dict[str, SoakPod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stream = PodStream(self.pods)
        self.answer_truly()

    @classmethod
    def at(cls, root: Path) -> "Cluster":
        return cls(FakeKubelet(root))

    async def start(self) -> None:
        await self.kubelet.start()
        await self.api.start()

    async def stop(self) -> None:
        await self.kubelet.stop()
        await self.api.stop()

    def add(self, pod: SoakPod) -> None:
        self.pods[pod.uid] = pod
        self._changed("ADDED", _ADDED, pod)

    def remove(self, pod: SoakPod) -> None:
        del self.pods[pod.uid]
        self._changed("DELETED", _DELETED, pod)

    def answer_truly(self) -> None:
        """Let the kubelet answer what is so, whatever it answered before."""
        listed = ListResponse(pods=[pod.message() for pod in self.pods.values()])
        self.kubelet.replies |= {
            DEVICES: Reply(b"".join(pod.given() for pod in self.pods.values())),
            PODS: Reply(listed.SerializeToString()),
            WATCH: self._stream,
        }

    def _changed(self, word: str, kind: int, pod: SoakPod) -> None:
        self.api.version += 1
        self.api.pods = [listed.object(self.api.version) for listed in self.pods.values()]
        self.api.event(word, pod.object(self.api.version))
        # An hour has many events, and no watch asks for old ones.
        del self.api.requests[:-100], self.kubelet.calls[:-100]
        self._stream.tell(kind, pod)
        self.answer_truly()


def _event(kind: int, pod: bytes) -> bytes:
    return WatchEvent(type=kind, pod=pod).SerializeToString()
