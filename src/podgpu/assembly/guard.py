from podgpu.config import Config
from podgpu.serve.guard.guard import Guard


def open_guard(config: Config) -> Guard:
    """Read the web configuration file. Raises UserError."""
    return Guard(config.web_config_file)
