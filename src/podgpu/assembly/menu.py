from podgpu.config import Config
from podgpu.serve.menu import Menu, menu


def open_menu(config: Config) -> Menu:
    """List all pages and documents, set up according to the configuration."""
    return menu(config.of, processes=config.series_processes == "on")
