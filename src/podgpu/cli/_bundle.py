"""An archive for a bug report: what was found, the snapshots, the options and the versions. No secrets."""

import io
import platform
import sys
import tarfile
import time
from collections.abc import Mapping

import msgspec

from podgpu import __version__
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Cluster
from podgpu.option import options_of
from podgpu.views.cluster import json

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
    """List the options that are set. Only numbers and words of a fixed choice are shown: the rest may be private."""
    shown = {}
    for section in (config, *config.sections):
        for field, option in options_of(type(section)).items():
            value = getattr(section, field)
            if value != option.default_value():
                values = value if isinstance(value, tuple) else (value,)
                is_public = all(isinstance(each, int | float) or each in option.choices for each in values)
                shown[option.key] = ",".join(map(str, values)) if is_public else "(set)"
    return dict(sorted(shown.items()))


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
