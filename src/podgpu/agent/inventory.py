"""What there is to share on this node, gathered once per cycle.

No part is waited for longer than half a cycle: a kubelet that does not answer must not hold up the numbers, and its
last answer will do meanwhile.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from msgspec import Struct

from podgpu import sharing
from podgpu.model import (
    Allocation,
    Device,
    DynamicAllocation,
    Gpu,
    MigInstance,
    PartStatus,
    Pod,
    PoolDevice,
    Reading,
    ResourceClaim,
    VirtualGpu,
)
from podgpu.model.ports import AllocationSource, ResourceClaimSource
from podgpu.sharing import inventory
from podgpu.sharing.inventory import Host, Inventory, Observation
from podgpu.supervise import Work, brief

MAP_SECONDS = 600.0  # how long the last map is believed while the kubelet is away
T = TypeVar("T")


class CardFacts(Struct, frozen=True):
    """What sharing systems look at on a card; its other readings change all the time and mean nothing to them."""

    gpu: Gpu
    answers: bool
    migs: tuple[MigInstance, ...]
    readings: tuple[Reading, ...]
    kinds: tuple[tuple[str, ...], ...]


class InventoryInputs(Struct, frozen=True, kw_only=True):
    """All that an inventory rests on: while it is equal, so are the claims."""

    cards: tuple[CardFacts, ...]
    allocations: tuple[Allocation, ...]
    dynamic: tuple[DynamicAllocation, ...]
    source: str
    allocatable: tuple[tuple[str, str], ...]
    resource_claims: tuple[ResourceClaim, ...]
    pool_devices: tuple[PoolDevice, ...]
    vgpus: tuple[VirtualGpu, ...]
    pods: tuple[Pod, ...]

    def inventory(
        self, devices: Sequence[Device], ratios: Sequence[float], namespaces: Sequence[str]
    ) -> Inventory:
        return Inventory(
            devices,
            self.allocations,
            self.allocatable,
            self.pods,
            dynamic=self.dynamic,
            resource_claims=self.resource_claims,
            pool_devices=self.pool_devices,
            vgpus=self.vgpus,
            ratios=ratios,
            source=self.source,
            namespaces=namespaces,
        )


def _facts(device: Device) -> CardFacts:
    return CardFacts(
        device.gpu,
        device.fault is None,
        tuple(instance.mig for instance in device.instances),
        tuple(reading for reading in device.readings if reading.metric in inventory.READINGS),
        tuple(process.kinds for process in device.processes),
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
        self._findings: InventoryInputs | None = None
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
        believed = allocated if self._allocations and self._is_believed() else None
        if self._dynamics:
            self._dynamics.follow(pods, believed.dynamic if believed else ())
        found = InventoryInputs(
            cards=tuple(map(_facts, devices)),
            allocations=believed.devices if believed else tuple(reported),
            dynamic=believed.dynamic if believed else (),
            source=self._allocations.name if believed and self._allocations else reporter,
            allocatable=allocated.allocatable if allocated else (),
            resource_claims=self._dynamics.claims() if self._dynamics else (),
            pool_devices=self._dynamics.devices() if self._dynamics else (),
            vgpus=seen.vgpus if seen else (),
            pods=pods,
        )
        if found != self._findings:
            self._findings = found
            self._inventory = found.inventory(devices, self._ratios, self._namespaces)
        return self._inventory

    def works(self) -> list[tuple[str, Work]]:
        """What keeps fresh by itself while it runs."""
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
        parts: list[AllocationSource | ResourceClaimSource] = [
            part for part in (self._allocations, self._dynamics) if part
        ]
        counts = {(part.name, reason): count for part in parts for reason, count in part.errors.items()}
        return Counter(
            counts | {(sharing.PART, reason): count for reason, count in self._host_errors.items()}
        )

    def _is_believed(self) -> bool:
        age = self._allocations.status().age_seconds if self._allocations else None
        return age is not None and age <= MAP_SECONDS

    async def _observe(self, host: Host) -> Observation:
        seen = await asyncio.to_thread(sharing.observed, host, self._systems)
        self._host_errors.update(seen.errors)
        return seen


class LatestReply(Generic[T]):
    """Asks again and again, one question at a time, and answers with the latest reply after `patience` seconds."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, T]], patience: float) -> None:
        self._ask = ask
        self._patience = patience
        self._reply: T | None = None
        self._asking: asyncio.Task[T] | None = None

    async def get(self) -> T | None:
        if self._asking is None:
            self._asking = brief(self._ask())
        done, _ = await asyncio.wait({self._asking}, timeout=self._patience)
        if done:
            asked, self._asking = self._asking, None
            self._reply = asked.result()
        return self._reply

    async def close(self) -> None:
        if self._asking:
            self._asking.cancel()
            await asyncio.wait({self._asking})
