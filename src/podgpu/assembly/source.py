"""Opens the source that the configuration names."""

from collections.abc import Callable, Mapping

from podgpu.assembly import machine
from podgpu.config import Config
from podgpu.sources import Site, Source, Whereabouts, registry


def open_source(config: Config, watched: Callable[[], Mapping[str, bool]] | None = None) -> Source:
    """Open the source. `watched` names the cards whose log of context switches is read, None if none ever is."""
    site = Site(
        node=config.node_name or "",
        interval=config.interval,
        find_pods=_Pods(config),
        watched=watched,
    )
    return chosen(config).open(config.of, site)


def chosen(config: Config) -> registry.Entry:
    return registry.entries()[config.source]


class _Pods:
    """Looks for pods through the API server, if there is one."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def __call__(
        self, selector: str, *, namespace: str, port: int, fixed: bool, path: str
    ) -> Whereabouts | None:
        from podgpu.kube.endpoints import Endpoints

        api = machine.open_api_server(self._config)
        if api is None:
            return None
        return Endpoints(
            api,
            node=machine.node_name(self._config),
            selector=selector,
            namespace=namespace,
            port=port,
            fixed=fixed,
            path=path,
        )
