"""The upper layer: podgpu and what it imports, from wheels whose hashes the lock holds."""

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.image import lock
from tools.image.debian import PYTHON
from tools.image.tree import Tree, file

SITE = f"usr/local/lib/python{PYTHON}/dist-packages"
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_LAUNCHER = """\
#!/usr/bin/python3 -sP
import sys

from podgpu.cli.main import main

sys.exit(main())
"""
_FILE = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)-.*\.whl")


@dataclass(frozen=True)
class Wheel:
    name: str
    version: str
    path: Path


def fetch(target: Path, architecture: str, project: Path) -> None:
    """Download the locked wheels for the image's Python, and build podgpu's own."""
    target.mkdir(parents=True, exist_ok=True)
    wanted = target / lock.FILE
    wanted.write_text(lock.needed((project / lock.FILE).read_text(encoding="utf-8")))
    machine = _MACHINES[architecture]
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in (34, 28, 17)]
    _pip(
        "download",
        "--require-hashes",
        "--no-deps",
        "--only-binary=:all:",
        f"--python-version={PYTHON}",
        *platforms,
        f"--platform=manylinux2014_{machine}",
        f"--dest={target}",
        f"--requirement={wanted}",
    )
    _pip("wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={target}", str(project))


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, env={**os.environ, "PIP_NO_INDEX": ""})


def wheels(folder: Path) -> list[Wheel]:
    return list(_wheels(sorted(folder.glob("*.whl"))))


def _wheels(paths: Iterable[Path]) -> Iterator[Wheel]:
    for path in paths:
        found = _FILE.fullmatch(path.name)
        assert found, path  # noqa: S101 - pip names them
        yield Wheel(re.sub(r"[-_.]+", "-", found["name"]).lower(), found["version"], path)


def tree(chosen: Iterable[Wheel]) -> Tree:
    site: Tree = {}
    for wheel in chosen:
        with zipfile.ZipFile(wheel.path) as archive:
            for name in archive.namelist():
                if not name.endswith("/") and ".data/" not in name:
                    site[f"{SITE}/{name}"] = file(archive.read(name), executable=name.endswith(".so"))
    return site | {"usr/bin/podgpu": file(_LAUNCHER, executable=True)}
