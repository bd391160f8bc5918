"""The loop of `podgpu top`: new clusters, keys and clicks in, screens out."""

import threading
from dataclasses import dataclass, replace

from podgpu.cli._target import Target
from podgpu.cli._top import kubectl
from podgpu.cli._top.keys import Click, TopState, press, toggled
from podgpu.cli._top.kubectl import Kubectl
from podgpu.cli._top.layout import RenderedScreen, render
from podgpu.cli._top.rows import TopRows, UseHistory
from podgpu.cli._top.screen import Screen
from podgpu.errors import UserError
from podgpu.insight.selection import PodSelection
from podgpu.model import Cluster
from podgpu.numbers import moment, times
from podgpu.views.text import line

_WAIT_SECONDS = 5.0
BACK, FORTH = "[", "]"
JUMPS = {"{": -60.0, "}": 60.0, "(": -600.0, ")": 600.0}  # seconds
_TIME_KEYS = (BACK, FORTH, *JUMPS)
_A_LITTLE = 0.001  # before a moment is the one before it
# To the next moment, by how often they are kept, and a little for those that come late.
_NODE_SECONDS, _CLUSTER_SECONDS = 6.0, 35.0


class RowUpdater:
    """Waits for a newer cluster and computes its rows in a thread of its own, so that keys never wait."""

    def __init__(self, target: Target, chosen: PodSelection, shown: str) -> None:
        self.shown = shown
        self._history = UseHistory()
        self._target = target
        self._chosen = chosen
        self.newest = self._prepared()
        self.failure: BaseException | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def _prepared(self) -> TopRows:
        return TopRows(self._target.cluster, self._chosen, self._history).prepare(self.shown)

    def _run(self) -> None:
        try:
            while True:
                seen = self.newest.cluster
                if self._target.changed(seen, _WAIT_SECONDS) is not seen:
                    self.newest = self._prepared()
        except BaseException as error:
            self.failure = error


class PastRows:
    """Steps through what an agent or a cluster has kept of the last hour.

    `rows` are those of the moment that is shown; None in the present.
    """

    def __init__(self, target: Target, chosen: PodSelection) -> None:
        self.rows: TopRows | None = None
        self._target = target
        self._chosen = chosen

    @property
    def mode(self) -> str:
        return f"PAST {moment(self.rows.cluster.taken_at)}" if self.rows else ""

    def step(self, key: str, shown: TopRows, view: str) -> str:
        """Go to another moment, by a step or a jump. Return why not, if there is none."""
        if (key == FORTH or JUMPS.get(key, 0.0) > 0) and self.rows is None:
            return "this is the present"
        try:
            found = self._found(key, shown.cluster)
        except UserError as error:
            return str(error)
        self.rows = TopRows(found, self._chosen).prepare(view) if found else None
        return ""

    def _found(self, key: str, shown: Cluster) -> Cluster | None:
        """Return None if what comes next is the present."""
        if key == BACK:
            return self._target.past(shown.taken_at - _A_LITTLE)
        if JUMPS.get(key, 0.0) < 0:
            return self._target.past(shown.taken_at + JUMPS[key])
        step = max(_NODE_SECONDS if self._target.is_one_node else _CLUSTER_SECONDS, 1.2 * shown.interval_seconds)
        step = max(step, JUMPS.get(key, 0.0))
        newest = self._target.cluster.taken_at
        if shown.taken_at + step >= newest:
            return None
        found = self._target.past(shown.taken_at + step)
        return found if found.taken_at > shown.taken_at else None


@dataclass(frozen=True, slots=True)
class Controls:
    """What keys act on besides the screen's own state."""

    screen: Screen
    target: Target
    kubectl: Kubectl


def live(controls: Controls, chosen: PodSelection, state: TopState) -> None:
    screen, target = controls.screen, controls.target
    updater = RowUpdater(target, chosen, state.view)
    past = PastRows(target, chosen)
    rows = updater.newest
    first = 0
    while not state.quits:
        if updater.failure is not None:
            raise updater.failure
        rows = past.rows or (rows if state.paused else updater.newest)
        updater.shown = state.view
        shown = render(rows, state, *screen.size, first, past.mode or _mode(target, rows))
        first = shown.first
        # At the top the cursor stays there, whichever row that is.
        state = replace(state, line=shown.cursor, follows=shown.place if shown.cursor else None)
        screen.draw(shown.lines)
        key = _key(screen, state, rows, updater, past)
        if key in _TIME_KEYS and target.player is None and not (state.typing or state.overlay):
            state = replace(state, message=past.step(key, rows, state.view))
        elif key == " " and past.rows and not state.typing:
            past.rows = None
            state = replace(state, paused=False)
        elif isinstance(key, Click):
            state = _after_click(key, state, shown)
        elif key:
            state = _after(key, state, controls, shown)


def _mode(target: Target, rows: TopRows) -> str:
    if target.player is None:
        return ""
    over = "  over" if target.player.is_over else ""
    return f"REPLAY {moment(rows.cluster.taken_at)}  {times(target.player.speed)}{over}"


def _key(screen: Screen, state: TopState, rows: TopRows, updater: RowUpdater, past: PastRows) -> str | Click:
    """Wait for a key or for newer rows. Return no key if there are newer rows."""
    while not (key := screen.key()):
        is_held = state.paused or past.rows is not None
        if updater.failure is not None or (updater.newest is not rows and not is_held):
            break
    return key


def _after_click(click: Click, state: TopState, shown: RenderedScreen) -> TopState:
    """A click on the chosen row opens it; one on another row chooses that."""
    state = replace(state, follows=None, message="")
    if state.overlay:
        return replace(state, overlay="")
    zone = next((zone for zone in shown.zones if zone.has(click)), None)
    if zone is not None:
        return zone.change(state, shown.room)
    number = shown.first + click.row - shown.top
    if click.row < shown.top or number >= min(shown.length, shown.first + shown.room):
        return state
    if number == shown.cursor and shown.entry is not None:
        return toggled(state, shown.entry.key)
    return replace(state, line=number)


def _after(key: str, state: TopState, controls: Controls, shown: RenderedScreen) -> TopState:
    if state.typing or state.overlay:
        return press(state, key, shown.room)
    if key == "enter" and shown.entry is not None:
        return toggled(state, shown.entry.key)
    if key == "y":
        return replace(state, message=_copied(controls.screen, state.view, shown))
    if key in kubectl.KEYS:
        return replace(state, message=_called(key, state.view, controls, shown))
    player = controls.target.player
    if player is not None and key == " ":
        player.pause()
    elif player is not None and key in ("+", "-"):
        player.go_faster(1 if key == "+" else -1)
    elif player is not None and key in (BACK, FORTH):
        player.step(1 if key == FORTH else -1)
    elif player is not None and key in JUMPS:
        player.jump(JUMPS[key])
    return press(state, key, shown.room)


def _copied(screen: Screen, view: str, shown: RenderedScreen) -> str:
    """Copy what names the row, for another command: of a GPU its UUID."""
    if shown.entry is None:
        return ""
    cards = shown.entry.cards
    name = line(cards[0].card.gpu.uuid if view == "gpus" and cards else shown.entry.row.title)
    screen.copy(name)
    return f"copied {name}"


def _called(key: str, view: str, controls: Controls, shown: RenderedScreen) -> str:
    try:
        container = kubectl.chosen_container(key, view, shown.entry)
    except UserError as error:
        return str(error)
    with controls.screen.suspended():
        kubectl.call(controls.kubectl, key, container)
    return ""
