"""The whole screen as lines, for the present rows and choices. Only rows that fit are written."""

from dataclasses import dataclass

from podgpu.cli._top.keys import VIEWS, TopState, Zone, choose_view
from podgpu.cli._top.meters import NOTHING, Meters, meters
from podgpu.cli._top.overlay import overlay
from podgpu.cli._top.row_lines import RowLines, empty_text
from podgpu.cli._top.rows import TopRows
from podgpu.cli._top.styled import BOLD, CYAN, DIM, MARKED, PLAIN, RED, YELLOW, Line, bar, clipped, spread, width_of
from podgpu.insight import dark
from podgpu.insight.problem_kind import CRITICAL
from podgpu.insight.rows import SummaryItem
from podgpu.insight.sums import seen_gpus
from podgpu.model import Cluster, Sums, Use
from podgpu.numbers import count, gpu_number, integer, moment
from podgpu.views.format import guests_text
from podgpu.views.text import line

_WIDE_CLOCK = 100  # from here on there is room for the date
_LEAST_ROWS = 6  # of the body, beside the meters
_METER_PART = 3  # the meters take no more than this part of the height
# The last are left out first.
_HINTS = ("? help", "q quit", "/ filter", "s sort", "enter open", "w wrong", "i idle", "l logs", "e shell", "y copy")


@dataclass(frozen=True, slots=True)
class RenderedScreen:
    """`cursor` and `first` are lines of the body: where the cursor is, and which stands at the top, on line `top`."""

    lines: list[Line]
    top: int = 0
    first: int = 0
    room: int = 1
    length: int = 0  # of the body
    cursor: int = 0
    entry: SummaryItem | None = None  # the row of the cursor
    place: tuple[str, int] | None = None  # its key, and the line of it
    zones: tuple[Zone, ...] = ()


def render(rows: TopRows, state: TopState, width: int, height: int, first: int = 0, mode: str = "") -> RenderedScreen:
    """`mode` goes before the summary, such as REPLAY and its time."""
    above, foot = [_first_problem(rows, width)], clipped(_foot(state, width), width)
    if state.overlay:
        room = max(height - len(above) - 1, 1)
        shown = [clipped(text, width) for text in overlay(state.overlay, rows, width)[:room]]
        return RenderedScreen([*above, *shown, *([] for _ in range(room - len(shown))), foot], room=room)
    drawn = _meters(rows, state, width, height)
    table = RowLines(rows, state, width)
    tabs, tab_zones = _tabs(state, width)
    head, head_zones = table.layout.head()
    above += [_summary(rows, mode, width), *drawn.lines, tabs, head]
    zones = [zone.below(2) for zone in drawn.zones] + [zone.below(len(above) - 2) for zone in tab_zones]
    zones += [zone.below(len(above) - 1) for zone in head_zones]
    room, at = max(height - len(above) - 1, 1), table.cursor()
    first = min(max(first, at - room + 1, 0), at, max(len(table) - room, 0))
    shown = [table.line(number, is_marked=number == at) for number in range(first, min(first + room, len(table)))]
    shown = shown or [[(empty_text(state), DIM)]]
    return RenderedScreen(
        [*above, *shown, *([] for _ in range(room - len(shown))), foot],
        top=len(above),
        first=first,
        room=room,
        length=len(table),
        cursor=at,
        entry=table.entry(at),
        place=table.place(at),
        zones=tuple(zones),
    )


def _meters(rows: TopRows, state: TopState, width: int, height: int) -> Meters:
    """Draw the GPUs, unless the rows below are the same ones."""
    same = ("gpus", "nodes") if rows.has_many_nodes else ("gpus",)
    if not state.has_meters or state.view in same:
        return NOTHING
    return meters(rows, width, min(height // _METER_PART, height - _LEAST_ROWS - 5))


def _first_problem(rows: TopRows, width: int) -> Line:
    taken = moment(rows.cluster.taken_at)
    clock: Line = [] if rows.cluster.replayed else [(taken if width >= _WIDE_CLOCK else _time(taken), DIM)]
    if rows.is_cut_off:  # all else that is wrong is of the past too
        return spread([(f"! {rows.problems[0]}", RED)], [(f" cut off since {_time(taken)} ", MARKED)], width)
    if not rows.problems:
        return spread([("Nothing is wrong.", DIM)], clock, width)
    more = f"  +{integer(len(rows.problems) - 1)} more: w" if len(rows.problems) > 1 else ""
    return spread([(f"! {rows.problems[0]}", RED)], [(more, RED), ("  ", PLAIN), *clock], width)


def _time(taken: str) -> str:
    """The time of a moment without its date."""
    return taken.partition(" ")[2] or taken


def _summary(rows: TopRows, mode: str, width: int) -> Line:
    cluster = rows.cluster
    sums = cluster.insight.sums if cluster.insight else Sums()
    name = line(cluster.name) or (line(cluster.nodes[0].name) if len(cluster.nodes) == 1 else "")
    marks: Line = [(f" {mark} ", MARKED) for mark in (mode, "DEMO" if cluster.demo else "") if mark]
    known = seen_gpus(sums)
    whole = Use(sums.busy_gpus / known if sums.busy_gpus is not None and known > 0 else None)
    head: Line = [piece for mark in marks for piece in (mark, (" ", PLAIN))]
    head += [(f"{name}  " if name else "", BOLD), *bar(whole, 8)]
    busy = "" if sums.busy_gpus is None else f"{gpu_number(sums.busy_gpus)} busy of "
    cards = "GPUs not known" if sums.gpus is None else count(sums.gpus, "GPU")
    facts: Line = [*_dark(cluster), (f"{busy}{cards}", PLAIN)]
    if sums.unused_pods:
        facts.append((f"{gpu_number(sums.unused_gpus)} idle in {count(sums.unused_pods, 'pod')}", YELLOW))
    elif sums.unused_pods is None:
        facts.append(("idle not known", DIM))
    facts += [(given, PLAIN)] if (given := guests_text(cluster.insight)) else []
    at_least = "at least " if sums.unknown_shares else ""
    facts.append((f"{at_least}{gpu_number(sums.allocated_gpus)} held", PLAIN))
    facts += [(count(len(cluster.nodes), "node"), PLAIN)] * rows.has_many_nodes
    facts += [(f"{integer(len(cluster.pending))} pending", PLAIN)] * bool(cluster.pending)
    facts += [] if sums.pods is None else [(count(sums.pods, "pod"), PLAIN)]
    while len(facts) > 1 and width_of(head) + width_of(facts) + 2 * len(facts) > width:
        facts.pop()  # the least important is last
    return clipped([*head, *(piece for fact in facts for piece in (("  ", PLAIN), fact))], width)


def _dark(cluster: Cluster) -> Line:
    """Of how many nodes the numbers are, if not of all: before any sum over them."""
    found = cluster.insight.dark if cluster.insight else None
    if found is None or found.state == dark.LIVE:
        return []
    is_many = found.nodes and found.of_nodes > 1
    text = f"{integer(found.nodes)} of {count(found.of_nodes, 'node')} dark" if is_many else line(found.text)
    return [(text, RED if found.severity == CRITICAL else YELLOW)]


def _tabs(state: TopState, width: int) -> tuple[Line, list[Zone]]:
    """Return the line with the views and what narrows them, and where each view is: a click chooses it."""
    tabs: Line = []
    zones = []
    for number, view in enumerate(VIEWS, 1):
        tab, left = f" {number} {'GPUs' if view == 'gpus' else view.capitalize()} ", width_of(tabs)
        zones.append(Zone(0, left, left + len(tab), choose_view(view)))
        tabs += [(tab, MARKED if view == state.view else PLAIN), (" ", PLAIN)]
    marks = [f"filter {state.words}"] * bool(state.words and not state.typing)
    marks += ["idle only"] * state.only_idle + ["PAUSED"] * state.paused
    return spread(tabs, [("  ".join(marks), YELLOW)], width), zones


def _foot(state: TopState, width: int) -> Line:
    if state.typing:
        return [("/", BOLD), (state.words, PLAIN), ("▏", CYAN), ("   enter keeps it, escape drops it", DIM)]
    if state.message:
        return [(state.message, YELLOW)]
    hints = list(_HINTS)
    while len("  ".join(hints)) > width:
        hints.pop()
    return [("  ".join(hints), DIM)]
