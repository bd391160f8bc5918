"""Those outside Kubernetes. An account without a pod is theirs; its container is their title."""

from collections.abc import Iterable, Iterator

from podgpu.model import Allocation, Card, ContainerRef, Process, Snapshot
from podgpu.numbers import integer
from podgpu.views.text import line


def is_outsider(container: ContainerRef | Allocation) -> bool:
    return not container.namespace and not container.pod


def outsider_names(snapshot: Snapshot) -> list[str]:
    """List the title of everybody outside Kubernetes who has an account or a process on a GPU."""
    return sorted({name for card in snapshot.cards for name in _on(card)} - {""})


def named(processes: Iterable[Process], most: int) -> str:
    """Write whose the processes are: `user/alice, docker/web +3 more`; nothing where no title is known."""
    found = list(dict.fromkeys(_titles(processes)))
    more = f" +{integer(len(found) - most)} more" if len(found) > most else ""
    return ", ".join(map(line, found[:most])) + more


def _on(card: Card) -> Iterator[str]:
    for tenant in (*card.tenants, *card.ended):
        if is_outsider(tenant.container):
            yield tenant.container.container
    for rest in card.rest:
        for holder in (process.holder for process in rest.processes):
            if holder is not None and (holder.container is None or is_outsider(holder.container)):
                yield holder.container.container if holder.container else holder.title


def _titles(processes: Iterable[Process]) -> Iterator[str]:
    return (one.holder.title for one in processes if one.holder is not None and one.holder.title)
