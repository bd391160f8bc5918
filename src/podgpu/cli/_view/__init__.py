"""Gives commands a cluster to look at, newest first, wherever it comes from."""

from typing import TYPE_CHECKING, Protocol

from podgpu.config import OPTIONS, Config, Terminal
from podgpu.model import Cluster, Snapshot
from podgpu.option import TERMINAL, options_of
from podgpu.sources import registry

if TYPE_CHECKING:
    from podgpu.sources.replay.player import Player

HERE = "http://127.0.0.1:19400"

_PLAYED = next(entry for entry in registry.entries().values() if entry.play)
_OF_REPLAY = {option.name for section in _PLAYED.sections for option in options_of(section).values()}
# The options that say what to look at.
LOOKING = tuple(
    name
    for name, option in OPTIONS.items()
    if option.group == TERMINAL or name in {"config_file", "source", *_OF_REPLAY}
)


class View(Protocol):
    """`player` is there if it is a recording."""

    @property
    def cluster(self) -> Cluster:
        """The newest one: the same object until there is a newer one."""

    @property
    def player(self) -> "Player | None": ...

    def changed(self, seen: Cluster, seconds: float) -> Cluster:
        """Return the newest cluster once it is another than `seen`, or `seen` after so many seconds."""

    def full(self, node: str) -> Snapshot:
        """Return the node's snapshot with everything in it, where the cluster's is slim."""

    def close(self) -> None: ...


def open_view(config: Config) -> View:
    """Open what the configuration names. The first cluster is there when this returns; a UserError says why not."""
    play = registry.entries()[config.source].play
    if play is not None:
        from podgpu.cli._view.replay import ReplayView

        return ReplayView(play(config.of))
    from podgpu.cli._view.web import WebView
    from podgpu.cli._view.wire import Wire

    chosen = config.of(Terminal)
    return WebView(Wire(chosen.url or HERE, chosen))
