"""Two tenants who share the first card: their pods as the kubelet lists them, and their processes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from podgpu.kube._gen.pods_pb2 import Metadata, PodMessage, WatchEvent
from tests.fakekubelet._gen.podresources_pb2 import AllocatableResponse, DeviceEntry
from tests.fakekubelet.kubelet import Reply
from tests.fakekubelet.rig import given, pods_api
from tests.fakenvml.fake_node import FakeProcess, h200
from tests.faults.node import DEVICES, OFFERS, WATCH, Node
from tests.faults.page import Page

ADDED, MODIFIED, DELETED = 1, 2, 3
USED = 64 << 20  # bytes that each process holds
SM = 40  # per cent of the time that each process runs
HONEST, CHEAT = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
NAMES = {HONEST: "honest", CHEAT: "cheat"}
IDS = {HONEST: "a" * 64, CHEAT: "b" * 64}
CARD = h200(0).uuid


def pod(
    uid: str, name: str = "", *, labels: dict[str, str] | None = None, notes: dict[str, str] | None = None
) -> PodMessage:
    """A running pod with one container."""
    metadata = Metadata(name=name or NAMES[uid], namespace="n", uid=uid, labels=labels, annotations=notes)
    message = PodMessage(metadata=metadata)
    message.spec.containers.add(name="c")
    message.status.phase = "Running"
    status = message.status.containers.add(name="c", container_id=f"containerd://{IDS.get(uid, uid)}")
    status.state.running.SetInParent()
    return message


def holds(**ids: str) -> Reply:
    """The answer of a kubelet that gave each pod a device."""
    return Reply(b"".join(given(id_.encode(), pod=name.encode()) for name, id_ in ids.items()))


def offered(*ids: str) -> bytes:
    """What a plugin that has registered offers."""
    entry = DeviceEntry(resource=b"nvidia.com/gpu", ids=[device_id.encode() for device_id in ids])
    return AllocatableResponse(devices=[entry]).SerializeToString()


def has(*pods: PodMessage) -> dict[str, Reply]:
    """The answers of a kubelet that has these pods."""
    return pods_api(*(pod.SerializeToString() for pod in pods))


def sound_tenants() -> dict[str, Reply]:
    return {
        OFFERS: Reply(offered(f"{CARD}::0", f"{CARD}::1")),
        DEVICES: holds(honest=f"{CARD}::0", cheat=f"{CARD}::1"),
        **has(pod(HONEST), pod(CHEAT)),
    }


def place(uid: str) -> str:
    """Return the cgroup that a tenant's processes are in."""
    return f"TOP-kubepods.slice/burstable/pod{uid}/{IDS[uid]}"


def settle(node: Node) -> None:
    """Let the kubelet have both pods."""
    node.kubelet.replies = sound_tenants()
    node.holders = {CARD: set(NAMES.values())}


def tenants(node: Node) -> Sequence[str]:
    """Let both tenants have a pod, a half of the card and a process each."""
    settle(node)
    for uid in NAMES:
        node.driver.gpus[0].processes.append(process(node.processes.start(place(uid))[0]))
    return [f"--path.procfs={node.processes.folder}"]


def process(pid: int, *, sm: int = SM, kinds: tuple[str, ...] = ("compute",)) -> FakeProcess:
    """A process as the driver lists it."""
    return FakeProcess(pid, USED, kinds, sm=sm)


@contextmanager
def listed(node: Node, *pids: int, sm: int = SM) -> Iterator[None]:
    """Let the driver list these processes too."""
    own = node.driver.gpus[0].processes
    node.driver.gpus[0].processes = [*own, *(process(pid, sm=sm) for pid in pids)]
    node.drive()
    try:
        yield
    finally:
        node.driver.gpus[0].processes = own
        node.drive()


def announce(node: Node, kind: int, *pods: PodMessage) -> None:
    """Let the kubelet's watch say that these pods came, changed or went."""
    node.do(_pushed(node.kubelet.replies[WATCH], kind, pods))


async def _pushed(watch: Reply, kind: int, pods: Sequence[PodMessage]) -> None:
    for message in pods:
        watch.push(WatchEvent(type=kind, pod=message.SerializeToString()).SerializeToString())


def memory(page: Page, name: str) -> float | None:
    return page.value("podgpu_container_memory_used_bytes", pod=name)


def processes(page: Page, name: str) -> float | None:
    return page.value("podgpu_container_processes", pod=name)


def power(page: Page, name: str) -> float:
    return page.value("podgpu_container_power_watts", pod=name) or 0.0


def strangers(page: Page, reason: str) -> float | None:
    """How many processes on the card belong to nobody, for this reason."""
    return page.value("podgpu_unattributed_processes", gpu="0", reason=reason)


def unknown_memory(page: Page) -> float | None:
    return page.value("podgpu_unattributed_memory_bytes", gpu="0", reason="unknown")


def is_fair(page: Page) -> bool:
    """Whether both pay for what each used, and it is the same."""
    shares = power(page, "honest"), power(page, "cheat")
    same_power = min(shares) > 100 and max(shares) < min(shares) * 1.05
    return same_power and memory(page, "honest") == memory(page, "cheat") == USED
