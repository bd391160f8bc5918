"""Compiles the image's modules with the image's own Python: on a read-only root it could not keep what it compiles."""

import subprocess
import tempfile
from pathlib import Path

from tools.image import tree
from tools.image.debian import PYTHON
from tools.image.tree import Tree, file


def compiled(root: Tree) -> Tree:
    """Return the root's `__pycache__` files. They are valid for good: no file time is looked at."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        tree.unpack(root, folder)
        places = [folder / path for path in (f"usr/lib/python{PYTHON}", "usr/lib/python3", "usr/local/lib")]
        _compile(folder, [str(place) for place in places if place.is_dir()])
        found = sorted(folder.glob("usr/**/__pycache__/*.pyc"))
        return {str(path.relative_to(folder)): file(path.read_bytes()) for path in found}


def _compile(root: Path, places: list[str]) -> None:
    """Start Python by the image's own loader, which needs neither root nor chroot."""
    loader = next(iter(sorted(root.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*"))))
    python = [
        str(loader),
        "--library-path",
        str(loader.parent),
        str(root / f"usr/bin/python{PYTHON}"),
        "-S",
        "-B",
    ]
    compileall = [
        "-m",
        "compileall",
        "-q",
        "-s",
        str(root),
        "-p",
        "/",
        "--invalidation-mode",
        "unchecked-hash",
    ]
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    subprocess.run([*python, *compileall, *places], check=True, env=environment)
