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
) -> dict[int, str]:
    """Find the PIDs of the servers on a card that has clients, each with its proof.

    `tenants` are the pods that were given anything here, whether or not somebody excused them.

    Anybody may give a process that name, to put its time on the clients' bill. What nobody can forge: that it runs
    outside of all containers for root, or that it has the host's directory where it meets a client of this card. A
    process in a pod that holds anything on this node is a tenant in any case. In doubt its time is its own.
    """
    clients = {one.pid: holders.get(one.pid) for one in device.processes if CLIENT in one.kinds}
    suspects = {one.pid: holders.get(one.pid) for one in device.processes if one.pid not in clients}
    proofs = {
        pid: _proof(holder, list(clients.values()), tenants)
        for pid, holder in suspects.items()
        if holder is not None and clients and may_serve(holder)
    }
    return {pid: proof for pid, proof in proofs.items() if proof}


def may_serve(holder: Holder | None) -> bool:
    return holder is not None and holder.command == SERVER


def _proof(
    holder: Holder, clients: Collection[Holder | None], tenants: Callable[[], Collection[PodName]]
) -> str:
    if holder.kind == "host":
        if holder.mps == ROOT:
            return "root's daemon started it, outside of all containers"
        is_own = all(_is_same_user(holder, client) for client in clients)
        return "it runs for the user of all its clients, outside of all containers" if is_own else ""
    container = holder.container
    if holder.kind == "pod" and (container is None or (container.namespace, container.pod) in tenants()):
        return ""
    if not any(client is not None and _meet(holder.mps, client.mps) for client in clients):
        return ""
    place = f"the node's {holder.mps} is mounted into it and into a client"
    return f"{place}, and its pod was given nothing" if holder.kind == "pod" else place


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
