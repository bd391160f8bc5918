"""Who is outside Kubernetes, in words. An account without a pod is theirs; its container is their title."""

from collections.abc import Iterable, Sequence

from podgpu.model import Allocation, ContainerRef, Holder, Process, Snapshot
from podgpu.views.text import line


def is_outsider(container: ContainerRef | Allocation) -> bool:
    return not container.namespace and not container.pod


def outsider_names(snapshot: Snapshot) -> list[str]:
    """List the title of everybody outside Kubernetes who has an account or a process on a GPU."""
    booked = {one.container.container for one in snapshot.bookings if is_outsider(one.container)}
    return sorted(booked | {holder.title for holder in snapshot.holders if holder.title})


def named(processes: Iterable[Process], holders: Sequence[Holder], most: int) -> str:
    """Write whose the processes are: `user/alice, docker/web +3 more`; nothing where no title is known."""
    titles = {holder.pid: holder.title for holder in holders if holder.title}
    found = list(dict.fromkeys(titles[one.pid] for one in processes if one.pid in titles))
    more = f" +{len(found) - most} more" if len(found) > most else ""
    return ", ".join(map(line, found[:most])) + more
