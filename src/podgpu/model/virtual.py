"""A part of a card as the library inside the container enforces it."""

from msgspec import Struct


class VirtualGpu(Struct, frozen=True, kw_only=True):
    """What one container's own library says of its part of one card.

    A tenant can write all of it, so it is shown and compared, and nobody else is ever booked by it.
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
