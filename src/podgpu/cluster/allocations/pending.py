"""The pods that ask for a GPU and have no node yet."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction

from podgpu import sharing
from podgpu.model import PendingPod, Pod, PodContainer, ResourceClaim, Workload
from podgpu.model.quantity import quantity

# What names of device classes have in them. An administrator may choose any name; a class without these is not seen.
CLASSES = ("gpu", "nvidia", "mig")


def waiting(
    pods: Iterable[Pod],
    claims: Iterable[ResourceClaim],
    workloads: Mapping[str, Workload],
    signs: tuple[str, ...],
) -> Iterator[PendingPod]:
    of_gpus = {(one.namespace, one.name) for one in claims if _is_of_gpus(one)}
    for pod in pods:
        asks = _asks(pod.containers, signs)
        wanted = [name for name in _claims(pod) if (pod.namespace, name) in of_gpus]
        if asks or wanted:
            yield PendingPod(
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                since=pod.waiting.since if pod.waiting else None,
                asks=asks,
                claims=tuple(wanted),
                reason=pod.waiting.reason if pod.waiting else "",
                workload=workloads.get(pod.uid),
            )


def _is_of_gpus(claim: ResourceClaim) -> bool:
    names = (*claim.classes, *(one.driver for one in claim.devices))
    return any(part in name for name in names for part in CLASSES)


def _claims(pod: Pod) -> Collection[str]:
    return dict.fromkeys(filter(None, (*pod.resource_claims.values(), pod.extended_claim)))


def _asks(containers: Iterable[PodContainer], signs: tuple[str, ...]) -> dict[str, str]:
    """Sum up what containers ask for. Init containers come before the others: the larger number counts."""
    lasting: dict[str, list[str]] = {}
    first: dict[str, list[str]] = {}
    for one in containers:
        for resource, limit in one.limits.items():
            if sharing.is_gpu(resource, signs) and quantity(limit):
                (first if one.is_init else lasting).setdefault(resource, []).append(limit)
    return {
        resource: _larger(lasting.get(resource, []), first.get(resource, []))
        for resource in sorted({*lasting, *first})
    }


def _larger(lasting: list[str], first: list[str]) -> str:
    total = sum((quantity(one) or Fraction(0) for one in lasting), Fraction(0))
    largest = max(first, key=lambda one: quantity(one) or Fraction(0), default="")
    if largest and (quantity(largest) or 0) > total:
        return largest
    return lasting[0] if len(lasting) == 1 else str(int(total))
