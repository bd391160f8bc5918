"""Plays a scenario: two readings five seconds apart, a real kubelet socket, a real folder of processes."""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import msgspec

from podgpu.agent.attribution import Attribution
from podgpu.host.owner_names import OwnerNames
from podgpu.host.procfs import ALWAYS, Procfs
from podgpu.host.system_files import guest_cards
from podgpu.kube.kubelet.podresources import PodResources
from podgpu.kube.workloads import Workloads
from podgpu.model import (
    ClaimUse,
    Device,
    DynamicAllocation,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    PartStatus,
    Pod,
    PodContainer,
    PoolDevice,
    Process,
    Reading,
    ResourceClaim,
    Snapshot,
)
from podgpu.sharing.inventory import Host
from tests.agent.stage import StillPods, write_proc
from tests.fakekubelet._gen.podresources_pb2 import AllocatableResponse, DeviceEntry
from tests.fakekubelet.kubelet import FakeKubelet, Reply
from tests.fakekubelet.rig import given, given_dynamically
from tests.patience import PATIENCE
from tests.scenarios.script import BinaryScript, GpuScript, MigScript, NodeScript, PodScript, ProcessScript
from tests.tree import judged

SECONDS = 5.0
WALL = 1_760_000_000.0


async def play(script: NodeScript, folder: Path, kubelet: Path) -> Snapshot:
    """`folder` is empty; the node's /proc and files are made in it."""
    proc, root = folder / "proc", folder / "root"
    _write(script, proc, root)
    processes = ScriptedProcesses(proc, script)
    async with FakeKubelet(kubelet) as server:
        server.replies = _kubelet(script)
        allocations = PodResources(kubelet, deadline=PATIENCE) if script.is_kubernetes else None
        attribution = Attribution(
            interval=2 * PATIENCE,  # half of it is how long it waits for the kubelet
            allocations=allocations,
            dynamics=ScriptedClaims(script),
            host=Host(root=root, pod_uid=processes.pod_uid),
            ratios=script.ratios,
            namespaces=script.namespaces,
            pod_sources=[StillPods(tuple(map(_pod, script.pods)))],
            processes=processes,
            outsiders=None if script.is_kubernetes else OwnerNames(root),
            books_outsiders=not script.is_kubernetes,
            workloads=Workloads(None),
            pod_labels=("app",),
            to_close=[allocations] if allocations else [],
        )
        await attribution.attribute(_devices(script, 0.0), WALL)
        played = await attribution.attribute(_devices(script, SECONDS), WALL + SECONDS)
        await attribution.close()
    snapshot = Snapshot(
        node="node-1",
        taken_at=WALL + SECONDS,
        interval_seconds=SECONDS,
        version="test",
        driver_version="580.159.04",
        cards=played.cards,
        guests=guest_cards(root / "sys") or None,
        pods=played.pods,
        unclaimed=played.unclaimed,
        unplaced=played.unplaced or None,
        sharing=played.sharing,
        parts=tuple(map(_timeless, (PartStatus(name="scenario", up=True), *played.parts))),
    )
    return judged(snapshot)


class ScriptedProcesses(Procfs):
    """A real folder of processes, except for their users: only root could make files that belong to others.

    A scenario's clock is not the kernel's, so it does not say when a process was seen.
    """

    def __init__(self, root: Path, script: NodeScript) -> None:
        super().__init__(root)
        self._users = {process.pid: process.user for gpu in script.gpus for process in gpu.processes}

    def holders(self, pids: Iterable[int], seen_at: Mapping[int, float] = ALWAYS) -> dict[int, Holder]:
        return {
            pid: holder if holder.user is None else msgspec.structs.replace(holder, user=self._users[pid])
            for pid, holder in super().holders(pids).items()
        }


class ScriptedClaims:
    name = "resource-claims"

    def __init__(self, script: NodeScript) -> None:
        self.errors: Counter[str] = Counter()
        self._script = script

    async def run(self) -> None:
        return

    def follow(self, pods: Iterable[Pod], listed: Iterable[DynamicAllocation]) -> None:
        return

    def claims(self) -> tuple[ResourceClaim, ...]:
        return tuple(self._script.resource_claims)

    def devices(self) -> tuple[PoolDevice, ...]:
        return tuple(self._script.pool_devices)

    def status(self) -> PartStatus | None:
        return PartStatus(name=self.name, up=True) if self._script.resource_claims else None


def _write(script: NodeScript, proc: Path, root: Path) -> None:
    proc.mkdir()
    processes = {process.pid: process for gpu in script.gpus for process in gpu.processes}
    for pid, process in processes.items():
        write_proc(proc, pid, cgroup(process.owner), command=process.command)
        (proc / str(pid) / "mountinfo").write_text(mountinfo(*process.mounts))
    write_proc(proc, 1, "0::/init.scope\n", command="systemd")
    (proc / "1/mountinfo").write_text(mountinfo("/"))
    (proc / "stat").write_text(f"btime {int(WALL) - 86400}\n")
    files = {name: text.encode() for name, text in script.files.items()}
    for name, data in (files | {name: _bytes(binary) for name, binary in script.binaries.items()}).items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _bytes(script: BinaryScript) -> bytes:
    data = bytearray(script.size)
    for offset, form, value in script.fields:
        struct.pack_into(form, data, offset, value.encode() if isinstance(value, str) else value)
    return bytes(data)


def mountinfo(*folders: str) -> str:
    """As the kernel writes it, for folders of the host's only filesystem."""
    lines = [f"{number} 1 8:1 {folder} {folder} rw - ext4 /dev/sda1 rw\n" for number, folder in enumerate(folders, 20)]
    return "".join(lines)


def uid(pod: str) -> str:
    return str(uuid5(NAMESPACE_OID, pod))


def container_id(container: str) -> str:
    return uuid5(NAMESPACE_OID, container).hex * 2


def cgroup(owner: str) -> str:
    if owner == "host":
        return "0::/system.slice/backup.service\n"
    if owner == "docker":
        return f"0::/system.slice/docker-{container_id(owner)}.scope\n"
    if owner.startswith("0::"):
        return f"{owner}\n"
    pod, _, _ = owner.rpartition("/")
    return f"0::/kubepods/burstable/pod{uid(pod)}/{container_id(owner)}\n"


def _kubelet(script: NodeScript) -> dict[str, Reply]:
    listed = b""
    for allocated in script.given:
        namespace, pod, container = (part.encode() for part in allocated.to.split("/"))
        ids = [device_id.encode() for device_id in allocated.ids]
        resource = allocated.resource.encode()
        listed += given(*ids, resource=resource, pod=pod, namespace=namespace, container=container)
    for claimed in script.claimed:
        namespace, pod, container = (part.encode() for part in claimed.to.split("/"))
        devices = [tuple(part.encode() for part in device.split("/")) for device in claimed.devices]
        claim = claimed.claim.encode()
        listed += given_dynamically(*devices, claim=claim, pod=pod, namespace=namespace, container=container)
    offered = AllocatableResponse(
        devices=[
            DeviceEntry(resource=resource.encode(), ids=[device_id.encode() for device_id in ids])
            for resource, ids in script.allocatable.items()
        ]
    )
    return {
        "/v1.PodResourcesLister/List": Reply(listed),
        "/v1.PodResourcesLister/GetAllocatableResources": Reply(offered.SerializeToString()),
    }


def _pod(script: PodScript) -> Pod:
    namespace, _, name = script.name.partition("/")
    return Pod(
        namespace=namespace,
        name=name,
        uid=uid(script.name),
        phase=script.phase,
        qos="burstable",
        scheduler=script.scheduler,
        labels=script.labels,
        annotations=script.annotations,
        containers=tuple(_container(script, container) for container in (*script.init, *script.containers)),
        resource_claims=script.resource_claims,
        extended_claim=script.extended_claim,
        extended=script.extended,
    )


def _container(script: PodScript, name: str) -> PodContainer:
    uses = (use.partition("/") for use in script.uses.get(name, ()))
    return PodContainer(
        name=name,
        container_id=container_id(f"{script.name}/{name}"),
        running=name not in script.init,
        is_init=name in script.init,
        devices=tuple(script.devices.get(name, ())),
        limits=script.limits.get(name, {}),
        uses=tuple(ClaimUse(claim, request) for claim, _, request in uses),
    )


def _devices(script: NodeScript, at: float) -> list[Device]:
    return [_device(index, gpu, at) for index, gpu in enumerate(script.gpus)]


def _device(index: int, gpu: GpuScript, at: float) -> Device:
    values = {
        "memory_used_bytes": float(gpu.memory),
        "power_watts": gpu.joules / SECONDS,
        "power_limit_watts": 700.0,
        "energy_joules_total": 1000.0 + gpu.joules * at / SECONDS,
    }
    if gpu.memory_total is not None:
        values["memory_total_bytes"] = float(gpu.memory_total)
    if gpu.busy is not None:
        values["utilization_ratio"] = gpu.busy
    return Device(
        gpu=Gpu(
            uuid=gpu.uuid,
            index=index,
            minor=gpu.minor,
            model="NVIDIA H200",
            mig_enabled=bool(gpu.migs),
            multiprocessors=gpu.multiprocessors,
        ),
        at=at,
        readings=tuple(Reading(name, value) for name, value in values.items()),
        instances=tuple(map(_instance, gpu.migs)),
        processes=tuple(map(_process, gpu.processes)),
    )


def _instance(mig: MigScript) -> Instance:
    return Instance(
        mig=MigInstance(
            uuid=mig.uuid,
            gpu_instance_id=mig.gi,
            compute_instance_id=mig.ci,
            profile=mig.profile,
            multiprocessors=mig.multiprocessors,
            start=mig.start,
        ),
        readings=tuple(_instance_readings(mig)),
    )


def _instance_readings(mig: MigScript) -> Iterator[Reading]:
    """Only the first compute instance of a GPU instance has readings."""
    if mig.memory is not None:
        yield Reading("memory_used_bytes", float(mig.memory))
    if mig.active is not None:
        yield Reading("graphics_engine_active_ratio", mig.active)
        yield Reading("sm_active_ratio", mig.active)


def _process(process: ProcessScript) -> Process:
    return Process(
        pid=process.pid,
        kinds=process.kinds,
        memory_bytes=process.memory,
        gpu_instance_id=process.gi,
        compute_instance_id=None if process.gi is None else process.ci,
        sm_ratio=process.sm,
        sm_busy_us=None if process.sm is None else round(process.sm * SECONDS * 1e6),
    )


def _timeless(part: PartStatus) -> PartStatus:
    return msgspec.structs.replace(part, duration_seconds=0.0, age_seconds=0.0)
