"""Gives commands a cluster to look at, newest first, wherever it comes from."""

import os
import sys
from pathlib import Path
from typing import Protocol

from podgpu.assembly import insight_settings
from podgpu.cluster.agents.options import LoginOptions
from podgpu.cluster.store.options import StoreOptions
from podgpu.config import OPTIONS, ClusterOptions, Config, Terminal
from podgpu.model import Cluster, Snapshot
from podgpu.option import CLUSTER, TERMINAL, options_of
from podgpu.sources import Playing, registry

STORE = "store"  # the part that reads it
_STORE_SECONDS = 15.0  # beyond its own patience, for what Kubernetes says
HERE = "http://127.0.0.1:19400"

_PLAYED = next(entry for entry in registry.entries().values() if entry.play)
_OF_REPLAY = {option.name for section in _PLAYED.sections for option in options_of(section).values()}
_OF_STORE = {option.name for option in options_of(StoreOptions).values()}
_BESIDES = {"config_file", "source", *(name for name in OPTIONS if name.startswith("kube_"))} - {
    "kube_pod_labels",
    "kube_workload_labels",
    "kube_workload_owner",
}
# The options that say what to look at.
LOOKING = tuple(
    name
    for name, option in OPTIONS.items()
    if option.group in (TERMINAL, CLUSTER) or name in {*_BESIDES, *_OF_REPLAY, *_OF_STORE}
)


class View(Protocol):
    """`player` is there if it is a recording."""

    @property
    def cluster(self) -> Cluster:
        """The newest one: the same object until there is a newer one."""

    @property
    def player(self) -> Playing | None: ...

    @property
    def is_one_node(self) -> bool:
        """Whether it is a single agent, and not a cluster that may have one node."""

    def changed(self, seen: Cluster, seconds: float) -> Cluster:
        """Return the newest cluster once it is another than `seen`, or `seen` after so many seconds."""

    def full(self, node: str) -> Snapshot:
        """Return the node's snapshot with everything in it, where the cluster's is slim."""

    def close(self) -> None: ...


def is_elsewhere(config: Config) -> bool:
    """Whether a flag names what to look at; else a command that can read this machine does."""
    is_played = registry.entries()[config.source].play is not None
    return is_played or config.of(Terminal).url is not None or _is_cluster_meant(config)


def open_view(config: Config) -> View:
    """Open what the configuration names. The first cluster is there when this returns; a UserError says why not."""
    play = registry.entries()[config.source].play
    if play is not None:
        from podgpu.cli._view.replay import ReplayView

        return ReplayView(play(config.of), insight_settings(config))
    url = config.of(Terminal).url
    if url is not None:
        return _web(config, url)
    if _is_cluster_meant(config):
        return _reader(config)
    from podgpu.cli._view.client import NothingListens

    try:
        return _web(config, HERE)
    except NothingListens:
        if not _has_kubeconfig():
            raise
        return _reader(config)


def _web(config: Config, url: str) -> View:
    from podgpu.cli._view.client import DocumentClient
    from podgpu.cli._view.web import WebView

    return WebView(DocumentClient(url, config.of(LoginOptions)), insight_settings(config))


def _reader(config: Config) -> View:
    from podgpu import log
    from podgpu.assembly.cluster import open_cluster
    from podgpu.cli._view.reader import ReaderView

    log.configure("error", config.log_format)  # the view itself shows which node cannot be read
    store = config.of(StoreOptions)
    if store.url is None:
        return ReaderView(lambda: open_cluster(config))
    return ReaderView(lambda: open_cluster(config), needs=STORE, patience=store.timeout + _STORE_SECONDS)


def _is_cluster_meant(config: Config) -> bool:
    """Whether a flag says so, or kubectl runs us: it is about clusters."""
    is_plugin = Path(sys.argv[0]).name.startswith("kubectl-")
    of_cluster = config.of(ClusterOptions) != ClusterOptions()
    of_store = config.of(StoreOptions).url is not None
    return is_plugin or of_cluster or of_store or bool(config.kube_kubeconfig or config.kube_context)


def _has_kubeconfig() -> bool:
    return bool(os.environ.get("KUBECONFIG")) or (Path.home() / ".kube" / "config").exists()
