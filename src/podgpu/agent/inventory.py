"""What there is to share on this node, gathered once per cycle.

No part is waited for longer than half a cycle: a kubelet that does not answer must not hold up the numbers, and its
last answer counts until then.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial

from podgpu import sharing
from podgpu.model import Allocation, Device, PartStatus, Pod
from podgpu.model.ports import AllocationSource, ResourceClaimSource
from podgpu.sharing.inventory import READINGS, Host, Inventory, Observation
from podgpu.supervise import LatestReply, Work

BELIEVED_SECONDS = 600.0  # how long the last allocations count while the kubelet is away


def _facts(device: Device) -> tuple[object, ...]:
    """The readings of a card that sharing systems use. Its other readings change all the time."""
    return (
        device.gpu,
        device.fault is None,
        [instance.mig for instance in device.instances],
        [reading for reading in device.readings if reading.metric in READINGS],
        [process.kinds for process in device.processes],
    )


class InventoryCollector:
    def __init__(
        self,
        *,
        patience: float,
        systems: Sequence[sharing.SharingSystem],
        allocations: AllocationSource | None = None,
        dynamics: ResourceClaimSource | None = None,
        host: Host | None = None,
        ratios: Sequence[float] = (),
        namespaces: Sequence[str] = (),
    ) -> None:
        self._systems = systems
        self._allocations = allocations
        self._dynamics = dynamics
        self._ratios = ratios
        self._namespaces = namespaces
        self._allocated = LatestReply(allocations.read, patience) if allocations else None
        self._observed = LatestReply(partial(self._observe, host), patience) if host else None
        self._host_errors: Counter[str] = Counter()
        self._inputs: tuple[object, ...] = ()  # all that the inventory rests on
        self._inventory = Inventory(())

    async def take(
        self,
        devices: Sequence[Device],
        pods: tuple[Pod, ...],
        reported: Sequence[Allocation] = (),
        reporter: str = "",
    ) -> Inventory:
        """Return the same inventory as before if nothing in it has changed.

        `reported` is what the source of the numbers, the `reporter`, says about who holds what. It counts if no kubelet
        can be believed.
        """
        allocated = await self._allocated.get() if self._allocated else None
        seen = await self._observed.get() if self._observed else None
        believed = allocated if self._is_believed() else None
        dynamic = believed.dynamic if believed else ()
        if self._dynamics:
            self._dynamics.follow(pods, dynamic)
        allocations = believed.devices if believed else tuple(reported)
        source = self._allocations.name if believed and self._allocations else reporter
        allocatable = allocated.allocatable if allocated else ()
        resource_claims = self._dynamics.claims() if self._dynamics else ()
        pool_devices = self._dynamics.devices() if self._dynamics else ()
        vgpus = seen.vgpus if seen else ()
        cards = tuple(map(_facts, devices))
        inputs = (
            cards,
            allocations,
            dynamic,
            source,
            allocatable,
            resource_claims,
            pool_devices,
            vgpus,
            pods,
        )
        if inputs != self._inputs:
            self._inputs = inputs
            self._inventory = Inventory(
                devices,
                allocations,
                allocatable,
                pods,
                dynamic=dynamic,
                resource_claims=resource_claims,
                pool_devices=pool_devices,
                vgpus=vgpus,
                ratios=self._ratios,
                source=source,
                namespaces=self._namespaces,
            )
        return self._inventory

    def works(self) -> list[tuple[str, Work]]:
        """The tasks that keep it fresh."""
        return [(self._dynamics.name, self._dynamics.run)] if self._dynamics else []

    async def close(self) -> None:
        for latest in (self._allocated, self._observed):
            if latest:
                await latest.close()

    def statuses(self) -> list[PartStatus]:
        statuses = [self._allocations.status()] if self._allocations else []
        dynamics = self._dynamics.status() if self._dynamics else None
        return [*statuses, dynamics] if dynamics else statuses

    @property
    def errors(self) -> Counter[tuple[str, str]]:
        counted = [(part.name, part.errors) for part in (self._allocations, self._dynamics) if part]
        counted.append((sharing.PART, self._host_errors))
        return Counter(
            {(name, reason): count for name, errors in counted for reason, count in errors.items()}
        )

    def _is_believed(self) -> bool:
        age = self._allocations.status().age_seconds if self._allocations else None
        return age is not None and age <= BELIEVED_SECONDS

    async def _observe(self, host: Host) -> Observation:
        seen = await asyncio.to_thread(sharing.observed, host, self._systems)
        self._host_errors.update(seen.errors)
        return seen
