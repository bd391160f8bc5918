"""One line of a view of the cluster."""

from collections.abc import Sequence

from msgspec import Struct

from podgpu.model import ClusterNode
from podgpu.views.cluster.places import Place, Seat


class Row(Struct, frozen=True, kw_only=True):
    """One line. Quantities are of everything that it stands for, in base units; absent where nothing is known."""

    name: str  # of the pod, the workload, the namespace, the GPU or the node
    namespace: str = ""  # empty outside Kubernetes, and for GPUs and nodes
    kind: str = ""  # of the workload
    node: str = ""  # where it is; empty if on several
    gpus: tuple[str, ...] = ()  # the driver's numbers of its cards, with the profile of a MIG instance
    model: str = ""  # of its cards; empty if not known or mixed
    cards: int = 0  # how many cards it is on
    pods: int = 0  # how many pods it stands for
    held_gpus: float | None = None  # given to it, in whole cards
    busy_gpus: float | None = None  # used by it, in whole cards
    least_busy_gpus: float | None = None  # what that is at least; absent where there is no doubt
    most_busy_gpus: float | None = None  # what that is at most; absent where there is no doubt
    use_ratio: float | None = None  # 0 to 1, mean over its cards
    memory_used_bytes: int | None = None  # held by its processes, or in use on the card
    memory_total_bytes: int | None = None  # its limit, or what its cards have
    power_watts: float | None = None  # its part of the cards' power
    temperature_celsius: float | None = None  # of the hottest card
    idle_pods: int = 0  # pods that hold a GPU and have no process there
    idle_seconds: float | None = None  # since it last used a GPU; absent if it does, or not known
    state: str = ""  # what is worth knowing about it; empty if nothing is
    detail: str = ""  # the state in words

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Entry(Struct, frozen=True):
    """A row, and what it stands for."""

    row: Row
    key: str
    order: tuple[object, ...]  # by name, numbers in it as numbers
    places: Sequence[Place] = ()
    seats: Sequence[Seat] = ()
    node: ClusterNode | None = None
