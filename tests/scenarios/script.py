"""What a scenario's node.yaml may say. Everything is a fact of the node; nothing here knows a sharing system."""

from pathlib import Path

import msgspec
from msgspec import Struct, field


class MigScript(Struct, kw_only=True, forbid_unknown_fields=True):
    uuid: str
    gi: int
    ci: int = 0
    profile: str
    multiprocessors: int
    active: float = 0.0
    memory: int = 0


class ProcessScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """`owner` is NAMESPACE/POD/CONTAINER, `host`, or `docker`."""

    pid: int
    owner: str
    memory: int | None = None
    sm: float | None = None
    kinds: tuple[str, ...] = ("compute",)
    gi: int | None = None
    ci: int = 0


class GpuScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """`joules` is what it drew in the five seconds between the two readings, `busy` how much of them it worked."""

    uuid: str
    minor: int
    memory: int = 0
    busy: float | None = 0.0
    joules: float = 500.0
    multiprocessors: int = 132
    migs: list[MigScript] = field(default_factory=list)
    processes: list[ProcessScript] = field(default_factory=list)


class PodScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """`name` is NAMESPACE/POD. The UID and the container ids follow from it."""

    name: str
    phase: str = "Running"
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    containers: tuple[str, ...] = ("main",)


class GivenScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """What the kubelet says it gave to NAMESPACE/POD/CONTAINER."""

    to: str
    resource: str
    ids: list[str]


class NodeScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """`story` says what the scenario shows."""

    story: str
    gpus: list[GpuScript]
    pods: list[PodScript] = field(default_factory=list)
    given: list[GivenScript] = field(default_factory=list)
    allocatable: dict[str, list[str]] = field(default_factory=dict)


def read(path: Path) -> NodeScript:
    return msgspec.yaml.decode(path.read_bytes(), type=NodeScript)
