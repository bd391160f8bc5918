"""How much is read from a kubelet or an API server that is in trouble or flooded.

What exceeds a limit is counted, and the part reports it. A working node stays far below every limit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from msgspec.structs import replace

from podgpu.model import Fault, PartStatus, Pod, PodContainer

MOST_PODS = 2000  # of a node; the largest have some hundreds
MOST_LISTED = 10_000  # pods that an answer of the kubelet may list: most of them have no more than a name
MOST_CONTAINERS = 512  # of a pod: anyone who may create pods can create one with thousands
MOST_IDS = 131_072  # device ids that a node allocated or offers: plugins with small units reach 100,000
# The author of a pod may fill it with a quarter of a MiB of annotations.
ANNOTATION_BYTES = 32 << 10  # all annotations of a pod together
LABEL_BYTES = 16 << 10
TOO_MANY = "too_many_containers"
TOO_LARGE = "note_too_large"

Prefixes: TypeAlias = tuple[str, ...]


def limited_containers(
    containers: Iterator[PodContainer], errors: Counter[str]
) -> tuple[tuple[PodContainer, ...], int]:
    """Return the first containers, and the number of those left out."""
    kept = tuple(islice(containers, MOST_CONTAINERS))
    if left_out := sum(1 for _ in containers):
        errors[TOO_MANY] += left_out
    return kept, left_out


def name_crowded_pod(status: PartStatus, pods: Sequence[Pod] | None) -> PartStatus:
    """Name a pod with more containers than are read. The part still counts as up: anyone can create such a pod."""
    crowded = [pod for pod in pods or () if pod.left_out]
    if status.fault or not crowded:
        return status
    first = crowded[0]
    detail = f"{first.namespace}/{first.name} has more than {MOST_CONTAINERS} containers; {first.left_out} are left out"
    if len(crowded) > 1:
        others = len(crowded) - 1
        detail += f"; {others} more {'pod has' if others == 1 else 'pods have'} too many, too"
    return replace(status, fault=Fault(reason=TOO_MANY, detail=detail))


def limited_labels(labels: Iterable[tuple[str, str]], prefixes: Prefixes, errors: Counter[str]) -> dict[str, str]:
    """Keep all labels. If they are too large, keep those with these prefixes first."""
    found = dict(labels)
    if sum(len(name) + len(value) for name, value in found.items()) > LABEL_BYTES:
        found = dict(sorted(found.items(), key=lambda label: not label[0].startswith(prefixes)))
    return limited(found.items(), LABEL_BYTES, errors)


def limited(pairs: Iterable[tuple[str, str]], most: int, errors: Counter[str]) -> dict[str, str]:
    kept: dict[str, str] = {}
    left = most
    for name, value in pairs:
        size = len(name) + len(value)
        if size > left:
            errors[TOO_LARGE] += 1
        else:
            left -= size
            kept[name] = value
    return kept
