"""What the API server knows of a whole cluster, as far as GPUs are concerned."""

from msgspec import Struct

from podgpu.model.dynamic import PoolDevice, ResourceClaim
from podgpu.model.pod import Pod, Workload


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
