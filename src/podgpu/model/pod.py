"""What runs on the node: pods and their containers, their allocations, and the owners of processes."""

from msgspec import Struct


class ContainerRef(Struct, frozen=True, order=True, gc=False):
    """A container by name. Two pods of one name with two UIDs are two pods."""

    namespace: str  # empty outside Kubernetes
    pod: str  # empty outside Kubernetes
    container: str  # outside Kubernetes a title, such as `docker/web`
    pod_uid: str = ""  # empty if not known

    @property
    def names(self) -> tuple[str, str, str]:
        return self.namespace, self.pod, self.container


class OwnerReference(Struct, frozen=True, kw_only=True, gc=False):
    """The owner that a pod names."""

    kind: str  # such as `ReplicaSet`
    name: str  # of the owner
    uid: str  # of the owner
    api_version: str = ""  # such as `apps/v1`; empty if not known


class Workload(Struct, frozen=True, kw_only=True, gc=False):
    """What a pod was made for: its topmost owner, or the pod itself."""

    kind: str  # such as `Deployment`; `Pod` for a pod of its own
    name: str  # of the workload


class ClaimUse(Struct, frozen=True, gc=False):
    """A container's use of a resource claim."""

    claim: str  # the pod's own name for it
    request: str = ""  # one of its requests; empty for all of them


class PodContainer(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One container of a pod.

    For a dynamic resource a pair of `devices` is (`claim:NAME/REQUEST`, `DRIVER/POOL/DEVICE`).
    """

    name: str  # of the container
    container_id: str = ""  # the runtime's id; empty until it was created
    image: str = ""  # as the runtime names it; empty if not known
    cgroup: str = ""  # its path; empty until a process of a pod has shown how the kubelet names them
    running: bool = False  # whether it runs now
    is_init: bool = False  # whether it is an init container
    is_sidecar: bool | None = None  # true for an init container that keeps running beside the others; else absent
    is_ephemeral: bool = False  # whether it is an ephemeral container
    devices: tuple[tuple[str, str], ...] = ()  # (resource, device id), where the status has them
    limits: dict[str, str] = {}  # on extended resources, as Kubernetes writes quantities
    uses: tuple[ClaimUse, ...] = ()  # resource claims it uses


class ExtendedUse(Struct, frozen=True, kw_only=True, gc=False):
    """An extended resource of a container that is served by a request of the pod's special resource claim."""

    container: str  # name of the container
    resource: str  # the extended resource
    request: str  # the request of the claim that serves it


class Waiting(Struct, frozen=True, kw_only=True, gc=False):
    """Why a pod has no node."""

    since: float | None = None  # seconds since 1970, when the pod was made; absent if not known
    reason: str = ""  # in the scheduler's words; empty if it said nothing


class Pod(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A pod on this node. Its containers are in the order of its spec only where the spec is known."""

    namespace: str  # of the pod
    name: str  # of the pod
    uid: str  # as the API server knows it
    phase: str = ""  # such as `Running`; empty if not known
    started_at: float | None = None  # seconds since 1970, when the node took it on; absent if not known
    host_ip: str = ""  # the node's address, by the pod's status; empty if not known
    qos: str = ""  # `guaranteed`, `burstable` or `besteffort`; empty if not known
    static_hash: str = ""  # the UID that a static pod's cgroup carries; empty for other pods
    labels: dict[str, str] = {}  # those that `--kube.pod-labels` allows
    annotations: dict[str, str] = {}  # never in the document: people keep secrets in them
    submitter: str = ""  # the variable `SUBMITTER` of its first container; empty without one
    cluster: str = ""  # the annotation `clusterName`; empty without one
    owner: OwnerReference | None = None  # its controller; absent without one
    scheduler: str = ""  # not in the document: the one that its spec names, if it is not Kubernetes' own
    containers: tuple[PodContainer, ...] = ()  # in the order of the spec, init containers first
    left_out: int | None = None  # containers that it has beyond those; absent if there are none
    resource_claims: dict[str, str] = {}  # from the pod's own name for a claim to the ResourceClaim's
    extended_claim: str = ""  # the claim made for its extended resources; empty without one
    extended: tuple[ExtendedUse, ...] = ()  # extended resources that this claim serves
    node: str = ""  # where it runs, if pods of all nodes are listed
    waiting: Waiting | None = None  # what for; absent once it has a node
    workload: Workload | None = None  # what it was made for; absent if not known

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def has_claims(self) -> bool:
        """Whether it may have devices by a resource claim."""
        return bool(self.resource_claims or self.extended_claim or any(container.uses for container in self.containers))

    @property
    def main_containers(self) -> list[PodContainer]:
        """Those that are neither init nor ephemeral containers."""
        return [container for container in self.containers if not (container.is_init or container.is_ephemeral)]


class Allocation(Struct, frozen=True, kw_only=True, gc=False):
    """One device the kubelet gave to one container, by the plugin's own id for it."""

    namespace: str  # of the pod
    pod: str  # its name
    container: str  # the container that the device is allocated to
    resource: str  # such as `nvidia.com/gpu`
    device_id: str  # the device plugin's own id; empty if not known
    units: int = 1  # how many devices they are, where their ids are not known
    memory_bytes: int | None = None  # how much of a card's memory they are; absent if not known
    disputed: bool = False  # the kubelet lists the device for another pod too

    @property
    def names(self) -> tuple[str, str, str]:
        """Those of the container, as in `ContainerRef`."""
        return self.namespace, self.pod, self.container


class Owner(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What a process's cgroup says. Without a pod it is a container, or a Slurm job, outside Kubernetes."""

    pod_uid: str | None = None  # absent outside Kubernetes
    container_id: str | None = None  # absent if the cgroup names none
    runtime: str | None = None  # such as `containerd`; absent if not known
    qos: str | None = None  # the pod's quality of service; absent if not known


class Holder(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A process on a GPU and whose it is, with the evidence."""

    pid: int  # in the node's PID namespace
    kind: str  # `pod`, `container` (outside Kubernetes), `host` or `unknown`
    start_time: int | None = None  # in clock ticks after boot; absent if not known
    started_at: float | None = None  # the same in seconds since 1970; absent if not known
    owner: Owner | None = None  # what its cgroup says; absent if that is nothing
    container: ContainerRef | None = None  # absent if its name is not known
    cgroup: str = ""  # the line of `/proc/PID/cgroup` that says so
    reason: str = ""  # for `unknown`, why; one of those in operations.md
    command: str = ""  # the process's own name for itself
    user: int | None = None  # number of its user; absent if not known
    title: str = ""  # outside Kubernetes: `docker/NAME`, `slurm/JOB`, `user/NAME`
    serves: bool = False  # true for an MPS server, whose time is its clients'
    mps: str | None = None  # the host's directory where it meets others of MPS; `root` for root's daemon


class ChargedCgroup(Struct, frozen=True, kw_only=True, gc=False):
    """A container's cgroup, and the bytes that the kernel charges to it, by the PCI address of the card."""

    holder: Holder
    cards: dict[str, int]


class Claim(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A container's right to a GPU, or to one of its MIG instances."""

    gpu: str  # UUID of the card
    container: ContainerRef  # who holds it
    mig: str = ""  # UUID of the MIG instance; empty for the card itself
    share: float = 1.0  # 0 to 1, of the card or instance; 0 if not known
    memory_limit_bytes: int | None = None  # absent without a limit
    core_limit_ratio: float | None = None  # 0 to 1, of the multiprocessors; absent without a limit
    resource: str = ""  # the Kubernetes resource, such as `nvidia.com/gpu`; empty if not known
    device_id: str = ""  # the id that the claim was read from
    system: str = ""  # the sharing system that understood the id
    source: str = ""  # the part that reported it
    index: int | None = None  # its number among the devices of the container, if the system counts them
    ruled_out: tuple[str, ...] | None = None  # cards that it did not mean, as its processes show; else absent


class UnplacedHolding(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Cards or MIG instances that a container was given, and of which nothing says which ones they are."""

    container: ContainerRef  # who holds them
    system: str  # the sharing system that they are of
    resource: str  # the Kubernetes resource, such as `nvidia.com/gpu`
    device_id: str = ""  # one of the ids that the kubelet lists; empty if there are none
    devices: int = 1  # how many they are, at least
    seconds: float = 0.0  # for how long this agent has seen that, times how many they are


class VirtualGpu(Struct, frozen=True, kw_only=True):
    """What one container's own library says of its part of one card.

    A tenant can write all of it, so it is shown and compared, and no other tenant is ever booked by it.
    """

    pod_uid: str  # of the pod
    container: str  # name of the container
    gpu: str  # UUID of the card
    index: int = 0  # the container's own number for the card
    memory_limit_bytes: int | None = None  # absent without a limit
    core_limit_ratio: float | None = None  # 0 to 1, of the multiprocessors; absent without a limit
    memory_used_bytes: int | None = None  # absent if not reported
    context_bytes: int | None = None  # part of the used memory; absent if not reported
    module_bytes: int | None = None  # part of the used memory; absent if not reported
    buffer_bytes: int | None = None  # part of the used memory; absent if not reported
    sm_ratio: float | None = None  # 0 to 1; absent if not reported
    last_kernel_at: float | None = None  # seconds since 1970; absent if not reported
    pids: tuple[int, ...] = ()  # those that were checked to belong to the pod
