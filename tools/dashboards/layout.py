"""What a person sees in a window of 1366 by 768 pixels, with Grafana's menu open, estimated by the sizes of panels."""

from collections.abc import Iterator

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Panel

COLUMN = 43  # pixels of one of the 24 columns
GAP, PADDING = 8, 16
FOLD = 15  # grid rows above the fold: 768 pixels less those of Grafana and of the choices, at 38 each
CHARACTER = 7.6  # pixels of a usual character of a heading
TITLE_ICONS = 60  # beside a panel's title: the mark for its description, and its menu
CELL = 16  # padding of a cell
ARROW = 22  # of the column that sorts


def complaints(board: Dashboard) -> Iterator[str]:
    """Say what would be cut, and whether the panel that answers the dashboard's question is on the first screen."""
    for panel in board.panels:
        yield from (f"{board.uid}: {panel.title}: {what}" for what in _cut(panel))
    bottom = _bottom(board)
    if bottom is None:
        yield f"{board.uid}: there is no panel {board.answer}"
    elif bottom > FOLD:
        yield f"{board.uid}: {board.answer} ends at row {bottom}, below the first screen of {FOLD}"


def room(width: int) -> int:
    """Pixels within a panel of so many columns."""
    return width * COLUMN - GAP - PADDING


def _cut(panel: Panel) -> Iterator[str]:
    if CHARACTER * len(panel.title) > room(panel.width) - TITLE_ICONS:
        yield "its title is cut"
    if panel.kind == "timeseries" and panel.width < 12:
        yield "its plot is narrower than half of the window"
    if panel.kind != "table":
        return
    columns = [(column.title, column.width) for column in panel.columns]
    columns += [(query.legend, query.width) for query in panel.queries if query.legend]
    for heading, width in columns:
        wanted = CHARACTER * len(heading) + CELL + (ARROW if heading == panel.sort else 0)
        if wanted > width:
            yield f"the heading {heading} takes {wanted:.0f} of {width} pixels"
    total = sum(width for _, width in columns)
    if total > room(panel.width):
        yield f"its columns take {total} of {room(panel.width)} pixels"


def _bottom(board: Dashboard) -> int | None:
    """The grid row at which the panel ends that answers the question."""
    ends = [
        place["gridPos"]["y"] + place["gridPos"]["h"]
        for place in board.model()["panels"]
        if place["title"] == board.answer and place["type"] != "row"
    ]
    return min(ends, default=None)
