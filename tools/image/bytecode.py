"""Compiles the image's modules with Debian's own Python: on a read-only root it could not keep what it compiles."""

import subprocess
import tempfile
from pathlib import Path

from tools.image import tree
from tools.image.debian import PYTHON
from tools.image.tree import Tree, file


def compiled(root: Tree, compiler: Tree | None = None) -> Tree:
    """Return the root's `__pycache__` files. They are valid for good: no file time is looked at.

    A root for another architecture cannot be started here, so `compiler` has the same Python for this machine. Bytecode
    does not depend on the architecture.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, tools = Path(name).resolve() / "root", Path(name).resolve() / "tools"
        tree.unpack(root, folder)
        if compiler is not None:
            tree.unpack(compiler, tools)
        places = [folder / path for path in (f"usr/lib/python{PYTHON}", "usr/lib/python3", "usr/local/lib")]
        _compile(folder, folder if compiler is None else tools, [str(each) for each in places if each.is_dir()])
        paths = sorted(folder.glob("usr/**/__pycache__/*.pyc"))
        return {str(path.relative_to(folder)): file(path.read_bytes()) for path in paths}


def _compile(root: Path, tools: Path, places: list[str]) -> None:
    """Start Python by its own loader, which needs neither root nor chroot."""
    loader = next(iter(sorted(tools.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*"))))
    python = [
        str(loader),
        "--library-path",
        str(loader.parent),
        str(tools / f"usr/bin/python{PYTHON}"),
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
    environment = {"PYTHONHOME": str(tools / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    subprocess.run([*python, *compileall, *places], check=True, env=environment)
