"""What nodes last said whose agents are not even found any more: their pods are gone, or are new ones."""

from msgspec.structs import replace

from podgpu.cluster.node_state import ReadFault, ReadState


class RememberedNodes:
    """Of each node the last state that had a snapshot. A node that Kubernetes no longer lists is forgotten."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last: dict[str, tuple[ReadState, float]] = {}  # with the moment that the snapshot was new, by this clock

    def fill(self, states: dict[str, ReadState | None], now: float) -> None:
        """Put in what is remembered of nodes that nothing was read of. `states` are of all nodes that there are."""
        kept: dict[str, tuple[ReadState, float]] = {}
        for name, read in states.items():
            if read is not None and read.snapshot is not None:
                kept[name] = read, now - read.seconds
            elif name in self._last and now - self._last[name][1] <= self._seconds:
                last, at = kept[name] = self._last[name]
                fault = ReadFault("no_agent", "") if read is None else read.fault
                if fault is None or fault.reason != "conflict":  # which of several agents is right, nobody knows
                    states[name] = replace(last, seconds=now - at, fault=fault)
        self._last = kept
