"""Lines of a screen: pieces of text, each in a style, cut and filled to a width."""

from podgpu.model import Use
from podgpu.views.text import fitted

PLAIN, BOLD, DIM, RED, YELLOW, CYAN, MARKED = "", "bold", "dim", "red", "yellow", "cyan", "marked"

Piece = tuple[str, str]
Line = list[Piece]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_DOUBT, _REST = "▒", "·"


def bar(use: Use, size: int) -> Line:
    """Draw what is certain solid, and what is in doubt shaded."""
    if use.ratio is None:
        return [(" " * size, PLAIN)]
    sure = use.ratio if use.least is None else use.least
    most = use.ratio if use.most is None else use.most
    eighths = round(min(max(sure, 0.0), 1.0) * size * 8)
    full, part = divmod(eighths, 8)
    solid = "█" * full + (_EIGHTHS[part] if part and use.least is None else "")
    doubt = _DOUBT * (round(min(max(most, 0.0), 1.0) * size) - len(solid))
    return [(solid + doubt, CYAN), (_REST * (size - len(solid) - len(doubt)), DIM)]


def width_of(line: Line) -> int:
    return sum(len(text) if text.isascii() else _cells(text) for text, _ in line)


def spread(left: Line, right: Line, width: int) -> Line:
    """Put the two at either end of a line. The left one is cut if there is no room."""
    room = max(width - width_of(right) - 1, 0)
    left = clipped(left, room)
    return [*left, (" " * (width - width_of(left) - width_of(right)), PLAIN), *right] if room else left


def clipped(line: Line, width: int) -> Line:
    found: Line = []
    for text, style in line:
        size = len(text) if text.isascii() else _cells(text)
        if size > width:
            return [*found, (fitted(text, width), style)] if width > 0 else found
        found.append((text, style))
        width -= size
    return found


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
