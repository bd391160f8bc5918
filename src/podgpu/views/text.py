"""Names from the hardware and from users, made safe to print; and styles and tables of text."""

import re
import textwrap
from collections.abc import Callable, Sequence
from functools import lru_cache

MAX_BYTES = 256
SHORTEST = 5  # characters of a pod's name that still say something
GAP = 2  # between the columns of a table
NO_LIMIT = 1 << 16  # columns: what a program reads is never cut
LEAST_FIRST = 16  # characters of a table's first column
TAIL = 6  # a dash and the five characters that Kubernetes adds to the name of a pod

# A newline is left for the caller: each format has its own way to write one.
# A change of writing direction would let one name pass for another.
_UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_NARROW = re.compile("[ -~°–…]*")

# Of terminals.
PLAIN, BOLD, DIM = "\x1b[0m", "\x1b[1m", "\x1b[2m"
RED, BOLD_RED, GREEN, YELLOW, CYAN = "\x1b[31m", "\x1b[1;31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"

Positions = range | tuple[int, ...]  # of cells in a row


def clean(value: str | bytes) -> str:
    """Return at most MAX_BYTES of UTF-8. U+FFFD replaces lone surrogates and control characters."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if value.isascii() and value.isprintable() and len(value) <= MAX_BYTES:
        return value
    # Slicing first keeps the work bounded: no character is shorter than a byte.
    safe = _UNPRINTABLE.sub(_REPLACEMENT, value[:MAX_BYTES])
    return safe.encode()[:MAX_BYTES].decode("utf-8", "ignore")


def printable(value: str) -> str:
    """Return one line that no terminal takes for a command, of the same length."""
    if value.isascii() and value.isprintable():
        return value
    return re.sub("[\n\u2028\u2029]", " ", _UNPRINTABLE.sub(_REPLACEMENT, value))


def line(value: str | bytes) -> str:
    """Like `clean`, on one line."""
    return clean(value).replace("\n", " ")


def styled(text: str, style: str, *, colour: bool) -> str:
    return f"{style}{text}{PLAIN}" if style and colour else text


def wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def shortened(name: str, width: int) -> str:
    """Cut the pod in NAMESPACE/POD/CONTAINER, or leave out the container: the end of the pod's name stays."""
    if len(name) <= width:
        return name
    namespace, slash, rest = name.partition("/")
    pod, *container = rest.split("/", 1)
    room = width - (len(name) - len(pod))
    if slash and room >= SHORTEST:
        return "/".join([namespace, cut(pod, room), *container])
    return shortened(f"{namespace}/{pod}", width) if container else cut(name, width)


def cut(name: str, width: int) -> str:
    """Leave out the middle: the last characters distinguish a name from its neighbours."""
    if len(name) <= width:
        return name
    tail = min(width - 2, TAIL)
    return f"{name[: width - 1 - tail]}…{name[-tail:]}" if tail > 0 else name[:width]


def width_of(cell: str) -> int:
    """Return how many columns of a terminal the cell takes: some characters take two, and some none."""
    return len(cell) if _is_narrow(cell) else sum(map(_columns, cell))


@lru_cache(maxsize=1024)
def _columns(character: str) -> int:
    from unicodedata import category, east_asian_width

    return 0 if category(character) in ("Mn", "Me", "Cf") else 1 + (east_asian_width(character) in "WF")


def fitted(cell: str, size: int, *, right: bool = False) -> str:
    """Make the cell fill `size` columns of a terminal."""
    if width_of(cell) > size:
        cell = cell[: size - 1]
        while cell and width_of(cell) >= size:
            cell = cell[:-1]
        cell += "…"
    blanks = " " * (size - width_of(cell))
    return blanks + cell if right else cell + blanks


def table_row(cells: tuple[str, ...], sizes: Sequence[int], numbers: Positions = ()) -> str:
    """Write cells side by side, as many as have a size. Those at the positions `numbers` are aligned right."""
    form, width = _row_form(tuple(sizes[: len(cells)]), numbers)
    row = form % cells[: len(sizes)]
    if len(row) == width and _is_narrow(row):  # as nearly all are: nothing to cut
        return row
    sized = enumerate(zip(cells, sizes, strict=False))
    return (" " * GAP).join([fitted(cell, size, right=at in numbers) for at, (cell, size) in sized])


@lru_cache(maxsize=64)
def _row_form(sizes: tuple[int, ...], numbers: Positions) -> tuple[str, int]:
    """Return a format for the operator %, and the length of a row in which each cell fits."""
    cells = [f"%{size}s" if at in numbers else f"%-{size}s" for at, size in enumerate(sizes)]
    return (" " * GAP).join(cells), sum(sizes) + GAP * (len(sizes) - 1)


def _is_narrow(text: str) -> bool:
    """Whether each character takes one column of a terminal, as far as that is clear without a table."""
    return text.isascii() or _NARROW.fullmatch(text) is not None


def table_lines(
    rows: Sequence[Sequence[str]], numbers: Positions, width: int, cut_first: Callable[[str, int], str] = shortened
) -> list[str]:
    """Make each column as wide as its widest cell. Only the first is cut if the lines are wider than `width`."""
    sizes = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    gaps = GAP * (len(sizes) - 1)
    if sum(sizes) + gaps > width:
        sizes[0] = max(width - sum(sizes[1:]) - gaps, min(LEAST_FIRST, sizes[0]))
    return [table_row((cut_first(first, sizes[0]), *others), sizes, numbers).rstrip() for first, *others in rows]
