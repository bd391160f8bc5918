"""MPS: the driver counts all of the clients' time as their server's. Here it goes back to them.

Measured on an H200: with two clients at work, the server was sampled at 99 % and the clients at nothing.
"""

from collections.abc import Collection, Mapping

from podgpu.model import ContainerRef, Device, Holder

CLIENT = "mps"
SERVER = "nvidia-cuda-mps"  # as long as the kernel keeps a command's name


def server_pids(
    device: Device, holders: Mapping[int, Holder], claimants: Collection[ContainerRef]
) -> frozenset[int]:
    """Find the servers on a card that has clients.

    Anybody may give a process that name, so that his time would be on the clients' bill. Hence one that is in a
    container with a claim of its own is a tenant, whatever it is called.
    """
    if not any(CLIENT in process.kinds for process in device.processes):
        return frozenset()
    return frozenset(
        process.pid
        for process in device.processes
        if CLIENT not in process.kinds and _is_server(holders.get(process.pid), claimants)
    )


def _is_server(holder: Holder | None, claimants: Collection[ContainerRef]) -> bool:
    return holder is not None and holder.command == SERVER and holder.container not in claimants
