from typing import NamedTuple


class Figure(NamedTuple):
    """A measured value. Without a target it is there for comparison."""

    name: str
    value: str
    target: str = ""
    ok: bool = True
