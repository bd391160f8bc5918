"""A container's right to a GPU, or to a part of one."""

from msgspec import Struct

from podgpu.model.pod import ContainerRef


class Claim(Struct, frozen=True, kw_only=True):
    """A container's right to a GPU, or to one of its MIG instances.

    `share` is the part it was given of the card or instance, 0 to 1. `system` is the sharing system that found the
    claim, `device_id` the id it was read from, `source` the part that reported it. `index` is the number of the device
    among those of the container, if the system counts them.
    """

    gpu: str
    container: ContainerRef
    mig: str = ""
    share: float = 1.0
    memory_limit_bytes: int | None = None
    core_limit_ratio: float | None = None
    resource: str = ""
    device_id: str = ""
    system: str = ""
    source: str = ""
    index: int | None = None
