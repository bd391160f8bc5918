"""Where device numbers come from: one folder per source, found by itself.

A source's folder holds in its `__init__.py`, which imports nothing heavy before `open` is called:

    NAME, HELP          what `--source` calls it, and where its numbers come from, in a few words
    Options             if it has options: a frozen dataclass of them
    open(options, site) the source, opened. `options` is None where it declares none

and where it applies:

    IS_DEFAULT          the source that is taken unless the user chooses another
    IS_DEMO             its numbers are made up
    NAMES_HOLDERS       its report says which pod holds which card
    SEES_PROCESSES      false if it cannot list the processes on a card
    LENDS_PROFILING, BORROWS_PROFILING
                        it may be combined with another for the profiling counters of the cards, see `merged`
    spans_nodes(options) the setting that makes it speak for all nodes, as the user wrote it; empty if it does not
    tenants(kubelet, pods_api, procfs)
                        the node's pods and processes, if it brings those along with the cards; they are shown under the
                        names of the parts that they stand in for
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from podgpu.model import Fault, Report


class Source(Protocol):
    """Gives one Report per cycle. A failure is a `fault` in the report, never an exception."""

    name: str
    demo: bool

    async def read(self) -> Report: ...

    async def release(self, seconds: float) -> bool:
        """Let go of the hardware for a while; True once nothing of it is held any more."""

    async def close(self) -> None: ...


class Whereabouts(Protocol):
    async def find(self) -> tuple[Mapping[str, str], Fault | None]:
        """Return URLs, each with the node it is about, and why there are none if there are none."""

    async def close(self) -> None: ...


class FindPods(Protocol):
    """Looks for pods by their labels: on this node, or on all. None where there is nobody to ask."""

    def __call__(
        self, selector: str, *, namespace: str, port: int, path: str, all_nodes: bool
    ) -> Whereabouts | None: ...


@dataclass(frozen=True, slots=True)
class Site:
    """What a source may need to know of where it is."""

    node: str
    interval: float
    find_pods: FindPods
