"""A Python environment with podgpu's wheel and the packages that the wheel declares, and nothing else."""

import os
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


class Clean:
    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.bin = folder / "bin"
        self.site = next(folder.glob("lib/python*/site-packages"))
        install = ["install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)]
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), *install]
        subprocess.run(pip, check=True)
        self.metadata = Distribution.at(next(self.site.glob("podgpu-*.dist-info")))
        for name in _needed(self.metadata):
            self._lend(distribution(name))

    @property
    def environ(self) -> dict[str, str]:
        """Nothing of the tree that is tested."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return {**kept, "PATH": f"{self.bin}:{os.environ['PATH']}"}

    def run(self, *command: str) -> str:
        """Run a program of this environment, outside the tree."""
        program = str(self.bin / command[0])
        done = subprocess.run(
            [program, *command[1:]],
            cwd=self.bin.parent,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _lend(self, package: Distribution) -> None:
        """Link the top folders and files of a package that is installed here: the network is not needed."""
        root = Path(str(package.locate_file("")))
        tops = {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            link = self.site / top
            if not link.exists():
                link.symlink_to(root / top)


def _needed(package: Distribution, seen: frozenset[str] = frozenset()) -> set[str]:
    """Name the packages that a package requires, without extras, and those that they require."""
    found: set[str] = set()
    for text in package.requires or ():
        wanted = Requirement(text)
        if wanted.name not in seen | found and (not wanted.marker or wanted.marker.evaluate({"extra": ""})):
            found |= {wanted.name, *_needed(distribution(wanted.name), seen | found | {wanted.name})}
    return found
