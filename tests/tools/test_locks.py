"""Two locks: what podgpu needs to run, which the demo installs, and that with the tools that check and test it."""

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
