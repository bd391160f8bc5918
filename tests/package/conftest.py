"""The wheel, built and installed once for all tests of this folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from podgpu import __version__
from tests.package.clean import Clean

ROOT = Path(__file__).parents[2]


def build(tree: Path, folder: Path, *kinds: str) -> None:
    targets = [word for kind in kinds for word in ("-t", kind)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *targets]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "wheel", "sdist")
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    return dist / f"podgpu-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="session")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Clean:
    return Clean(tmp_path_factory.mktemp("clean"), wheel)
