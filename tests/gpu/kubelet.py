"""A kubelet as far as its sockets go, which gave a replica of a card to each pod: `kubelet.py ROOT UUID POD …`."""

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from podgpu.kube._gen.pods_pb2 import (  # noqa: E402 - the path is set above
    ContainerStatus,
    ListResponse,
    Metadata,
    PodMessage,
    PodStatus,
    WatchEvent,
)
from tests.fakekubelet.kubelet import FakeKubelet, Reply  # noqa: E402 - as above
from tests.fakekubelet.rig import given  # noqa: E402 - as above
from tests.gpu.pods import NAMESPACE, container_id, pod_uid  # noqa: E402 - as above

ADDED, SYNCED = 1, 4  # kinds of events of a watch


def pod(name: str) -> bytes:
    container = ContainerStatus(name="main", container_id=f"containerd://{container_id(name)}")
    message = PodMessage(
        metadata=Metadata(namespace=NAMESPACE, name=name, uid=pod_uid(name)),
        status=PodStatus(phase="Running", containers=[container]),
    )
    return message.SerializeToString()


async def serve(root: Path, uuid: str, names: list[str]) -> None:
    listed = [
        given(f"{uuid}::{number}".encode(), pod=name.encode(), namespace=NAMESPACE.encode(), container=b"main")
        for number, name in enumerate(names)
    ]
    pods = [pod(name) for name in names]
    events = [*(WatchEvent(type=ADDED, pod=each) for each in pods), WatchEvent(type=SYNCED)]
    async with FakeKubelet(root) as kubelet:
        kubelet.replies |= {
            "/v1.PodResourcesLister/List": Reply(b"".join(listed)),
            "/v1alpha1.Pods/ListPods": Reply(ListResponse(pods=pods).SerializeToString()),
            "/v1alpha1.Pods/WatchPods": Reply(*(event.SerializeToString() for event in events), hangs=True),
        }
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
