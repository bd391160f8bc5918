"""An archive for a bug report: what was found, the snapshots, the options and the versions. No secrets."""

import io
import platform
import sys
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from podgpu import __version__
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Cluster
from podgpu.option import options_of
from podgpu.views.cluster import json

# Options whose values name addresses and accounts. That they are set is enough to know.
_PRIVATE = ("url", "login", "kube.", "cluster.agents", "prometheus", "config.file", "web.config.file", "dcgm.url")
_FOLDER = "podgpu-doctor"


def write_bundle(path: str, cluster: Cluster, findings: str, config: Config) -> None:
    files = {
        "findings.json": findings.encode(),
        "snapshots.json": json.encode(cluster),
        "options.json": _pretty(_options(config)),
        "versions.json": _pretty(_versions(cluster)),
    }
    try:
        with tarfile.open(path, "x:gz") as archive:
            for name, data in files.items():
                about = tarfile.TarInfo(f"{_FOLDER}/{name}")
                about.size, about.mtime = len(data), int(time.time())
                archive.addfile(about, io.BytesIO(data))
    except FileExistsError:
        raise UserError(f"{path} exists; choose another name, a bundle replaces no file") from None
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose another place") from None
    print(f"{path}: {', '.join(files)}; check its contents before you send it", file=sys.stderr)


def _options(config: Config) -> Mapping[str, str]:
    """Those that differ from their defaults; of private ones only that they do."""
    found = {}
    for section in (config, *config.sections):
        for field, option in options_of(type(section)).items():
            value = getattr(section, field)
            if value != option.default_value():
                is_private = option.key.startswith(_PRIVATE) or isinstance(value, Path)
                found[option.key] = "(set)" if is_private else str(value)
    return dict(sorted(found.items()))


def _versions(cluster: Cluster) -> Mapping[str, object]:
    snapshots = [node.snapshot for node in cluster.nodes if node.snapshot]
    return {
        "podgpu": __version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "agents": sorted({snapshot.version for snapshot in snapshots}),
        "drivers": sorted({snapshot.driver_version for snapshot in snapshots}),
    }


def _pretty(document: Mapping[str, object]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document)) + b"\n"
