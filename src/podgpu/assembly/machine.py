"""Inspects the machine itself: its name, folders and environment. No other module of assembly does."""

import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from podgpu import log
from podgpu.config import OPTIONS, Config
from podgpu.config.values import RATIO_FILE, ratio_file
from podgpu.errors import UserError
from podgpu.host.system_files import own_address
from podgpu.kube.kubelet import PODS_API_FOLDER

_TIMEX_BYTES = 512  # more than the size of the kernel's struct timex; all zero means: read, set nothing
_UNSYNCHRONISED = 5


def node_name(config: Config) -> str:
    return config.node_name or os.uname().nodename


def address() -> str:
    """Return the machine's address. The interfaces of a pod are not the machine's."""
    return "" if is_in_pod() else own_address()


def procfs(config: Config) -> Path:
    return _folder("path_procfs", config.path_procfs)


def root(config: Config) -> Path:
    return _folder("path_root", config.path_root)


def sysfs(config: Config) -> Path:
    """Return where /sys is. A pod has the machine's own, and not always the machine's root."""
    own = config.path_root / "sys"
    return own if own.is_dir() else Path("/sys")


def has_kubelet(config: Config) -> bool:
    return config.path_kubelet.is_dir()


def has_pods_api(config: Config) -> bool:
    """A kubelet's folder that may not be entered has none: the part that reads its other socket says so."""
    return os.path.isdir(config.path_kubelet / PODS_API_FOLDER)  # noqa: PTH112 - never raises


def has_pod_logs(config: Config) -> bool:
    return os.path.isdir(config.path_logs / "pods")  # noqa: PTH112 - never raises


def ratios(config: Config) -> tuple[float, ...]:
    """Return into how many virtual GPUs each card is divided. Without the option, look into the working directory.

    What lies there was not asked for, so it stops nobody. A missing file that is mounted becomes a directory.
    """
    if config.sharing_ratio_file is not None:
        return config.sharing_ratio_file
    if not os.path.lexists(RATIO_FILE):
        return ()
    try:
        return ratio_file(RATIO_FILE)
    except UserError as error:
        log.warning("the ratio file in the working directory is not used", reason=str(error))
        return ()


def environment() -> Mapping[str, str]:
    return os.environ


def has_package(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


def program(name: str) -> str | None:
    """Return the path of a program that is installed."""
    return shutil.which(name)


def home() -> Path:
    return Path(os.path.expanduser("~"))  # noqa: PTH111 - never raises


def is_in_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ


def hides_processes(config: Config) -> bool:
    from podgpu.host.procfs import hides_others

    return hides_others(config.path_procfs)


def is_clock_synchronised() -> bool | None:
    """Ask the kernel whether its clock is synchronised. Return None if it does not say."""
    import ctypes

    try:
        state: int = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _UNSYNCHRONISED


def _folder(option: str, path: Path) -> Path:
    if not path.is_dir():
        raise UserError(f"{OPTIONS[option].flag}: there is no folder '{path}'; give the path of one that exists")
    return path
