"""Tenants and processes for a screen: their order and their names. A tenant without a pod is outside Kubernetes."""

from collections.abc import Iterable, Iterator

from podgpu.insight.tenants import is_outsider
from podgpu.model import Allocation, Card, ContainerRef, Excused, Holder, Process, Snapshot, Tenant
from podgpu.model.kube import grouped
from podgpu.numbers import integer
from podgpu.views.text import line


def outsider_names(snapshot: Snapshot) -> list[str]:
    """List the titles of all owners outside Kubernetes that have a booking or a process on a GPU."""
    named = {ref.container for ref in named_containers(snapshot) if is_outsider(ref)}
    titles = {holder.title for holder in _unbooked(snapshot) if holder.container is None}
    return sorted((named | titles) - {""})


def named_containers(snapshot: Snapshot) -> list[ContainerRef]:
    """List every container that is named on a card, some more than once."""
    booked = [tenant.container for card in snapshot.cards for tenant in (*card.tenants, *card.ended)]
    charged = [charge.container for card in snapshot.cards for charge in card.charges or ()]
    return booked + charged + [holder.container for holder in _unbooked(snapshot) if holder.container]


def _unbooked(snapshot: Snapshot) -> Iterator[Holder]:
    """Yield who holds processes that are booked to no container."""
    processes = (process for card in snapshot.cards for rest in card.rest for process in rest.processes)
    return (process.holder for process in processes if process.holder)


def by_instance(card: Card) -> dict[str, list[Tenant]]:
    """Group the tenants by MIG instance, largest memory first; those on no listed instance are under ""."""
    listed = {instance.mig.uuid for instance in card.instances}
    return grouped(sorted(card.tenants, key=_rank), lambda tenant: tenant.mig if tenant.mig in listed else "")


def full_name(container: ContainerRef | Allocation) -> str:
    """Write `namespace/pod/container`. Parts that are empty are left out, as outside Kubernetes."""
    return "/".join(line(part) for part in container.names if part)


def pids(processes: Iterable[Process], most: int) -> str:
    """Write `424, 425 +3 more`."""
    return _listed([str(process.pid) for process in processes], most)


def owner_titles(processes: Iterable[Process], most: int) -> str:
    """Write `user/alice, docker/web +3 more`; nothing where no title is known."""
    titles = (process.holder.title for process in processes if process.holder and process.holder.title)
    return _listed([line(title) for title in dict.fromkeys(titles)], most)


def excused_texts(cards: Iterable[Card]) -> list[str]:
    """Name the processes that hold a card for others and are charged nothing, with the proof."""
    return [
        f"{line(process.role)} {_excused(process)} on GPU {card.gpu.number}: {line(process.proof)}"
        for card in cards
        for process in card.excused
    ]


def _excused(process: Excused) -> str:
    pid = [] if process.pid is None else [f"PID {process.pid}"]
    return " in ".join([*pid, *([full_name(process.container)] if process.container else [])])


def _listed(names: list[str], most: int) -> str:
    more = f" +{integer(len(names) - most)} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _rank(tenant: Tenant) -> tuple[int, float, ContainerRef]:
    booking = tenant.booking
    return -(booking.memory_bytes or 0), -(booking.sm_ratio or 0.0), tenant.container
