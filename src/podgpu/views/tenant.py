"""Tenants for a screen: in which order, under which name, and whether they use what they hold."""

from collections.abc import Iterable

from podgpu.model import Allocation, Card, ContainerRef, Excused, Process, Tenant
from podgpu.numbers import integer
from podgpu.views.text import line


def by_instance(card: Card) -> dict[str, list[Tenant]]:
    """Group the tenants by MIG instance, largest memory first; those on no listed instance are under ""."""
    listed = {instance.mig.uuid for instance in card.instances}
    groups: dict[str, list[Tenant]] = {}
    for tenant in sorted(card.tenants, key=_rank):
        groups.setdefault(tenant.mig if tenant.mig in listed else "", []).append(tenant)
    return groups


def full_name(container: ContainerRef | Allocation) -> str:
    """`namespace/pod/container`; somebody outside Kubernetes has the last alone, a nameless container none."""
    return "/".join(line(part) for part in (container.namespace, container.pod, container.container) if part)


def pids(processes: Iterable[Process], most: int) -> str:
    """Write `424, 425 +3 more`."""
    numbers = [str(process.pid) for process in processes]
    more = f" +{integer(len(numbers) - most)} more" if len(numbers) > most else ""
    return ", ".join(numbers[:most]) + more


def _rank(tenant: Tenant) -> tuple[int, float, ContainerRef]:
    booking = tenant.booking
    return -(booking.memory_bytes or 0), -(booking.sm_ratio or 0.0), tenant.container


def excuses(cards: Iterable[Card]) -> list[str]:
    """Say who has a card for others and pays for none of it, with the proof."""
    return [
        f"{line(one.role)} {_excused(one)} on GPU {card.gpu.index}: {line(one.proof)}"
        for card in cards
        for one in card.excused
    ]


def _excused(one: Excused) -> str:
    pid = [] if one.pid is None else [f"PID {one.pid}"]
    return " in ".join([*pid, *([full_name(one.container)] if one.container else [])])
