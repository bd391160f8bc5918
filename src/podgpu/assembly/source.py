"""Opens the source of the numbers. It loads little, so that a source can start while the rest of the agent loads."""

from collections.abc import Callable, Mapping
from contextlib import suppress

from podgpu.assembly import machine
from podgpu.config import Config
from podgpu.sources import registry
from podgpu.sources.protocols import FindPods, PageFinder, Site, SlowSource, Source, SourceEntry


class EarlySource:
    """The source, opened before the attribution, which sets `watched`: see `Site`."""

    def __init__(self, config: Config) -> None:
        self.watched: Callable[[], Mapping[str, bool]] | None = None
        self.source: Source = open_source(config, lambda: self.watched() if self.watched else {})

    async def begin(self) -> None:
        """Let a source that is slow to start begin. What keeps it from starting is in its first report."""
        if isinstance(self.source, SlowSource):
            with suppress(OSError):
                await self.source.begin()


def open_source(config: Config, watched: Callable[[], Mapping[str, bool]] | None = None) -> Source:
    """Open the source. `watched` names the cards whose log of context switches is read, None if none ever is."""
    site = Site(node=config.node_name or "", interval=config.interval, find_pods=_pod_finder(config), watched=watched)
    return source_entry(config).open(config.of, site)


def source_entry(config: Config) -> SourceEntry:
    return registry.entries()[config.source]


def _pod_finder(config: Config) -> FindPods:
    """Look for pods through the API server, if there is one."""

    def find(selector: str, *, namespace: str, port: int, fixed: bool, path: str) -> PageFinder | None:
        from podgpu.assembly.api_server import open_api_server
        from podgpu.kube.endpoints import Endpoints

        api, node = open_api_server(config), machine.node_name(config)
        if api is None:
            return None
        return Endpoints(api, node=node, selector=selector, namespace=namespace, port=port, fixed=fixed, path=path)

    return find
