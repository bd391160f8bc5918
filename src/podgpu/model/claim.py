"""A container's right to a GPU, or to a part of one."""

from msgspec import Struct

from podgpu.model.pod import ContainerRef


class Claim(Struct, frozen=True, kw_only=True, gc=False):
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
