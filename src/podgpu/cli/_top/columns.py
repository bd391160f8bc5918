"""The columns of each view: how they read, how they sort, and which give way first on a narrow screen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from podgpu.insight.rows import SummaryRow
from podgpu.insight.tenants import IDLE
from podgpu.numbers import UNKNOWN, age, celsius, gib, integer, watts
from podgpu.views.format import held_text, use_text
from podgpu.views.text import line

USE = "USE"
STATE = "STATE"
Value = float | str | None


@dataclass(frozen=True, slots=True)
class TopColumn:
    """A column of the screen. On a narrow screen those of the least `worth` are left out first, those of 9 never."""

    title: str
    text: Callable[[SummaryRow], str]
    value: Callable[[SummaryRow], Value]
    size: int
    worth: int = 9
    number: bool = True
    ascending: bool = False


def state_of(row: SummaryRow) -> str:
    state = line(row.state)
    if row.dark_seconds is not None:
        return f"{state} {age(row.dark_seconds)}"
    return f"{state} {age(row.idle_seconds)}" if state == IDLE and row.idle_seconds is not None else state


def _gpus(row: SummaryRow) -> str:
    return ",".join(row.gpus) or _count(row, row.cards)


def _count(row: SummaryRow, number: int) -> str:
    """Nothing is known of a row without cards: its node does not answer, or the pod waits for one."""
    return integer(number) if row.cards else UNKNOWN


def _held(row: SummaryRow) -> str:
    return held_text(row.held_gpus, row.unknown_shares)


def _words(title: str, text: Callable[[SummaryRow], str], size: int, worth: int = 9) -> TopColumn:
    return TopColumn(title, text, lambda row: text(row) or None, size, worth, number=False, ascending=True)


def _name(title: str) -> TopColumn:
    return _words(title, lambda row: line(row.title), 0)


_NODE = _words("NODE", lambda row: line(row.node) or (UNKNOWN if row.state == "pending" else "several"), 12, 7)
_GPU = TopColumn("GPU", _gpus, lambda row: float(row.cards), 9, 6, number=False)
_MODEL = _words("MODEL", lambda row: line(row.model) or UNKNOWN, 12, 4)
_KIND = _words("KIND", lambda row: line(row.kind), 11, 3)
_PODS = TopColumn("PODS", lambda row: _count(row, row.pods), lambda row: float(row.pods), 5, 6)
_CARDS = TopColumn("GPUS", lambda row: _count(row, row.cards), lambda row: float(row.cards), 5, 7)
_HELD = TopColumn("HELD", _held, lambda row: row.held_gpus, 6, 6)
_SHARE = TopColumn("HELD", _held, lambda row: row.held_gpus, 5, 2)
_USE = TopColumn(USE, lambda row: use_text(row.use), lambda row: row.use_ratio, 14)
_MEMORY = TopColumn("MEM GiB", lambda row: gib(row.memory_used_bytes), lambda row: row.memory_used_bytes, 7, 8)
_LIMIT = TopColumn("OF GiB", lambda row: gib(row.memory_total_bytes), lambda row: row.memory_total_bytes, 7, 3)
_POWER = TopColumn("POWER", lambda row: watts(row.power_watts), lambda row: row.power_watts, 7, 5)
_HEAT = TopColumn("TEMP", lambda row: celsius(row.temperature_celsius), lambda row: row.temperature_celsius, 6, 5)
_STATE = _words(STATE, state_of, 11, 8)
_CARD_STATE = _words(STATE, state_of, 14, 8)  # room for an XID and idle pods

COLUMNS: Mapping[str, tuple[TopColumn, ...]] = {
    "pods": (_name("NAMESPACE/POD"), _NODE, _GPU, _SHARE, _USE, _MEMORY, _LIMIT, _POWER, _STATE),
    "workloads": (_name("NAMESPACE/WORKLOAD"), _KIND, _PODS, _HELD, _USE, _MEMORY, _POWER, _STATE),
    "namespaces": (_name("NAMESPACE"), _PODS, _CARDS, _HELD, _USE, _MEMORY, _POWER, _STATE),
    "gpus": (_name("NODE GPU"), _MODEL, _PODS, _USE, _MEMORY, _LIMIT, _HEAT, _POWER, _CARD_STATE),
    "nodes": (_name("NODE"), _MODEL, _CARDS, _PODS, _HELD, _USE, _MEMORY, _LIMIT, _HEAT, _POWER, _STATE),
}
NOUNS = {view: "GPUs" if view == "gpus" else view for view in COLUMNS}
SORTED_BY = {"pods": USE, "workloads": USE, "namespaces": USE, "gpus": "NODE GPU", "nodes": "NODE"}


def column_of(view: str, title: str) -> TopColumn:
    return next(column for column in COLUMNS[view] if column.title == title)
