from podgpu.config import Config
from podgpu.serve.cluster.menu import ClusterMenu, cluster_menu
from podgpu.serve.menu import Menu, menu
from podgpu.views.budget import Choice


def open_menu(config: Config) -> Menu:
    """List all pages and documents, set up according to the configuration."""
    return menu(config.of, _choice(config))


def open_cluster_menu(config: Config) -> ClusterMenu:
    return cluster_menu(config.of, config.series_limit, _choice(config))


def _choice(config: Config) -> Choice:
    return Choice(
        level=config.series_level,
        detail=config.series_detail == "on",
        allow=config.series_allow,
        deny=config.series_deny,
    )
