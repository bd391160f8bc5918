"""The one immutable object between computing and presenting."""

from msgspec import Struct

from podgpu.model.card import Card
from podgpu.model.device import Fault, Gpu
from podgpu.model.pod import Allocation, Pod

SCHEMA = 2


class PartStatus(Struct, frozen=True, kw_only=True):
    """The state of one part the agent depends on. `age_seconds` is None until it worked once."""

    name: str
    up: bool
    fault: Fault | None = None
    duration_seconds: float = 0.0
    age_seconds: float | None = None


class ErrorCount(Struct, frozen=True, kw_only=True):
    source: str
    reason: str
    count: int


class SharingStatus(Struct, frozen=True, kw_only=True):
    """A way to share GPUs that there is a sign of on this node. `missing` says what it takes to book by it.

    `doubts` say what cannot be known of its claims, and what would settle it.
    """

    system: str
    claims: int = 0
    missing: str = ""
    doubts: tuple[str, ...] = ()


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything a view may show, joined. `demo` is true when the numbers are made up.

    `pods` are those with a claim or a process on a GPU. `unclaimed` are device ids that no sharing system understood,
    `sharing` the systems that were found.
    """

    node: str
    taken_at: float
    interval_seconds: float
    version: str
    demo: bool = False
    driver_version: str = ""
    nvml_version: str = ""
    cards: tuple[Card, ...] = ()
    pods: tuple[Pod, ...] = ()
    unclaimed: tuple[Allocation, ...] = ()
    sharing: tuple[SharingStatus, ...] = ()
    parts: tuple[PartStatus, ...] = ()
    errors: tuple[ErrorCount, ...] = ()

    def node_of(self, gpu: Gpu) -> str:
        return gpu.node or self.node

    @property
    def up(self) -> bool:
        """Whether every part works and every GPU answers."""
        return all(part.up for part in self.parts) and all(card.fault is None for card in self.cards)
