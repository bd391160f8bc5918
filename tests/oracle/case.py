"""A case: a node as a sharing system's own code left it, and who may use what on it.

A file has one case on each line. `tests/oracle/README.md` names the keys.
"""

import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from podgpu.model import Device, Gpu, Instance, MigInstance, Process, Reading

SERVED = Process(pid=1, kinds=("compute",)), Process(pid=2, kinds=("mps",))  # a server and a client


class CaseMig(Struct):
    uuid: str
    gi: int
    ci: int
    profile: str = ""
    start: int | None = None
    sms: int | None = None


class CaseGpu(Struct):
    uuid: str
    index: int
    minor: int
    memory: int
    migs: list[CaseMig] | None = None
    compute_mode: int | None = None


class Given(Struct, rename={"namespace": "NS", "pod": "Pod", "container": "Container"}):
    """What the kubelet lists under one container."""

    namespace: str
    pod: str
    container: str
    resource: str = msgspec.field(name="Resource")
    ids: list[str] = msgspec.field(name="IDs")


class Right(Struct, rename={"namespace": "NS", "pod": "Pod", "container": "Container"}):
    """What one container may use. Memory in bytes, cores in per cent; None is not defined."""

    namespace: str
    pod: str
    container: str
    gpu: str = msgspec.field(name="GPU")
    mig: str = msgspec.field(name="Mig", default="")
    memory: int | None = msgspec.field(name="Memory", default=None)
    cores: float | None = msgspec.field(name="Cores", default=None)
    share: float | None = msgspec.field(name="Share", default=None)


class DynamicGiven(Struct, kw_only=True):
    """A device of a resource claim that the kubelet lists under one container."""

    namespace: str
    pod: str
    container: str
    claim: str
    driver: str
    pool: str
    device: str


class Case(Struct, rename="pascal"):
    """`claims` and `slices` are objects of resource.k8s.io/v1. Files of plain plugins have none."""

    kind: str | None = None
    gpus: list[CaseGpu] = msgspec.field(name="GPUs", default_factory=list)
    allocatable: dict[str, list[str]] | None = None
    given: list[Given] | None = None
    pods: list[Raw] | None = None
    truth: list[Right] | None = None
    devices: list[dict[str, Any]] | None = None
    owner: dict[str, tuple[str, str]] | None = None
    dynamic: list[DynamicGiven] = []
    claims: list[dict[str, Any]] = []
    slices: list[dict[str, Any]] = []


def read(path: Path) -> Iterator[Case]:
    decode = msgspec.json.Decoder(Case).decode
    with lzma.open(path) as lines:
        yield from map(decode, lines)


def device(gpu: CaseGpu, kind: str | None) -> Device:
    """Return a card. What shares it by MPS is seen by its processes, where the case has no mode of the card."""
    readings = [Reading("memory_total_bytes", float(gpu.memory))]
    if gpu.compute_mode is not None:
        readings.append(Reading("compute_mode", float(gpu.compute_mode)))
    return Device(
        gpu=Gpu(uuid=gpu.uuid, index=gpu.index, minor=gpu.minor, mig_enabled=bool(gpu.migs)),
        readings=tuple(readings),
        instances=tuple(Instance(mig=_instance(mig)) for mig in gpu.migs or ()),
        processes=SERVED if kind == "mps" and gpu.compute_mode is None else (),
    )


def _instance(mig: CaseMig) -> MigInstance:
    return MigInstance(
        uuid=mig.uuid,
        gpu_instance_id=mig.gi,
        compute_instance_id=mig.ci,
        profile=mig.profile,
        start=mig.start,
        multiprocessors=mig.sms,
    )
