"""Tenants for a screen: in which order, under which name, and whether they use what they hold."""

from collections.abc import Iterable

from podgpu.model import Allocation, Card, ContainerRef, Excused, Process, Tenant
from podgpu.views.text import line

# Where it is not known whether a tenant has a process. Every screen uses this word, and says what it means.
UNSEEN = "unseen"
UNSEEN_MEANS = "it holds a share, but whether it has a process there is not known"


def by_instance(card: Card) -> dict[str, list[Tenant]]:
    """Group the tenants by MIG instance, largest memory first; those on no listed instance are under ""."""
    listed = {instance.mig.uuid for instance in card.instances}
    groups: dict[str, list[Tenant]] = {}
    for tenant in sorted(card.tenants, key=_rank):
        groups.setdefault(tenant.mig if tenant.mig in listed else "", []).append(tenant)
    return groups


def any_unseen(cards: Iterable[Card]) -> bool:
    return any(is_unseen(one, card) for card in cards if card.fault is None for one in card.tenants)


def is_unseen(tenant: Tenant, card: Card) -> bool:
    """Whether processes of the tenant may have been missed. If nobody lists processes, whoever holds it is the user."""
    return tenant.idle is None and card.ability.sees_processes


def idle_seconds(tenant: Tenant, now: float) -> float | None:
    """How long it has not used the card: since it was last active, or since it holds it. None if that is unknown."""
    if not tenant.idle and tenant.booking.sm_ratio is None:
        return None
    since = tenant.booking.last_active_at
    since = tenant.held_since if since is None else since
    return None if since is None else max(now - since, 0.0)


def full_name(container: ContainerRef | Allocation) -> str:
    """`namespace/pod/container`; somebody outside Kubernetes has the last alone, a nameless container none."""
    return "/".join(line(part) for part in (container.namespace, container.pod, container.container) if part)


def pids(processes: Iterable[Process], most: int) -> str:
    """Write `424, 425 +3 more`."""
    numbers = [str(process.pid) for process in processes]
    more = f" +{len(numbers) - most} more" if len(numbers) > most else ""
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
