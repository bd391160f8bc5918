"""Two locks: what podgpu needs to run, which the demo installs, and that with the tools that check and test it.

What only some targets need has locks of its own, in tools/locks. `make` installs nothing without a hash.
"""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make")


def locked(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;]+)", (ROOT / name).read_text(), re.MULTILINE))


def test_what_runs_is_part_of_what_develops_in_the_same_versions() -> None:
    runs, develops = locked("requirements.lock"), locked("requirements-dev.lock")
    assert runs.items() < develops.items()


def test_no_tool_is_installed_to_run() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]
    names = {re.split(r"[^a-z0-9-]", tool.lower())[0] for tool in tools}
    assert "ruff" in names and names & locked("requirements.lock").keys() == set()


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
def test_the_demo_installs_the_first_lock_alone(tmp_path: Path) -> None:
    assert MAKE is not None
    command = [MAKE, "--dry-run", "demo", f"VENV={tmp_path}"]
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"requirements\S*\.lock", planned) == ["requirements.lock"]


def test_the_first_screen_of_the_readme_installs_podgpu() -> None:
    assert "$ pip install .\n$ podgpu demo" in "\n".join((ROOT / "README.md").read_text().splitlines()[:24])


LOCKS = sorted([*ROOT.glob("*.lock"), *(ROOT / "tools/locks").glob("*.lock")])
# A recipe as the shell would get it, line by line, with the lines that go on joined.
RECIPES = [
    line.strip().replace("$(HASHED)", "--require-hashes --only-binary :all:")
    for line in (ROOT / "Makefile").read_text().replace("\\\n", " ").splitlines()
    if line.startswith("\t")
]


def test_each_group_of_packages_has_a_lock() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"].keys()
    assert {path.stem for path in LOCKS} == {"requirements", "requirements-dev", *groups - {"dev"}}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_each_package_of_a_lock_has_one_version_and_a_hash(lock: Path) -> None:
    entries = re.split(r"^(?=[a-z0-9])", lock.read_text(), flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+==[^ ;]+( ;.*)? \\\n", entry) and "--hash=sha256:" in entry, entry


def test_make_installs_nothing_without_a_hash() -> None:
    """The Makefile's own package is the only one without: it is this folder."""
    installs = [line for line in RECIPES if re.search(r"pip (install|download)|\$\((PIP|INSTALL)\)", line)]
    assert len(installs) >= 8
    unlocked = [line for line in installs if "--require-hashes" not in line or " -r " not in line]
    assert unlocked == ["$(INSTALL) --no-deps --no-build-isolation --editable ."]
    assert [line for line in installs if "--only-binary" not in line and line not in unlocked] == []


def test_what_is_built_from_source_is_built_with_tools_of_a_lock() -> None:
    (line,) = [line for line in RECIPES if "--no-binary" in line]
    assert "--no-build-isolation" in line


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
def test_another_axe_core_than_the_known_one_is_refused(tmp_path: Path) -> None:
    """An npm that brings a changed package; the folder is a copy, so that nothing of ours is touched."""
    assert MAKE is not None
    (tmp_path / "npm").write_text("#!/bin/sh\ntouch axe.min.js && tar -czf axe-core-4.14.0.tgz axe.min.js\n")
    (tmp_path / "npm").chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([MAKE, "axe"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode and "axe-core-4.14.0.tgz: FAILED" in done.stdout + done.stderr
    assert not (tmp_path / "build/axe/package").exists()
