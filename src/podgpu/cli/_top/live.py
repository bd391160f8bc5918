"""The loop of `podgpu top`: new clusters and keys in, screens out."""

import threading
from dataclasses import replace

from podgpu.cli._target import Target
from podgpu.cli._top.keys import TopState, press
from podgpu.cli._top.layout import FOOT, HEAD, render
from podgpu.cli._top.rows import TopRows
from podgpu.cli._top.screen import Screen
from podgpu.insight.selection import PodSelection
from podgpu.numbers import moment, times

_WAIT_SECONDS = 5.0


class RowUpdater:
    """Waits for a newer cluster and computes its rows in a thread of its own, so that keys never wait."""

    def __init__(self, target: Target, chosen: PodSelection, shown: str) -> None:
        self.shown = shown
        self.newest = TopRows(target.cluster, chosen).prepare(shown)
        self.failure: BaseException | None = None
        self._target = target
        self._chosen = chosen
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            while True:
                seen = self.newest.cluster
                cluster = self._target.changed(seen, _WAIT_SECONDS)
                if cluster is not seen:
                    self.newest = TopRows(cluster, self._chosen).prepare(self.shown)
        except BaseException as error:
            self.failure = error


def live(screen: Screen, target: Target, chosen: PodSelection, state: TopState) -> None:
    updater = RowUpdater(target, chosen, state.view)
    rows = updater.newest
    first = 0
    while not state.quits:
        if updater.failure is not None:
            raise updater.failure
        rows = rows if state.paused else updater.newest
        updater.shown = state.view
        width, height = screen.size
        shown = render(rows, state, width, height, first, _mode(target, rows))
        first, state = shown.first, replace(state, line=shown.line)
        screen.draw(shown.lines)
        key = _key(screen, state, rows, updater)
        state = _after(key, state, target, shown.key, max(height - HEAD - FOOT, 1))


def _mode(target: Target, rows: TopRows) -> str:
    if target.player is None:
        return ""
    over = "  over" if target.player.is_over else ""
    return f"REPLAY {moment(rows.cluster.taken_at)}  {times(target.player.speed)}{over}"


def _key(screen: Screen, state: TopState, rows: TopRows, updater: RowUpdater) -> str:
    """Wait for a key or for newer rows. Return no key if there are newer rows."""
    while not (key := screen.key()):
        if updater.failure is not None or (updater.newest is not rows and not state.paused):
            break
    return key


def _after(key: str, state: TopState, target: Target, row: str, page: int) -> TopState:
    if key == "enter" and not state.typing and not state.overlay and row:
        return replace(state, opened=state.opened ^ {(state.view, row)})
    if target.player is not None and not state.typing:
        if key == " ":
            target.player.pause()
        elif key in ("+", "-"):
            target.player.go_faster(1 if key == "+" else -1)
    return press(state, key, page) if key else state
