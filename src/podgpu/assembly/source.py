"""Opens the source that the configuration names."""

from podgpu.assembly import machine
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.sources import Site, Source, Whereabouts, registry


def open_source(config: Config) -> Source:
    _check_nodes(config)
    site = Site(node=machine.node_name(config), interval=config.interval, find_pods=_Pods(config))
    return chosen(config).open(config.of, site)


def chosen(config: Config) -> registry.Entry:
    return registry.entries()[config.source]


def of_all_nodes(config: Config) -> bool:
    return bool(chosen(config).spans_nodes(config.of))


def _check_nodes(config: Config) -> None:
    """Refuse a setting for all nodes that belongs to a source other than the chosen one."""
    for entry in registry.entries().values():
        setting = entry.spans_nodes(config.of)
        if setting and entry.name != config.source:
            raise UserError(
                f"{setting} goes with --source={entry.name}: {config.source} only knows the cards of this node"
            )


class _Pods:
    """Looks for pods through the API server, if there is one."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def __call__(
        self, selector: str, *, namespace: str, port: int, path: str, all_nodes: bool
    ) -> Whereabouts | None:
        from podgpu.kube.endpoints import Endpoints

        api = machine.open_api_server(self._config)
        node = None if all_nodes else machine.node_name(self._config)
        if api is None:
            return None
        return Endpoints(api, node=node, selector=selector, namespace=namespace, port=port, path=path)
