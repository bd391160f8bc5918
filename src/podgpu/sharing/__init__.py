"""How GPUs are shared: one file or folder per system, found by itself.

A system turns the device ids, resources and annotations that it understands into claims.
"""

import pkgutil
from functools import cache
from importlib import import_module

from podgpu.sharing.resolve import (
    ANNOTATION,
    MANY_CLAIMS,
    ambiguous_claims,
    annotations_of,
    cards,
    claims,
    concerns,
    excused,
    holders,
    is_gpu,
    memory_of,
    node_annotations_of,
    node_labels_of,
    observed,
    signs_of,
    statuses,
    unclaimed,
)
from podgpu.sharing.system import SharingSystem

__all__ = [
    "ANNOTATION",
    "MANY_CLAIMS",
    "SharingSystem",
    "ambiguous_claims",
    "annotations_of",
    "cards",
    "claims",
    "concerns",
    "excused",
    "holders",
    "is_gpu",
    "memory_of",
    "node_annotations_of",
    "node_labels_of",
    "observed",
    "signs_of",
    "statuses",
    "systems",
    "unclaimed",
]

PART = "sharing"  # under which its errors are counted
# Modules that are no system.
SHARED = ("folders", "inventory", "kube_cards", "resolve", "system")


def systems() -> tuple[SharingSystem, ...]:
    return _systems_in(tuple(__path__))


@cache
def _systems_in(folders: tuple[str, ...]) -> tuple[SharingSystem, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(folders) if module.name not in SHARED)
    return tuple(_system(name) for name in names)


def _system(name: str) -> SharingSystem:
    found = vars(import_module(f"{__name__}.{name}")).get("SYSTEM")
    if not isinstance(found, SharingSystem):
        raise TypeError(f"podgpu.sharing.{name} must export SYSTEM, a SharingSystem")
    return found
