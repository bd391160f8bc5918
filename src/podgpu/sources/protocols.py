"""What a source is to the rest of podgpu."""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from msgspec import Struct

from podgpu.model import Fault, Report


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
        """Return the URLs of pages, each with the node it describes. If there are none, the fault says why."""

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
