"""MPS: the driver counts all of the clients' time as their server's. Here it goes back to them.

Measured on an H200: with two clients at work, the server was sampled at 99 % and the clients at nothing.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from podgpu.model import Device, Holder

CLIENT = "mps"
SERVER = "nvidia-cuda-mps"  # as much of the command's name as the kernel keeps
ROOT = 0

PodName = tuple[str, str]


def servers(
    device: Device, holders: Mapping[int, Holder], tenants: Callable[[], Collection[PodName]]
) -> frozenset[int]:
    """Find the PIDs of the servers on a card that has clients. `tenants` are the pods that hold anything here.

    Anybody may give a process that name, to put its time on the clients' bill. So a process in a pod that holds
    anything on this node is a tenant, whatever its name; so is one in a pod that is not known, and one of a user who
    is neither root nor the user of every client.
    """
    clients = {process.pid for process in device.processes if CLIENT in process.kinds}
    if not clients:
        return frozenset()
    users = {holders[pid].user if pid in holders else None for pid in clients}
    return frozenset(
        process.pid
        for process in device.processes
        if process.pid not in clients
        and (holder := holders.get(process.pid)) is not None
        and _is_server(holder, tenants(), users)
    )


def _is_server(holder: Holder, tenants: Collection[PodName], users: Collection[int | None]) -> bool:
    container = holder.container
    if holder.command != SERVER or (holder.kind == "pod" and container is None):
        return False
    if container and container.pod and (container.namespace, container.pod) in tenants:
        return False
    return holder.user in (None, ROOT) or users == {holder.user}


def are_certain(servers: Iterable[Holder]) -> bool:
    """Whether there is one for each user, as MPS has it. If there are more, some of them are not servers."""
    users = [server.user for server in servers]
    return len(set(users)) == len(users)
