from typing import NamedTuple


class Row(NamedTuple):
    """One measured figure. A row without a target is there to be compared with."""

    name: str
    figure: str
    target: str = ""
    ok: bool = True
