"""A kubelet as far as its sockets go, which gave a replica of a card to each pod: `kubelet.py ROOT UUID POD …`."""

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.fakekubelet.kubelet import FakeKubelet, Reply  # noqa: E402 - the path is set above
from tests.fakekubelet.rig import given, pods_api, running_pod  # noqa: E402 - as above
from tests.gpu.pods import NAMESPACE, container_id, pod_uid  # noqa: E402 - as above


async def serve(root: Path, uuid: str, names: list[str]) -> None:
    listed = [
        given(f"{uuid}::{number}".encode(), pod=name.encode(), namespace=NAMESPACE.encode(), container=b"main")
        for number, name in enumerate(names)
    ]
    pods = [running_pod(NAMESPACE, name, pod_uid(name), "main", container_id(name)) for name in names]
    async with FakeKubelet(root) as kubelet:
        kubelet.replies |= {"/v1.PodResourcesLister/List": Reply(b"".join(listed)), **pods_api(*pods)}
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
