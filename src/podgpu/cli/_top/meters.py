"""The GPUs above the rows: of one node a meter each, of several a cell each, of many a cell for each node."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from podgpu.cli._top.keys import Zone, opened
from podgpu.cli._top.rows import TopRows
from podgpu.cli._top.styled import BOLD, DIM, PLAIN, RED, Line, bar, clipped, dimmed, height, sparkline, width_of
from podgpu.insight.rows import SummaryItem, SummaryRow
from podgpu.insight.tenants import NodeCard
from podgpu.numbers import celsius, count, percent, watts
from podgpu.views.text import fitted, line, shortened

_GAP = 2
_LEAST_METER, _USUAL_METER = 28, 38
_MOST_METERS = 4  # side by side
_INDEX, _BAR, _PERCENT = 3, 8, 5
_LEAST_TREND, _MOST_TREND = 8, 60
_LEAST_NAME, _MOST_NAME = 6, 24
_LOST = "✗"
_DARK = "?"


@dataclass(frozen=True, slots=True)
class Meters:
    lines: list[Line]
    zones: list[Zone]


NOTHING = Meters([], [])


def meters(rows: TopRows, width: int, most_lines: int) -> Meters:
    """Draw nothing where there is no room for all of it."""
    drawn = NOTHING
    if not rows.has_many_nodes:
        drawn = _node_meters(rows, width)
    elif rows.all("nodes"):  # a selection may leave none
        drawn = _gpu_cells(rows, width, most_lines) or _node_cells(rows, width, most_lines)
    if not 0 < len(drawn.lines) <= most_lines:
        return NOTHING
    return Meters([dimmed(text) for text in drawn.lines], drawn.zones) if rows.is_cut_off else drawn


def _node_meters(rows: TopRows, width: int) -> Meters:
    """Draw a meter for each GPU, from top to bottom and then from left to right."""
    items = rows.all("gpus")
    beside, least = _MOST_METERS, _USUAL_METER if width >= 2 * _USUAL_METER else _LEAST_METER
    while beside > 1 and (width // beside < least or len(items) < beside):
        beside //= 2
    size, deep = width // beside - _GAP, ceil(len(items) / beside)
    if not items or size < _LEAST_METER - _GAP:
        return NOTHING
    columns = _MeterColumns(size)
    used = ceil(len(items) / deep)
    lines: list[Line] = [[piece for _ in range(used) for piece in (*columns.head(), (" " * _GAP, PLAIN))]]
    zones = []
    for row in range(deep):
        meter_line: Line = []
        for at, item in enumerate(items[row::deep]):
            left = at * (size + _GAP)
            zones.append(Zone(row + 1, left, left + size, opened("gpus", item.key)))
            meter_line += [*columns.meter(item, rows.history.of("gpus", item.key)), (" " * _GAP, PLAIN)]
        lines.append(clipped(meter_line, width))
    return Meters(lines, zones)


class _MeterColumns:
    """Memory, temperature and power have a column where a trend still fits beside them."""

    def __init__(self, size: int) -> None:
        left = size - _INDEX - _BAR - _PERCENT - 1
        self._size = size
        self._more = []
        for title, text, wide in _FACTS:
            if left - wide - 1 >= _LEAST_TREND:
                self._more.append((title, text, wide))
                left -= wide + 1
        self._trend = min(left, _MOST_TREND)

    def head(self) -> Line:
        titles = "".join(f" {title:>{wide}}" for title, _, wide in self._more)
        text = f"{'GPU':<{_INDEX + _BAR + _PERCENT - 3}}USE {'TREND':>{self._trend}}{titles}"
        return [(fitted(text, self._size), DIM)]

    def meter(self, item: SummaryItem, trend: Sequence[float | None]) -> Line:
        card, row = item.cards[0].card, item.row
        index: Line = [(f"{card.gpu.number:>{_INDEX - 1}} ", BOLD)]
        if card.fault is not None:
            return [*index, (fitted(line(card.fault.reason), self._size - _INDEX), RED)]
        facts = "".join(f" {text(row):>{wide}}" for _, text, wide in self._more)
        cells = [
            *index,
            *bar(row.use, _BAR),
            (f"{percent(row.use_ratio):>{_PERCENT}} ", PLAIN),
            *sparkline(trend, self._trend),
            (facts, PLAIN),
        ]
        return [*cells, (" " * (self._size - width_of(cells)), PLAIN)]


def _memory(row: SummaryRow) -> str:
    if row.memory_used_bytes is None or not row.memory_total_bytes:
        return percent(None)
    return percent(row.memory_used_bytes / row.memory_total_bytes)


_FACTS = (
    ("MEM", _memory, 4),
    ("TEMP", lambda row: celsius(row.temperature_celsius), 6),
    ("POWER", lambda row: watts(row.power_watts), 6),
)


def _gpu_cells(rows: TopRows, width: int, most_lines: int) -> Meters | None:
    """Draw a cell for each GPU, with the name of the node before them; None if that is too much."""
    items = rows.all("nodes")
    longest = max(len(item.row.name) for item in items)
    name = min(max(longest, _LEAST_NAME), _MOST_NAME)
    size = name + 1 + max(len(item.cards) for item in items) + _GAP
    beside = (width + _GAP) // size
    if not beside or ceil(len(items) / beside) > most_lines:
        return None
    drawn = Meters([], [])
    for start in range(0, len(items), beside):
        cells: Line = []
        for at, item in enumerate(items[start : start + beside]):
            block: Line = [(fitted(shortened(line(item.row.name), name), name), _tone(item)), (" ", PLAIN)]
            block += [_cell(on) for on in item.cards] or [(_DARK, RED)] * _is_dark(item)
            cells += [*block, (" " * (size - width_of(block)), PLAIN)]
            zone = Zone(len(drawn.lines), at * size, (at + 1) * size - _GAP, opened("nodes", item.key))
            drawn.zones.append(zone)
        drawn.lines.append(clipped(cells, width))
    return drawn


def _tone(item: SummaryItem) -> str:
    return PLAIN if item.node is None or item.node.state == "fresh" else DIM


def _is_dark(item: SummaryItem) -> bool:
    return item.node is not None and item.node.is_dark


def _cell(on: NodeCard) -> tuple[str, str]:
    if on.is_dark:
        return _DARK, RED
    if on.card.fault is not None:
        return _LOST, RED
    return height(on.card.use.ratio if on.card.use and on.is_fresh else None)


def _node_cells(rows: TopRows, width: int, most_lines: int) -> Meters:
    """Draw a cell for each node, or for a few of them, by name: how busy its GPUs are on average."""
    items = rows.all("nodes")
    room = width * (most_lines - 1)
    each = ceil(len(items) / room) if room > 0 else 0
    if not each:
        return NOTHING
    groups = [items[start : start + each] for start in range(0, len(items), each)]
    what = "a node" if each == 1 else count(each, "node")
    head = f"a cell is {what}, by name: ▁ little used … █ busy, · not known, {_DARK} dark"
    drawn = Meters([clipped([(head, DIM)], width)], [])
    for start in range(0, len(groups), width):
        for at, group in enumerate(groups[start : start + width]):
            drawn.zones.append(Zone(len(drawn.lines), at, at + 1, opened("nodes", group[0].key)))
        drawn.lines.append([_group_cell(group) for group in groups[start : start + width]])
    return drawn


def _group_cell(group: Sequence[SummaryItem]) -> tuple[str, str]:
    if any(map(_is_dark, group)):
        return _DARK, RED
    known = [item.row.use_ratio for item in group if item.row.use_ratio is not None]
    return height(sum(known) / len(known) if known else None)
