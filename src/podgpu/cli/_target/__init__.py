"""What a command reads: an agent, a cluster or a recording, each as a cluster that is kept up to date."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from podgpu.assembly import insight_settings
from podgpu.cluster.login_options import LoginOptions
from podgpu.cluster.store.options import StoreOptions
from podgpu.config import OPTIONS, ClusterOptions, Config, TerminalOptions
from podgpu.errors import UserError
from podgpu.model import Cluster, Snapshot
from podgpu.option import CLUSTER, TERMINAL, OptionsOf, options_of
from podgpu.option.value import did_you_mean
from podgpu.sources import registry
from podgpu.sources.player import Player

HERE = "http://127.0.0.1:19400"

_PLAYED = next(entry for entry in registry.entries().values() if entry.play)
_OF_REPLAY = {option.name for section in _PLAYED.sections for option in options_of(section).values()}
_OF_STORE = {option.name for option in options_of(StoreOptions).values()}
_BESIDES = {"config_file", "source", *(name for name in OPTIONS if name.startswith("kube_"))} - {
    "kube_pod_labels",
    "kube_pods",
    "kube_workload_labels",
    "kube_workload_owner",
}
# The options that name the target.
TARGET_OPTIONS = tuple(
    name
    for name, option in OPTIONS.items()
    if option.group in (TERMINAL, CLUSTER) or name in {*_BESIDES, *_OF_REPLAY, *_OF_STORE}
)


class Target(Protocol):
    """`player` is there if it is a recording."""

    @property
    def cluster(self) -> Cluster:
        """The newest one: the same object until there is a newer one."""

    @property
    def player(self) -> Player | None: ...

    @property
    def is_one_node(self) -> bool:
        """Whether it is a single agent, and not a cluster that may have one node."""

    def changed(self, seen: Cluster, seconds: float) -> Cluster:
        """Return the newest cluster once it is another than `seen`, or `seen` after so many seconds."""

    def full(self, node: str) -> Snapshot:
        """Return the node's snapshot with everything in it, where the cluster's is slim."""

    def past(self, at: float) -> Cluster:
        """Return the cluster as it was then. Raises UserError if nothing is kept of it."""

    def close(self) -> None: ...


def has_target(config: Config) -> bool:
    """Whether the options name a target. Without one, some commands read this machine."""
    return has_documents(config) or _names_cluster(config)


def has_documents(config: Config) -> bool:
    """Whether the options name an agent, a cluster's server, a store or a recording: more than the API server."""
    urls = (config.of(TerminalOptions).url, config.of(StoreOptions).url, config.of(ClusterOptions).agents)
    return any(urls) or _play(config) is not None


def check_node(cluster: Cluster, name: str) -> None:
    """Raise UserError if a node is named that the cluster does not have."""
    names = [node.name for node in cluster.nodes]
    if name and name not in names:
        known = f"those with GPUs are {', '.join(names[:10])}" if names else "no node has GPUs"
        raise UserError(f"no node {name!r} has GPUs; {did_you_mean(name, names, known)}")


@contextmanager
def open_target(config: Config) -> Iterator[Target]:
    """Open what the options name, and close it at the end. Its first cluster is there; a UserError says why not."""
    target = _opened(config)
    try:
        yield target
    finally:
        target.close()


def _opened(config: Config) -> Target:
    if play := _play(config):
        from podgpu.cli._target.recording import RecordingTarget

        return RecordingTarget(play(config.of), insight_settings(config))
    url = config.of(TerminalOptions).url
    if url is not None:
        return _http(config, url)
    # An agent on this machine may be given an API server too, so only here does that name a cluster.
    if _names_cluster(config) or config.kube_api not in ("auto", "off"):
        return _direct(config)
    from podgpu.cli._target.http import NothingListens

    try:
        return _http(config, HERE)
    except NothingListens:
        if not os.environ.get("KUBECONFIG") and not (Path.home() / ".kube" / "config").exists():
            raise
        return _direct(config)


def _play(config: Config) -> Callable[[OptionsOf], Player] | None:
    """Return what opens the recording, if one is named: by --source=replay, or by its file and no --url."""
    is_named = config.of(TerminalOptions).url is None and any(config.of(each) != each() for each in _PLAYED.sections)
    return _PLAYED.play if is_named else registry.entries()[config.source].play


def _http(config: Config, url: str) -> Target:
    from podgpu.cli._target.http import DocumentClient, HttpTarget

    return HttpTarget(DocumentClient(url, config.of(LoginOptions)), insight_settings(config))


def _direct(config: Config) -> Target:
    from podgpu import log
    from podgpu.cli._target.direct import DirectTarget

    log.configure("error", config.log_format)  # the command itself shows which node cannot be read
    return DirectTarget(config)


def _names_cluster(config: Config) -> bool:
    """Whether an option names a cluster, or kubectl runs us: it is about clusters."""
    is_plugin = Path(sys.argv[0]).name.startswith("kubectl-")
    of_cluster = config.of(ClusterOptions) != ClusterOptions()
    of_store = config.of(StoreOptions).url is not None
    return is_plugin or of_cluster or of_store or bool(config.kube_kubeconfig or config.kube_context)
