"""Who runs on the node: pods and their containers, what the kubelet gave them, and whose a process is."""

from msgspec import Struct


class ContainerRef(Struct, frozen=True, order=True, gc=False):
    """A container by name. Two pods of one name with two UIDs are two pods."""

    namespace: str
    pod: str
    container: str
    pod_uid: str = ""


class OwnerReference(Struct, frozen=True, kw_only=True, gc=False):
    kind: str
    name: str
    uid: str
    api_version: str = ""


class Workload(Struct, frozen=True, kw_only=True, gc=False):
    """What a pod was made for: its topmost owner, or the pod itself."""

    kind: str
    name: str


class ClaimUse(Struct, frozen=True, gc=False):
    """A container's use of a resource claim, by the pod's own name for it. No `request` means all of them."""

    claim: str
    request: str = ""


class PodContainer(Struct, frozen=True, kw_only=True, gc=False):
    """`devices` are (resource, device id) pairs from the pod's own status, where Kubernetes tells them.

    For a dynamic resource the pair is (`claim:NAME/REQUEST`, `DRIVER/POOL/DEVICE`). `limits` are those on extended
    resources, `nvidia.com/gpu` and the like, as Kubernetes writes quantities.
    """

    name: str
    container_id: str = ""
    running: bool = False
    is_init: bool = False
    is_ephemeral: bool = False
    devices: tuple[tuple[str, str], ...] = ()
    limits: dict[str, str] = {}
    uses: tuple[ClaimUse, ...] = ()


class ExtendedUse(Struct, frozen=True, kw_only=True, gc=False):
    """An extended resource of a container that is served by a request of the pod's special resource claim."""

    container: str
    resource: str
    request: str


class Pod(Struct, frozen=True, kw_only=True, gc=False):
    """`static_hash` is the UID that a static pod's cgroup carries; the API server knows it by another.

    `containers` come as the pod's spec lists them, init containers first and ephemeral ones last, where the spec is
    known. `resource_claims` goes from the pod's own name for a claim to the ResourceClaim's. `node` is where it runs,
    if pods of all nodes are listed.
    """

    namespace: str
    name: str
    uid: str
    phase: str = ""
    static_hash: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner: OwnerReference | None = None
    containers: tuple[PodContainer, ...] = ()
    resource_claims: dict[str, str] = {}
    extended_claim: str = ""
    extended: tuple[ExtendedUse, ...] = ()
    node: str = ""
    workload: Workload | None = None

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


class Allocation(Struct, frozen=True, kw_only=True, gc=False):
    """One device the kubelet gave to one container, by the plugin's own id for it."""

    namespace: str
    pod: str
    container: str
    resource: str
    device_id: str


class Owner(Struct, frozen=True, kw_only=True, gc=False):
    """What a process's cgroup says. No `pod_uid` means a container, or a Slurm job, outside Kubernetes."""

    pod_uid: str | None = None
    container_id: str | None = None
    runtime: str | None = None
    qos: str | None = None


class Holder(Struct, frozen=True, kw_only=True, gc=False):
    """A process on a GPU and whose it is, with the evidence.

    `kind` is one of `pod`, `container` (outside Kubernetes), `host` and `unknown`; for `unknown`, `reason` says why.
    `container` is set when the pod's name is known too. `command` is the process's own name for itself, `user` the
    number of its user, `title` who it is outside Kubernetes: `docker/NAME`, `slurm/JOB`, `user/NAME`. `serves` tells
    that it is an MPS server: its time is its clients'.
    """

    pid: int
    kind: str
    start_time: int | None = None
    owner: Owner | None = None
    container: ContainerRef | None = None
    cgroup: str = ""
    reason: str = ""
    command: str = ""
    user: int | None = None
    title: str = ""
    serves: bool = False
