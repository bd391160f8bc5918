"""The loop of `podgpu top`: news and keys in, frames out."""

import threading
from dataclasses import replace

from podgpu.cli._top.board import Board
from podgpu.cli._top.frame import FOOT, HEAD, frame
from podgpu.cli._top.screen import Screen
from podgpu.cli._top.state import State, press
from podgpu.cli._view import View
from podgpu.insight.selection import PodSelection
from podgpu.numbers import moment, times

_WAIT_SECONDS = 5.0


class Watch:
    """Waits for news in a thread of its own, and makes rows of them there, so that keys are never kept waiting."""

    def __init__(self, view: View, chosen: PodSelection, shown: str) -> None:
        self.shown = shown
        self.newest = Board(view.cluster, chosen).prepare(shown)
        self.failure: BaseException | None = None
        self._view = view
        self._chosen = chosen
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            while True:
                seen = self.newest.cluster
                cluster = self._view.changed(seen, _WAIT_SECONDS)
                if cluster is not seen:
                    self.newest = Board(cluster, self._chosen).prepare(self.shown)
        except BaseException as error:
            self.failure = error


def live(screen: Screen, view: View, chosen: PodSelection, state: State) -> None:
    watch = Watch(view, chosen, state.view)
    board = watch.newest
    first = 0
    while not state.quits:
        if watch.failure is not None:
            raise watch.failure
        board = board if state.paused else watch.newest
        watch.shown = state.view
        width, height = screen.size
        shown = frame(board, state, width, height, first, _mode(view, board))
        first, state = shown.first, replace(state, line=shown.line)
        screen.draw(shown.lines)
        key = _key(screen, state, board, watch)
        state = _after(key, state, view, shown.key, max(height - HEAD - FOOT, 1))


def _mode(view: View, board: Board) -> str:
    if view.player is None:
        return ""
    over = "  over" if view.player.is_over else ""
    return f"REPLAY {moment(board.cluster.taken_at)}  {times(view.player.speed)}{over}"


def _key(screen: Screen, state: State, board: Board, watch: Watch) -> str:
    """Wait for a key or for news. Without a key there is news."""
    while not (key := screen.key()):
        if watch.failure is not None or (watch.newest is not board and not state.paused):
            break
    return key


def _after(key: str, state: State, view: View, row: str, page: int) -> State:
    if key == "enter" and not state.typing and not state.sheet and row:
        return replace(state, opened=state.opened ^ {(state.view, row)})
    if view.player is not None and not state.typing:
        if key == " ":
            view.player.pause()
        elif key in ("+", "-"):
            view.player.go_faster(1 if key == "+" else -1)
    return press(state, key, page) if key else state
