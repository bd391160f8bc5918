"""What the API server knows of a cluster's GPUs: nodes, pods, and claims by dynamic resource allocation (DRA)."""

from msgspec import Struct

from podgpu.model.pod import Pod, Workload


class DynamicAllocation(Struct, frozen=True, kw_only=True):
    """One device of a resource claim that the kubelet lists under a container.

    It lists every device of the claim, also those of requests that the container does not use. `share_id` names the
    part of a device that several claims may have.
    """

    namespace: str
    pod: str
    container: str
    claim_namespace: str
    claim_name: str
    driver: str
    pool: str
    device: str
    share_id: str = ""


class ClaimedDevice(Struct, frozen=True, kw_only=True):
    """One device that a claim was given for one of its requests.

    Of a device that several claims may have, `consumed` is what this one has of its capacity, as Kubernetes writes
    quantities, and `share_id` names that part.
    """

    request: str
    driver: str
    pool: str
    device: str
    share_id: str = ""
    consumed: dict[str, str] = {}


class ResourceClaim(Struct, frozen=True, kw_only=True):
    """`pod_uids` are the pods it is reserved for. `pod_name` is what a pod calls one that was made from a template.

    `classes` are the device classes that it asks for, kept as long as it was given no devices.
    """

    namespace: str
    name: str
    pod_name: str = ""
    devices: tuple[ClaimedDevice, ...] = ()
    pod_uids: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


class PoolDevice(Struct, frozen=True, kw_only=True):
    """One device of a ResourceSlice. `attributes` without their driver's domain, text and numbers as text.

    `capacity` also without the domain, as Kubernetes writes quantities. `node` is empty if not known.
    """

    driver: str
    pool: str
    device: str
    attributes: dict[str, str] = {}
    capacity: dict[str, str] = {}
    node: str = ""


class KubeNode(Struct, frozen=True, kw_only=True):
    """A node. Of labels and annotations only those are kept that say something about GPUs."""

    name: str
    address: str = ""  # its internal IP address; empty if not known
    ready: bool | None = None  # absent if not known
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    allocatable: dict[str, str] = {}  # extended resources, as Kubernetes writes quantities
    capacity: dict[str, str] = {}  # the same before what is broken or reserved is taken off


class KubeObjects(Struct, frozen=True, kw_only=True):
    """The same tuples for as long as nothing in them changes. `workloads` are by the UID of the pod."""

    at: float  # seconds since 1970
    nodes: tuple[KubeNode, ...] = ()
    pods: tuple[Pod, ...] = ()  # of all nodes, and those that wait for one
    claims: tuple[ResourceClaim, ...] = ()
    devices: tuple[PoolDevice, ...] = ()  # what drivers offer, from resource slices
    workloads: dict[str, Workload] = {}
