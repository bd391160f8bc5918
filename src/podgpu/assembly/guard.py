from podgpu import log
from podgpu.config import Config
from podgpu.serve.guard.guard import Guard


def open_guard(config: Config) -> Guard:
    """Read the web configuration file. Raises UserError."""
    guard = Guard(config.web_config_file)
    if guard.asks_for_secrets and guard.context is None:
        log.warning("passwords and tokens travel unencrypted; set tls_server_config in --web.config.file")
    return guard
