"""What is shown instead of the rows: the keys, or everything that is wrong."""

import textwrap
from collections.abc import Sequence

from podgpu.cli._top.line import BOLD, CYAN, DIM, PLAIN, RED, Line
from podgpu.cli._top.state import HELP

_KEYS = (
    ("1 … 5, tab", "pods, workloads, namespaces, GPUs, nodes"),
    ("↑ ↓, j k, page keys, g G", "move"),
    ("enter", "open the row: its GPUs, claims and processes; again closes it"),
    ("/", "show only rows with these words; escape drops them"),
    ("s, < >", "sort by the next or the previous column"),
    ("r", "sort the other way round"),
    ("i", "show only those who hold a GPU and do not use it"),
    ("space", "pause, and go on"),
    ("+ -", "faster, slower: a replay only"),
    ("w", "everything that is wrong"),
    ("q", "quit"),
)
_WORDS = (
    ("USE", "mean over the cards it is on. 23% (12–34) is an estimate: at least 12, at most 34."),
    ("HELD", "GPUs it was given, used or not."),
    ("idle 3h", "it holds a GPU and has not used it for three hours; podgpu idle lists them."),
    ("waiting", "it was given a GPU not long ago, and has not used it yet."),
    ("unknown", "whether it uses what it holds is not known; podgpu why says why not."),
)
_COLUMN = 28


def sheet(name: str, wrongs: Sequence[str], width: int) -> list[Line]:
    if name == HELP:
        keys = [[(f"  {key:<{_COLUMN}}", CYAN), (meaning, PLAIN)] for key, meaning in _KEYS]
        words = [[(f"  {word:<{_COLUMN}}", BOLD), (meaning, PLAIN)] for word, meaning in _WORDS]
        return [[], *keys, [], *words, [], [("  ? goes back", DIM)]]
    found: list[Line] = [[]]
    for wrong in wrongs:
        first, *more = textwrap.wrap(wrong, max(width - 6, 20)) or [""]
        found += [[("  ! ", RED), (first, PLAIN)], *([(f"    {one}", PLAIN)] for one in more)]
    return [*found, [], [("  w goes back", DIM)]] if wrongs else [[], [("  Nothing is wrong.", DIM)]]
