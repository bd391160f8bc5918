"""What a scenario's node.yaml may say. Everything is a fact of the node; nothing here knows a sharing system."""

from pathlib import Path

import msgspec
from msgspec import Struct, field

from podgpu.model import ExtendedUse, PoolDevice, ResourceClaim


class MigScript(Struct, kw_only=True, forbid_unknown_fields=True):
    uuid: str
    gi: int
    ci: int = 0
    profile: str
    multiprocessors: int
    start: int | None = None
    active: float | None = 0.0
    memory: int | None = 0


class ProcessScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """`owner` is NAMESPACE/POD/CONTAINER, `host`, `docker`, or the text of a cgroup; `user` the user's number.

    `mounts` are directories of the host that it has.
    """

    pid: int
    owner: str
    user: int = 0
    command: str = "python3"
    memory: int | None = None
    sm: float | None = None
    kinds: tuple[str, ...] = ("compute",)
    mounts: tuple[str, ...] = ()
    gi: int | None = None
    ci: int = 0


class GpuScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """`joules` is what it drew in the five seconds between the two readings, `busy` how much of them it worked."""

    uuid: str
    minor: int
    memory: int = 0
    memory_total: int | None = None
    busy: float | None = 0.0
    joules: float = 500.0
    multiprocessors: int = 132
    migs: list[MigScript] = field(default_factory=list)
    processes: list[ProcessScript] = field(default_factory=list)


class PodScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """`name` is NAMESPACE/POD. The UID and the container ids follow from it.

    `devices`, `limits` and `uses` go by the container's name; a use is CLAIM or CLAIM/REQUEST.
    """

    name: str
    phase: str = "Running"
    scheduler: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    init: tuple[str, ...] = ()
    containers: tuple[str, ...] = ("main",)
    devices: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    limits: dict[str, dict[str, str]] = field(default_factory=dict)
    uses: dict[str, list[str]] = field(default_factory=dict)
    resource_claims: dict[str, str] = field(default_factory=dict)
    extended_claim: str = ""
    extended: tuple[ExtendedUse, ...] = ()


class GivenScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """What the kubelet says it gave to NAMESPACE/POD/CONTAINER."""

    to: str
    resource: str
    ids: list[str]


class ClaimedScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """The devices of a claim, DRIVER/POOL/DEVICE, that the kubelet lists under NAMESPACE/POD/CONTAINER."""

    to: str
    claim: str
    devices: list[str]


class BinaryScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """A file of zeros but for some fields: (offset, form as `struct` has it, value)."""

    size: int
    fields: list[tuple[int, str, int | str]]


class NodeScript(Struct, kw_only=True, forbid_unknown_fields=True):
    """`story` says what the scenario shows. `files` and `binaries` are files of the node, by their path."""

    story: str
    gpus: list[GpuScript]
    is_kubernetes: bool = True
    pods: list[PodScript] = field(default_factory=list)
    given: list[GivenScript] = field(default_factory=list)
    allocatable: dict[str, list[str]] = field(default_factory=dict)
    claimed: list[ClaimedScript] = field(default_factory=list)
    resource_claims: list[ResourceClaim] = field(default_factory=list)
    pool_devices: list[PoolDevice] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    binaries: dict[str, BinaryScript] = field(default_factory=dict)
    ratios: tuple[float, ...] = ()
    namespaces: tuple[str, ...] = ()  # as --sharing.namespaces has them


def read(path: Path) -> NodeScript:
    return msgspec.yaml.decode(path.read_bytes(), type=NodeScript)
