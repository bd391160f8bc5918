"""MIG: a GPU instance has one set of profiling counters, which all its compute instances share."""

from collections.abc import Iterable

from msgspec import Struct

from podgpu.ledger.reserved import PARTS
from podgpu.model import Device, Instance
from podgpu.model.quantity import total


class GpuInstance(Struct, frozen=True, kw_only=True, gc=False):
    """`migs` are the UUIDs of its compute instances, `parts` is their share of the card. Unknown is None.

    A dcgm-exporter page does not give the number of multiprocessors, so nobody knows how large its instances are.
    """

    migs: frozenset[str]
    parts: int | None
    active: float | None
    sm_active: float | None

    @property
    def activity(self) -> int | None:
        """Parts of the whole card's time."""
        return (
            None if self.active is None or self.parts is None else round(min(self.active, 1.0) * self.parts)
        )


def gpu_instances(device: Device) -> list[GpuInstance]:
    by_id: dict[int, list[Instance]] = {}
    for instance in device.instances:
        by_id.setdefault(instance.mig.gpu_instance_id, []).append(instance)
    return [
        GpuInstance(
            migs=frozenset(one.mig.uuid for one in group),
            parts=total(parts_of(device, one) for one in group),
            active=_spoken(group, "graphics_engine_active_ratio"),
            sm_active=_spoken(group, "sm_active_ratio"),
        )
        for group in by_id.values()
    ]


def parts_by_instance(device: Device) -> dict[str, int | None]:
    return {one.mig.uuid: parts_of(device, one) for one in device.instances}


def parts_of(device: Device, instance: Instance) -> int | None:
    """Return an instance's share of its card by multiprocessors, None where their number is not known."""
    own = instance.mig.multiprocessors
    whole = device.gpu.multiprocessors or total(one.mig.multiprocessors for one in device.instances)
    return min(PARTS, own * PARTS // whole) if own and whole else None


def _spoken(group: Iterable[Instance], metric: str) -> float | None:
    """One compute instance speaks for all."""
    return next((one.value for instance in group for one in instance.readings if one.metric == metric), None)
