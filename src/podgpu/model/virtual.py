"""A part of a card as the library inside the container enforces it."""

from msgspec import Struct


class VirtualGpu(Struct, frozen=True, kw_only=True):
    """What one container's own library says of its part of one card.

    A tenant can write all of it, so it is shown and compared, and nobody else is ever booked by it. `pids` are
    those that were checked to belong to the pod. None is what it does not tell.
    """

    pod_uid: str
    container: str
    gpu: str
    index: int = 0
    memory_limit_bytes: int | None = None
    core_limit_ratio: float | None = None
    memory_used_bytes: int | None = None
    context_bytes: int | None = None
    module_bytes: int | None = None
    buffer_bytes: int | None = None
    sm_ratio: float | None = None
    last_kernel_at: float | None = None
    pids: tuple[int, ...] = ()
