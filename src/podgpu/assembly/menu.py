from podgpu.config import Config
from podgpu.serve.menu import Menu, menu
from podgpu.views.budget import Choice


def open_menu(config: Config) -> Menu:
    """List all pages and documents, set up according to the configuration."""
    choice = Choice(
        level=config.series_level,
        detail=config.series_detail == "on",
        allow=config.series_allow,
        deny=config.series_deny,
    )
    return menu(config.of, choice)
