"""`pytest --no-skips`, with which CI notices that a tool is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("reason", "option", "code"),
    [
        ("Skipped: needs helm", "--no-skips", 1),
        ("Skipped: needs helm", "-q", 0),
        ("no cgroup can be made here: x", "--no-skips", 0),
    ],
)
def test_a_missing_tool_fails_where_it_must_not_be_missing(
    tmp_path: Path, reason: str, option: str, code: int
) -> None:
    file = tmp_path / "test_skipped.py"
    file.write_text(f"import pytest\ndef test_it(): pytest.skip({reason!r})\ndef test_other(): pass\n")
    plugins = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-c", "/dev/null"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, option, str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("--no-skips: " in done.stdout) == bool(code)
