"""Gives commands a cluster to look at, newest first, wherever it comes from."""

from typing import Protocol

from podgpu.config import Config, Terminal
from podgpu.model import Cluster, Snapshot

HERE = "http://127.0.0.1:19400"


class View(Protocol):
    @property
    def cluster(self) -> Cluster:
        """The newest one: the same object until there is a newer one."""

    def changed(self, seen: Cluster, seconds: float) -> Cluster:
        """Return the newest cluster once it is another than `seen`, or `seen` after so many seconds."""

    def full(self, node: str) -> Snapshot:
        """Return the node's snapshot with everything in it, where the cluster's is slim."""

    def close(self) -> None: ...


def open_view(config: Config) -> View:
    """Open what the configuration names. The first cluster is there when this returns; a UserError says why not."""
    from podgpu.cli._view.web import WebView
    from podgpu.cli._view.wire import Wire

    chosen = config.of(Terminal)
    return WebView(Wire(chosen.url or HERE, chosen))
