"""What was read, in a form that a test can write down."""

from podgpu.model import Allocation, Instance
from podgpu.sources.dcgm.reading import PageCard

MIB = 2**20
Key = tuple[str, ...]


def values(device: PageCard | Instance) -> dict[Key, float]:
    readings = device.device.readings if isinstance(device, PageCard) else device.readings
    return {(reading.metric, *reading.labels): reading.value for reading in readings}


def names(allocations: tuple[Allocation, ...]) -> tuple[str, ...]:
    return tuple(f"{allocation.namespace}/{allocation.pod}/{allocation.container}" for allocation in allocations)
