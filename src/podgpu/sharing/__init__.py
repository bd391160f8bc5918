"""How GPUs are shared: one file per system, found by itself.

A system turns the device ids, resources and annotations it understands into claims.
"""

import pkgutil
from collections.abc import Iterable
from importlib import import_module
from typing import Protocol

from podgpu.model import Allocation, Claim
from podgpu.sharing.inventory import Inventory


class SharingSystem(Protocol):
    """A module of this package with these three names."""

    NAME: str

    def explains(self, allocation: Allocation, inventory: Inventory) -> bool:
        """Whether the id of this allocation is one of the system's own."""

    def claims(self, inventory: Inventory) -> Iterable[Claim]: ...


def systems() -> tuple[SharingSystem, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "inventory")
    return tuple(import_module(f"{__name__}.{name}") for name in names)


def claims(inventory: Inventory, known: Iterable[SharingSystem]) -> tuple[Claim, ...]:
    return tuple(claim for system in known for claim in system.claims(inventory))


def unclaimed(inventory: Inventory, known: Iterable[SharingSystem]) -> tuple[Allocation, ...]:
    """List the allocations of GPU resources that no system understands."""
    known = tuple(known)
    return tuple(
        allocation
        for allocation in inventory.allocations
        if _is_gpu(allocation.resource) and not any(one.explains(allocation, inventory) for one in known)
    )


def _is_gpu(resource: str) -> bool:
    """Device plugins also hand out network cards and the like."""
    vendor, _, name = resource.partition("/")
    return "gpu" in name or "nvidia" in vendor or "mig-" in name or "vcuda" in name
