"""Plays a scenario: two readings five seconds apart, a real kubelet socket, a real folder of processes."""

from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import msgspec

from podgpu.agent.attribution import Attribution
from podgpu.kube._gen.podresources_pb2 import AllocatableResponse, DeviceEntry
from podgpu.kube.podresources import PodResources
from podgpu.kube.procfs import Procfs
from podgpu.kube.workloads import Workloads
from podgpu.model import (
    Device,
    Gpu,
    Instance,
    MigInstance,
    PartStatus,
    Pod,
    PodContainer,
    Process,
    Reading,
    Snapshot,
)
from tests.agent.stage import StillPods, write_proc
from tests.fakekubelet.kubelet import FakeKubelet, Reply
from tests.fakekubelet.rig import given
from tests.scenarios.script import GpuScript, MigScript, NodeScript, PodScript, ProcessScript

SECONDS = 5.0
WALL = 1_760_000_000.0


async def play(script: NodeScript, proc: Path, kubelet: Path) -> Snapshot:
    owners = {process.pid: process.owner for gpu in script.gpus for process in gpu.processes}
    for pid, owner in owners.items():
        write_proc(proc, pid, cgroup(owner))
    async with FakeKubelet(kubelet) as server:
        server.replies = _kubelet(script)
        attribution = Attribution(
            interval=SECONDS,
            allocations=PodResources(kubelet),
            pod_sources=[StillPods(tuple(map(_pod, script.pods)))],
            processes=Procfs(proc),
            workloads=Workloads(None),
            pod_labels=("app",),
        )
        await attribution.attribute(_snapshot(script, 0.0))
        played = await attribution.attribute(_snapshot(script, SECONDS))
    return msgspec.structs.replace(played, parts=tuple(map(_timeless, played.parts)))


def uid(pod: str) -> str:
    return str(uuid5(NAMESPACE_OID, pod))


def container_id(container: str) -> str:
    return uuid5(NAMESPACE_OID, container).hex * 2


def cgroup(owner: str) -> str:
    if owner == "host":
        return "0::/system.slice/backup.service\n"
    if owner == "docker":
        return f"0::/system.slice/docker-{container_id(owner)}.scope\n"
    pod, _, _ = owner.rpartition("/")
    return f"0::/kubepods/burstable/pod{uid(pod)}/{container_id(owner)}\n"


def _kubelet(script: NodeScript) -> dict[str, Reply]:
    listed = b""
    for one in script.given:
        namespace, pod, container = (part.encode() for part in one.to.split("/"))
        ids = [device_id.encode() for device_id in one.ids]
        resource = one.resource.encode()
        listed += given(*ids, resource=resource, pod=pod, namespace=namespace, container=container)
    offered = AllocatableResponse(
        devices=[
            DeviceEntry(resource=resource.encode(), ids=[one.encode() for one in ids])
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
        labels=script.labels,
        annotations=script.annotations,
        containers=tuple(
            PodContainer(name=one, container_id=container_id(f"{script.name}/{one}"), running=True)
            for one in script.containers
        ),
    )


def _snapshot(script: NodeScript, at: float) -> Snapshot:
    return Snapshot(
        node="node-1",
        taken_at=WALL + at,
        interval_seconds=SECONDS,
        version="test",
        driver_version="580.159.04",
        devices=tuple(_device(index, gpu, at) for index, gpu in enumerate(script.gpus)),
        parts=(PartStatus(name="scenario", up=True),),
    )


def _device(index: int, gpu: GpuScript, at: float) -> Device:
    values = {
        "memory_used_bytes": float(gpu.memory),
        "power_watts": gpu.joules / SECONDS,
        "power_limit_watts": 700.0,
        "energy_joules_total": 1000.0 + gpu.joules * at / SECONDS,
    }
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
        ),
        readings=(
            Reading("memory_used_bytes", float(mig.memory)),
            Reading("graphics_engine_active_ratio", mig.active),
            Reading("sm_active_ratio", mig.active),
        ),
    )


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
