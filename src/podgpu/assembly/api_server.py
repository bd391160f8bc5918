import os

from podgpu.config import Config
from podgpu.kube.apiserver import ApiServer, detect


def open_api_server(config: Config) -> ApiServer | None:
    if config.kube_api == "off":
        return None
    return detect(os.environ) if config.kube_api == "auto" else ApiServer(config.kube_api)
