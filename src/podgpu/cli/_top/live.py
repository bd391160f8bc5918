"""The loop of `podgpu top`: news and keys in, frames out."""

import threading
from dataclasses import replace

from podgpu.cli._top.board import Board
from podgpu.cli._top.frame import FOOT, HEAD, frame
from podgpu.cli._top.screen import Screen
from podgpu.cli._top.state import State, press
from podgpu.cli._view import View
from podgpu.model import Cluster
from podgpu.views.cluster.selection import Selection

_WAIT_SECONDS = 5.0


class Watch:
    """Waits for news in a thread of its own, so that keys are never kept waiting."""

    def __init__(self, view: View) -> None:
        self.newest = view.cluster
        self.failure: BaseException | None = None
        self._view = view
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            while True:
                self.newest = self._view.changed(self.newest, _WAIT_SECONDS)
        except BaseException as error:
            self.failure = error


def live(screen: Screen, view: View, chosen: Selection, state: State) -> None:
    watch = Watch(view)
    board = Board(watch.newest, chosen)
    first = 0
    while not state.quits:
        if watch.failure is not None:
            raise watch.failure
        board = _renewed(board, watch.newest, chosen, state)
        width, height = screen.size
        shown = frame(board, state, width, height, first)
        first, state = shown.first, replace(state, line=shown.line)
        screen.draw(shown.lines)
        state = _after_key(screen, state, board, watch, shown.key, max(height - HEAD - FOOT, 1))


def _renewed(board: Board, newest: Cluster, chosen: Selection, state: State) -> Board:
    return board if state.paused or newest is board.cluster else Board(newest, chosen)


def _after_key(screen: Screen, state: State, board: Board, watch: Watch, row: str, page: int) -> State:
    """Wait for a key or for news."""
    while not (key := screen.key()):
        has_news = watch.newest is not board.cluster and not state.paused
        if has_news or watch.failure is not None:
            return state
    if key == "enter" and not state.typing and not state.sheet and row:
        return replace(state, opened=state.opened ^ {(state.view, row)})
    return press(state, key, page)
