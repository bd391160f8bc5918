"""What a timeline draws of one moment. Only `podgpu.insight` makes it."""

from msgspec import Struct


class XidMark(Struct, frozen=True, array_like=True):
    """An XID, when it was raised, and by which card."""

    at: float
    code: int
    node: str
    gpu: int
    uuid: str


class Moment(Struct, frozen=True, array_like=True):
    """A snapshot or a cluster in a few numbers."""

    at: float
    gpus: int = 0
    seen_gpus: int = 0  # of which it is known how busy they were
    busy_gpus: float | None = None
    namespaces: dict[str, float] = {}  # busy GPUs by namespace, as far as they are booked to any
    throttled_gpus: int = 0
    xids: tuple[XidMark, ...] = ()  # those that were raised shortly before
