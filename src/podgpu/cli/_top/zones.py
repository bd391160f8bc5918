"""Where a click does something, and what."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from podgpu.cli._top.keys import Change, TopState


@dataclass(frozen=True, slots=True)
class Click:
    """Of the first button, counted from the upper left cell."""

    column: int
    row: int


@dataclass(frozen=True, slots=True)
class Zone:
    """Cells of one line, from `left` to before `right`."""

    row: int
    left: int
    right: int
    change: Change

    def has(self, click: Click) -> bool:
        return click.row == self.row and self.left <= click.column < self.right

    def below(self, rows: int) -> "Zone":
        return replace(self, row=self.row + rows)


def opened(view: str, key: str) -> Change:
    """Go to the view and open that row alone."""
    return lambda state, _: replace(
        state, view=view, opened=frozenset({(view, key)}), follows=(key, 0), overlay=""
    )


def zone_at(zones: Sequence[Zone], click: Click) -> Zone | None:
    return next((zone for zone in zones if zone.has(click)), None)


def toggled(state: TopState, key: str) -> TopState:
    """Open a row, or close it."""
    return replace(state, opened=state.opened ^ {(state.view, key)})
