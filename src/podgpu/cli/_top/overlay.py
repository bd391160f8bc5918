"""What stands in place of the rows when it is asked for: the keys, or everything that is wrong and wasted."""

import textwrap

from podgpu.cli._top.keys import HELP
from podgpu.cli._top.rows import TopRows
from podgpu.cli._top.styled import BOLD, CYAN, DIM, PLAIN, RED, YELLOW, Line

_KEYS = (
    ("1 … 5, tab", "pods, workloads, namespaces, GPUs, nodes"),
    ("↑ ↓ j k g G pages", "move"),
    ("enter", "open the row: its GPUs, claims and processes"),
    ("/", "show only rows with these words; escape drops them"),
    ("s, < >, r", "sort by the next or the previous column; r reverses it"),
    ("i", "show only pods that hold a GPU and do not use it"),
    ("m", "hide or show the GPUs above the rows"),
    ("l, d, e", "kubectl logs, describe, exec for the chosen pod"),
    ("y", "copy the name of the row; of a GPU, its UUID"),
    ("w", "everything that is wrong, and who wastes what"),
    ("space", "pause, and go on"),
    ("[ ], { }, ( )", "a moment, a minute, ten minutes back or forth in time"),
    ("+ -", "faster, slower: a replay only"),
    ("q", "quit"),
    ("mouse", "click a row, heading, view or GPU; shift selects text"),
)
_WORDS = (
    ("USE", "23% (12–34): proven; 23% (~12–34): likely, not proven"),
    ("HELD", "GPUs allocated to it, used or not"),
    ("idle 3h", "holds a GPU and has not used it for three hours"),
    ("waiting", "has held a GPU for a short time, not used yet"),
    ("unknown", "podgpu why says why its use is not known"),
)


def overlay(name: str, rows: TopRows, width: int) -> list[Line]:
    if name == HELP:
        keys = [row for key, meaning in _KEYS for row in _wrapped(f"  {key:<20}", CYAN, meaning, width)]
        words = [row for word, meaning in _WORDS for row in _wrapped(f"  {word:<20}", BOLD, meaning, width)]
        return [*keys, [], *words, [("  ? goes back", DIM)]]
    problems = [row for problem in rows.problems for row in _wrapped("  ! ", RED, problem, width - 2)]
    waste = [row for text in rows.waste for row in _wrapped("  - ", YELLOW, text, width - 2)]
    found: list[Line] = [[], *(problems or [[("  Nothing is wrong.", DIM)]])]
    found += [[], [("  Held, not used", BOLD)], *waste] if waste else []
    return [*found, [], [("  w goes back", DIM)]]


def _wrapped(head: str, style: str, text: str, width: int) -> list[Line]:
    """Write the text behind its head, on as many lines as it takes."""
    first, *more = textwrap.wrap(text, max(width - len(head), 20)) or [""]
    return [[(head, style), (first, PLAIN)], *([(f"{'':{len(head)}}{part}", PLAIN)] for part in more)]
