"""Which of the agents that report a node is believed."""

from collections.abc import Iterable, Sequence

from podgpu.cluster.reader import ReadFault
from podgpu.cluster.standing import Look
from podgpu.cluster.station import Station


def holder(name: str, claims: Sequence[Station]) -> Station | None:
    """Return the one that reports the node by right: whom Kubernetes runs there, or who is alone in saying so."""
    proven = [station for station in claims if station.place.node == name]
    believed = proven or claims
    return believed[0] if len(believed) == 1 else None


def conflict(name: str, claims: Sequence[Station]) -> ReadFault:
    addresses = " and ".join(sorted(station.address for station in claims))
    return ReadFault("conflict", f"node {name!r} is reported by {addresses}")


def looks_by_name(stations: Iterable[Station], now: float) -> dict[str, Look]:
    """Return how each node looks. Those that claim a name without right to it are shown by their addresses."""
    claims: dict[str, list[Station]] = {}
    for station in stations:
        claims.setdefault(station.name, []).append(station)
    looks: dict[str, Look] = {}
    disputed: dict[str, Look] = {}
    for name, some in claims.items():
        believed = holder(name, some)
        if believed is not None:
            looks[name] = believed.look(now)
            fault = ReadFault("wrong_node", f"it reports node {name!r}, which has an agent of its own")
        else:
            fault = conflict(name, some)
            looks[name] = Look(fault=fault)
        disputed |= {station.address: Look(fault=fault) for station in some if station is not believed}
    return looks | disputed
