"""Elastic tab stops: each column is as wide as its widest cell in the lines around that have one.

A cell ends with a tab. What follows the last tab of a line belongs to no column and is not padded.
"""

PADDING = 2


def aligned(text: str, padding: int = PADDING) -> str:
    lines = [line.split("\t") for line in text.split("\n")]
    widths = [[0] * (len(line) - 1) for line in lines]
    deepest = max(map(len, widths))
    for column in range(deepest):
        _widen(lines, widths, column, padding)
    return "\n".join(
        "".join(cell.ljust(width) for cell, width in zip(line, [*sizes, 0], strict=True))
        for line, sizes in zip(lines, widths, strict=True)
    )


def _widen(lines: list[list[str]], widths: list[list[int]], column: int, padding: int) -> None:
    """Give one column its width, block by block: a line without it ends a block."""
    block: list[int] = []
    for place in range(len(lines) + 1):
        if place < len(lines) and column < len(widths[place]):
            block.append(place)
            continue
        width = max((len(lines[one][column]) for one in block), default=0) + padding
        for one in block:
            widths[one][column] = width
        block = []
