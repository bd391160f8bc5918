"""What a source is to the rest of podgpu."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from msgspec import Struct

from podgpu.errors import UserError
from podgpu.model import Fault, Report

if TYPE_CHECKING:
    from podgpu.model.ports import NodeSources
    from podgpu.sources.player import Player


class Source(Protocol):
    """Gives a Report each cycle. A failure is a `fault` in the report, never an exception."""

    name: str
    demo: bool

    async def read(self) -> Report: ...

    async def release(self, seconds: float) -> bool:
        """Release the hardware for a while. Return True once the source no longer holds any of it."""

    async def close(self) -> None: ...


@runtime_checkable
class SlowSource(Protocol):
    """A source whose first report takes long."""

    async def begin(self) -> None:
        """Begin with the first report, before anything awaits it."""


class PageFinder(Protocol):
    async def find(self) -> tuple[Mapping[str, str], Fault | None]:
        """Return the URLs of pages, each with the node it describes. The fault says why there are none, or not more."""

    async def close(self) -> None: ...


class FindPods(Protocol):
    """Finds pages of pods on this node by the labels of the pods. None if there is no API server.

    `port` is for pods without a port named for metrics or, if it is `fixed`, for all pods.
    """

    def __call__(self, selector: str, *, namespace: str, port: int, fixed: bool, path: str) -> PageFinder | None: ...


class Site(Struct, frozen=True):
    """What a source may need to know about the machine it runs on. `node` is empty if its name is unknown.

    For the cards that `watched` names, the source reports busy windows if it can. The value is True for cards whose
    windows should be as short as possible, whatever that costs.
    """

    node: str
    interval: float
    find_pods: FindPods
    watched: Callable[[], Mapping[str, bool]] | None = None


def _only_played(_: Any, __: Site) -> Source:
    raise UserError("a recording has no cards to read, and is played by podgpu's commands; choose another source")


class SourceEntry(Struct, frozen=True, kw_only=True):
    """A value of `--source`.

    `open` gets the source's options, None if it has none. A source with `play` is not opened: it plays recorded
    snapshots, which are attributed already. `node_sources` returns the node's pods and processes, if the source brings
    its own. Where one source lends profiling counters and another borrows them, both can be combined: see `merged`.
    """

    name: str
    help: str  # where its numbers come from, in a few words
    open: Callable[[Any, Site], Source] = _only_played
    play: "Callable[[Any], Player] | None" = None
    node_sources: "Callable[[], NodeSources] | None" = None
    is_default: bool = False  # it is used unless the user chooses another
    is_demo: bool = False  # its numbers are made up
    names_holders: bool = False  # its report says which pod holds which card
    sees_processes: bool = True  # it can list the processes on a card
    lends_profiling: bool = False
    borrows_profiling: bool = False
    sections: tuple[type, ...] = ()  # the classes of its options, filled in by the registry
