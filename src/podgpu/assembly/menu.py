from podgpu.config import Config
from podgpu.serve.menu import Menu, menu


def open_menu(config: Config) -> Menu:
    """List everything this version can serve, as the configuration wants it."""
    return menu(config.of, processes=config.series_processes == "on")
