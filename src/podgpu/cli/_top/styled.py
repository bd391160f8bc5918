"""Lines of a screen: pieces of text, each in a style, cut and filled to a width."""

from collections.abc import Iterable
from itertools import groupby

from podgpu.model import Use
from podgpu.views.text import fitted
from podgpu.views.text import width_of as text_width

PLAIN, BOLD, DIM, RED, YELLOW, CYAN, MARKED = "", "bold", "dim", "red", "yellow", "cyan", "marked"
LOADS = ("load 1", "load 2", "load 3", "load 4")  # from a little to all of a card's time

Piece = tuple[str, str]
Line = list[Piece]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_DOUBT, _REST = "▒", "·"
_LEAST = 0.005  # less reads as 0%


def load_style(ratio: float | None) -> str:
    if ratio is None or ratio < _LEAST:
        return DIM
    return LOADS[min(int(ratio * len(LOADS)), len(LOADS) - 1)]


def bar(use: Use, size: int) -> Line:
    """Draw what is certain, or likely, solid, and what is in doubt shaded."""
    if use.ratio is None:
        return [(" " * size, PLAIN)]
    low, high = use.range
    sure = use.ratio if low is None else low
    most = use.ratio if high is None else high
    eighths = round(min(max(sure, 0.0), 1.0) * size * 8)
    full, part = divmod(eighths, 8)
    solid = "█" * full + (_EIGHTHS[part] if part and low is None else "")
    doubt = _DOUBT * (round(min(max(most, 0.0), 1.0) * size) - len(solid))
    return [(solid + doubt, load_style(use.ratio)), (_REST * (size - len(solid) - len(doubt)), DIM)]


def height(ratio: float | None) -> Piece:
    """Draw how busy something is in a single cell."""
    if ratio is None:
        return _REST, DIM
    return _HEIGHTS[round(min(max(ratio, 0.0), 1.0) * (len(_HEIGHTS) - 1))], load_style(ratio)


def sparkline(ratios: Iterable[float | None], size: int) -> Line:
    """Draw the newest ratios, a cell for each, the latest at the right."""
    cells = [height(ratio) for ratio in ratios][-size:]
    runs = groupby(cells, key=lambda cell: cell[1])
    return [
        (" " * (size - len(cells)), PLAIN),
        *(("".join(text for text, _ in run), style) for style, run in runs),
    ]


def dimmed(line: Line) -> Line:
    return [(text, style if style == MARKED else DIM) for text, style in line]


def width_of(line: Line) -> int:
    return sum(text_width(text) for text, _ in line)


def spread(left: Line, right: Line, width: int) -> Line:
    """Put the two at either end of a line. The left one is cut if there is no room."""
    room = max(width - width_of(right) - 1, 0)
    left = clipped(left, room)
    return [*left, (" " * (width - width_of(left) - width_of(right)), PLAIN), *right] if room else left


def clipped(line: Line, width: int) -> Line:
    found: Line = []
    for text, style in line:
        size = text_width(text)
        if size > width:
            return [*found, (fitted(text, width), style)] if width > 0 else found
        found.append((text, style))
        width -= size
    return found
