"""MPS: the driver counts all of the clients' time as their server's. Here it goes back to them.

Measured on an H200: with two clients at work, the server was sampled at 99 % and the clients at nothing.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from podgpu.model import Device, Holder

CLIENT = "mps"
SERVER = "nvidia-cuda-mps"  # as much of the command's name as the kernel keeps
ROOT = "root"

PodName = tuple[str, str]


def servers(
    device: Device, holders: Mapping[int, Holder], tenants: Callable[[], Collection[PodName]]
) -> frozenset[int]:
    """Find the PIDs of the servers on a card that has clients. `tenants` are the pods that hold anything here.

    Anybody may give a process that name, to put its time on the clients' bill. What nobody can forge: that it runs
    outside of all containers for root, or that it has the host's directory where it meets a client of this card. A
    process in a pod that holds anything on this node is a tenant in any case. In doubt its time is its own.
    """
    clients = {one.pid: holders.get(one.pid) for one in device.processes if CLIENT in one.kinds}
    return frozenset(
        process.pid
        for process in device.processes
        if process.pid not in clients
        and (holder := holders.get(process.pid)) is not None
        and clients
        and may_serve(holder)
        and _serves(holder, list(clients.values()), tenants)
    )


def may_serve(holder: Holder | None) -> bool:
    return holder is not None and holder.command == SERVER


def _serves(
    holder: Holder, clients: Collection[Holder | None], tenants: Callable[[], Collection[PodName]]
) -> bool:
    if holder.kind == "host":
        return holder.mps == ROOT or all(_is_same_user(holder, client) for client in clients)
    container = holder.container
    if holder.kind == "pod" and (container is None or (container.namespace, container.pod) in tenants()):
        return False
    return any(client is not None and _meet(holder.mps, client.mps) for client in clients)


def _is_same_user(server: Holder, client: Holder | None) -> bool:
    """A user's number means the same person only outside of containers."""
    return client is not None and (client.kind, client.user) == ("host", server.user)


def _meet(server: str | None, client: str | None) -> bool:
    """The server has the plugin's directory of all resources, the client that of its own."""
    if not server or not client:
        return False
    return f"{client}/".startswith(f"{server}/") or f"{server}/".startswith(f"{client}/")


def are_certain(servers: Iterable[Holder]) -> bool:
    """Whether there is one for each user, as MPS has it. If there are more, some of them are not servers."""
    users = [server.user for server in servers]
    return len(set(users)) == len(users)
