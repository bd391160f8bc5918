"""What tests/conftest.py refuses: a missing tool where CI needs it, and cases that no two processes agree on."""

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
def test_a_missing_tool_fails_where_it_must_not_be_missing(tmp_path: Path, reason: str, option: str, code: int) -> None:
    text = f"import pytest\ndef test_it(): pytest.skip({reason!r})\ndef test_other(): pass\n"
    done = run(tmp_path / "test_skipped.py", text, option)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("--no-skips: " in done.stdout) == bool(code)


@pytest.mark.parametrize(
    ("values", "ids", "advice"),
    [
        ("{'a', 'b'}", "None", "sort them"),
        ("[object()]", "[str(object())]", "give it `ids`"),
    ],
)
def test_cases_that_differ_from_process_to_process_are_refused(
    tmp_path: Path, values: str, ids: str, advice: str
) -> None:
    text = f"import pytest\n@pytest.mark.parametrize('x', {values}, ids={ids})\ndef test_it(x): pass\n"
    done = run(tmp_path / "test_cases.py", text, "-q")
    assert done.returncode
    assert advice in done.stdout + done.stderr


def run(file: Path, text: str, option: str) -> "subprocess.CompletedProcess[str]":
    file.write_text(text)
    plugins = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-c", "/dev/null"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, option, str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
