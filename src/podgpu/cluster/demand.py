"""How much of a resource a pod needs, as the scheduler counts.

Main containers and sidecars run together, so their numbers are added up. Before them the other init containers run one
after another, each beside the sidecars that were started before it. Whatever is larger counts, for as long as the pod
lives.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from podgpu.model import PodContainer
from podgpu.model.kube import quantity


def together(containers: Iterable[PodContainer], resource: str) -> Fraction:
    """Add up what the containers ask for that run at the same time in the end."""
    return sum((_asked(each, resource) for each in containers if not passes(each)), Fraction(0))


def beyond(containers: Sequence[PodContainer], resource: str) -> tuple[PodContainer, Fraction] | None:
    """Return the init container that needs most, and how much more than `together` is needed while it runs."""
    most = together(containers, resource)
    found, beside = None, Fraction(0)
    for container in containers:
        if not container.is_init:
            continue
        needed = _asked(container, resource) + beside
        if container.is_sidecar:
            beside = needed
        elif needed > most:
            most, found = needed, container
    return (found, most - together(containers, resource)) if found else None


def of_pod(containers: Sequence[PodContainer], resource: str) -> Fraction:
    _, more = beyond(containers, resource) or (None, Fraction(0))
    return together(containers, resource) + more


def passes(container: PodContainer) -> bool:
    """Whether a container ends before the main containers start."""
    return container.is_init and not container.is_sidecar


def _asked(container: PodContainer, resource: str) -> Fraction:
    return quantity(container.limits.get(resource, "")) or Fraction(0)
