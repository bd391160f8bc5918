"""The views of a snapshot as the agent would publish it: with what follows from it."""

from podgpu.model import Snapshot
from podgpu.views import page
from podgpu.views import why as chain
from podgpu.views.table import table as written
from tests.tree import judged


def table(snapshot: Snapshot, width: int, *, colour: bool) -> str:
    return written(judged(snapshot), width, colour=colour)


def html(snapshot: Snapshot, age: float) -> bytes:
    return page.html(judged(snapshot), age)


def why(snapshot: Snapshot, namespace: str, pod: str, width: int) -> str | None:
    return chain.why(judged(snapshot), namespace, pod, width)


def why_outsider(snapshot: Snapshot, title: str, width: int) -> str | None:
    return chain.why_outsider(judged(snapshot), title, width)
