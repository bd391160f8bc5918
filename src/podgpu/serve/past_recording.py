"""A recording of some minutes of the last hour, as `podgpu record` would have made it. docs/api.md describes it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from podgpu.errors import UserError
from podgpu.model.frames import MAGIC, frame
from podgpu.option import times

USUAL_MINUTES, MOST_MINUTES = 10, 60
MOST_FRAMES = 60
MOST_PARTS = 3000  # cards or nodes that are read for one: of 1,000 nodes, three moments
CONTENT_TYPE = "application/octet-stream"


class _Kept(Protocol):
    @property
    def parts(self) -> int: ...
    def times(self, start: float, end: float) -> Sequence[float]: ...


class _TakenState(Protocol):
    taken_at: float


Past = TypeVar("Past", bound=_TakenState)


def times_around(history: _Kept, taken_at: float, minutes: int) -> Sequence[float]:
    """Choose the moments of so many minutes around one, evenly, and that one in any case."""
    half = minutes * 30.0
    found = history.times(taken_at - half, taken_at + half)
    if taken_at not in found:  # it was forgotten
        return ()
    most = max(1, min(MOST_FRAMES, MOST_PARTS // max(1, history.parts)))
    stride = -(-len(found) // most)
    return found[found.index(taken_at) % stride :: stride]


def recording(moments: Iterable[Past], document: Callable[[Past], Iterable[bytes]]) -> Iterator[bytes]:
    """Write the file, one moment after the other. `document` writes that of a cluster."""
    yield MAGIC
    for moment in moments:
        with suppress(UserError):  # of a recording: the node is not in this frame
            yield frame(moment.taken_at, document(moment))


def file_name(taken_at: float) -> str:
    """Return a name that every system allows."""
    return f"podgpu-{times.utc_text(taken_at, 'seconds').replace(':', '-')}.recording"
