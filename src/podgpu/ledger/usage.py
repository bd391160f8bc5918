"""Which parties are on a device, and what they were measured to use.

Under MPS the driver counts all of the clients' time as their server's. Here it goes back to them. Measured on an H200:
with two clients at work, the server was sampled at 99 % and the clients at nothing.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from podgpu.ledger.cycle import Party, TenantKey
from podgpu.model import ContainerRef, Device, Holder, Process

CLIENT = "mps"
SERVER = "nvidia-cuda-mps"  # as much of the command's name as the kernel keeps
ROOT = "root"
PodName = tuple[str, str]


class Usage(Struct, kw_only=True, gc=False):
    """What one party's processes add up to. None is what could not be measured for all of them.

    `is_client` says that some are clients of an MPS server: the driver counts their time as the server's.
    """

    processes: list[Process] = field(default_factory=list)
    running: int = 0
    memory_bytes: int | None = 0
    sm_us: int | None = 0
    migs: set[str] = field(default_factory=set)
    is_client: bool = False


def party_of(device: Device, mig: str, holder: Holder | None) -> Party:
    """Return the tenant that a process belongs to, or the reason why there is none."""
    if holder is None:
        return "unknown"
    if holder.container is None:
        return "unknown" if holder.kind == "pod" else holder.kind
    return TenantKey(device.gpu.uuid, mig, holder.container)


def usages(
    device: Device, holders: Mapping[int, Holder], elapsed_us: int, servers: Collection[int] = ()
) -> dict[Party, Usage]:
    """Add up what each party's processes use, without MPS servers: `served` has the time of those."""
    found: dict[Party, Usage] = {}
    # By PID, so that sums of ratios do not depend on the order of the list.
    for process in sorted(device.processes, key=lambda process: process.pid):
        if process.pid not in servers:
            mig = device.place(process)
            owned = replace(process, mig=mig, holder=holders.get(process.pid))
            party = party_of(device, mig, owned.holder)
            usage = found.get(party) or found.setdefault(party, Usage())
            usage.migs.add(mig)
            _add(usage, owned, elapsed_us, is_client=bool(servers) and CLIENT in process.kinds)
    return found


def _add(usage: Usage, process: Process, elapsed_us: int, *, is_client: bool) -> None:
    usage.processes.append(process)
    if process.kinds:
        usage.running += 1
        usage.memory_bytes = added(usage.memory_bytes, process.memory_bytes)
    usage.sm_us = added(usage.sm_us, _sm_us(process, elapsed_us))
    usage.is_client |= is_client


def nameless_pods(parties: Iterable[Party]) -> set[ContainerRef]:
    """Return the pods of processes whose containers are not known: they may be those of any container of the pod."""
    tenants = (party.container for party in parties if isinstance(party, TenantKey))
    return {container for container in tenants if container.pod and not container.container}


def serving(device: Device, holders: Mapping[int, Holder], servers: Collection[int]) -> list[Process]:
    """List the servers among the processes."""
    return [
        replace(process, holder=replace(holders[process.pid], serves=True))
        for process in device.processes
        if process.pid in servers
    ]


def served(servers: Iterable[Process], elapsed_us: int) -> int | None:
    """Return the time that the servers' clients had together, None where the driver does not provide it."""
    time: int | None = 0
    for process in servers:
        time = added(time, _sm_us(process, elapsed_us))
    return time


def is_watched(device: Device, found: Mapping[Party, Usage]) -> bool:
    """Whether every process on the card is listed, and its owner is known, or it is known to have ended."""
    if not (device.ability.sees_all and device.ability.knows_owners):
        return False
    unknown = found.get("unknown")
    return unknown is None or all(_is_gone(process) for process in unknown.processes if process.kinds)


def _is_gone(process: Process) -> bool:
    return process.holder is not None and process.holder.reason == "exited"


def measured(usages: Iterable[Usage]) -> bool:
    return all(usage.sm_us is not None for usage in usages)


def _sm_us(process: Process, elapsed_us: int) -> int | None:
    """The driver's sampled time, never more than there was; a source may report the ratio alone."""
    if process.sm_busy_us is not None:
        return min(process.sm_busy_us, elapsed_us)
    return None if process.sm_ratio is None else round(min(process.sm_ratio, 1.0) * elapsed_us)


def added(value: int | None, more: int | None) -> int | None:
    return None if value is None or more is None else value + more


def servers(
    device: Device, holders: Mapping[int, Holder], tenants: Callable[[], Collection[PodName]]
) -> dict[int, str]:
    """Find the PIDs of the servers on a card that has clients, each with its proof.

    `tenants` are the pods that were given anything here, also those that are excused.

    Any process may take that name, to put its time on the clients' bill. Two things cannot be forged: that it runs
    outside of all containers for root, or that it shares the host's MPS directory with a client of this card. A process
    in a pod that holds anything on this node is a tenant in any case. In doubt its time is its own.
    """
    clients = {process.pid: holders.get(process.pid) for process in device.processes if CLIENT in process.kinds}
    if not clients:
        return {}
    suspects = {process.pid: holders.get(process.pid) for process in device.processes if process.pid not in clients}
    proofs = {
        pid: _proof(holder, list(clients.values()), tenants)
        for pid, holder in suspects.items()
        if holder is not None and may_serve(holder)
    }
    return {pid: proof for pid, proof in proofs.items() if proof}


def may_serve(holder: Holder | None) -> bool:
    return holder is not None and holder.command == SERVER


def _proof(holder: Holder, clients: Collection[Holder | None], tenants: Callable[[], Collection[PodName]]) -> str:
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
    """Whether no user has two servers, as MPS has it. If one does, some of them are not servers."""
    users = [server.user for server in servers]
    return len(set(users)) == len(users)
