"""How many of a pod's containers are read. Whoever may make pods can make one with thousands."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from podgpu.kube.bounds import MOST_CONTAINERS
from podgpu.model import Fault, PartStatus, Pod, PodContainer

TOO_MANY = "too_many_containers"


def within(containers: Iterator[PodContainer], errors: Counter[str]) -> tuple[tuple[PodContainer, ...], int]:
    """Return the first ones, and the number of those that are left out."""
    kept = tuple(islice(containers, MOST_CONTAINERS))
    left_out = sum(1 for _ in containers)
    if left_out:
        errors[TOO_MANY] += left_out
    return kept, left_out


def named(status: PartStatus, pods: Sequence[Pod] | None) -> PartStatus:
    """Name a pod with more containers than are read. The part works all the same: any author can make such a pod."""
    crowded = [pod for pod in pods or () if pod.left_out]
    if status.fault or not crowded:
        return status
    first = crowded[0]
    detail = f"{first.namespace}/{first.name} has more than {MOST_CONTAINERS} containers; {first.left_out} are left out"
    if len(crowded) > 1:
        detail += f"; so it is with {len(crowded) - 1} more pods"
    return replace(status, fault=Fault(reason=TOO_MANY, detail=detail))
