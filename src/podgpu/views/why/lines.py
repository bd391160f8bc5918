"""Lines of a given width: facts with a word before them, long paths folded."""

import textwrap
from collections.abc import Iterator

_LABEL = 11


def fact(label: str, text: str, width: int, indent: int = 0) -> list[str]:
    """`Label      text`, the text wrapped below itself."""
    head = f"{' ' * indent}{label:<{_LABEL}}"
    return textwrap.wrap(
        text, width, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    )


def path(text: str, width: int, indent: int = 0) -> list[str]:
    """A path below a fact, cut at slashes where that is possible."""
    margin = " " * (indent + _LABEL)
    return [f"{margin}{piece}" for piece in _pieces(text, width - len(margin))]


def _pieces(text: str, room: int) -> Iterator[str]:
    while len(text) > room:
        cut = text.rfind("/", 1, room)
        cut = room if cut <= 0 else cut
        yield text[:cut]
        text = text[cut:]
    yield text
