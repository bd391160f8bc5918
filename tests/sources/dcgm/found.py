"""What was read, in a form that a test can write down."""

from podgpu.model import Allocation, Instance
from podgpu.sources.dcgm.reading import PageCard

MIB = 2**20
Key = tuple[str, ...]


def values(one: PageCard | Instance) -> dict[Key, float]:
    readings = one.device.readings if isinstance(one, PageCard) else one.readings
    return {(reading.metric, *reading.labels): reading.value for reading in readings}


def names(allocations: tuple[Allocation, ...]) -> tuple[str, ...]:
    return tuple(f"{one.namespace}/{one.pod}/{one.container}" for one in allocations)
