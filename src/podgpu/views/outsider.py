"""Those outside Kubernetes. An account without a pod is theirs; its container is their title."""

from collections.abc import Iterable, Iterator

from podgpu.model import Allocation, ContainerRef, Process, Snapshot
from podgpu.views.text import line


def is_outsider(container: ContainerRef | Allocation) -> bool:
    return not container.namespace and not container.pod


def outsider_names(snapshot: Snapshot) -> list[str]:
    """List the title of everybody outside Kubernetes who has an account or a process on a GPU."""
    booked = {
        tenant.container.container
        for card in snapshot.cards
        for tenant in (*card.tenants, *card.ended)
        if is_outsider(tenant.container)
    }
    return sorted(booked.union(*(_titles(card.processes) for card in snapshot.cards)))


def named(processes: Iterable[Process], most: int) -> str:
    """Write whose the processes are: `user/alice, docker/web +3 more`; nothing where no title is known."""
    found = list(dict.fromkeys(_titles(processes)))
    more = f" +{len(found) - most} more" if len(found) > most else ""
    return ", ".join(map(line, found[:most])) + more


def _titles(processes: Iterable[Process]) -> Iterator[str]:
    return (one.holder.title for one in processes if one.holder is not None and one.holder.title)
