"""What is asked of the machine itself: its name, its folders, its environment. Nothing else here looks at them."""

import os
from pathlib import Path

from podgpu.config import OPTIONS, Config
from podgpu.errors import UserError
from podgpu.kube.apiserver import ApiServer, detect
from podgpu.kube.pods_api import FOLDER


def node_name(config: Config) -> str:
    return config.node_name or os.uname().nodename


def procfs(config: Config) -> Path:
    return _folder("path_procfs", config.path_procfs)


def root(config: Config) -> Path:
    return _folder("path_root", config.path_root)


def has_kubelet(config: Config) -> bool:
    return config.path_kubelet.is_dir()


def has_pods_api(config: Config) -> bool:
    return (config.path_kubelet / FOLDER).is_dir()


def has_pod_logs(config: Config) -> bool:
    return (config.path_logs / "pods").is_dir()


def open_api_server(config: Config) -> ApiServer | None:
    if config.kube_api == "off":
        return None
    return detect(os.environ) if config.kube_api == "auto" else ApiServer(config.kube_api)


def _folder(option: str, path: Path) -> Path:
    if not path.is_dir():
        raise UserError(
            f"{OPTIONS[option].flag}: there is no folder '{path}'; give the path of one that exists"
        )
    return path
