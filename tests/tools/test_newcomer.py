"""Each row of "Where a change goes" in docs/architecture.md, done for real in a copy of the tree.

What a newcomer gets for a change is shown by running podgpu, or the tool that makes it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TREES = ("src", "tools", "deploy", "docs")


@dataclass(frozen=True, kw_only=True)
class Change:
    """`files` are new files, or a text of a file that is there and what stands in its place then.

    `command` runs in the copy with Python. `shows` is then in what it prints, or in the file `output`.
    """

    files: Mapping[str, str | tuple[str, str]]
    command: tuple[str, ...]
    shows: str
    output: str = ""


CHANGES = {
    "a metric": Change(
        files={
            "src/podgpu/catalog/gpu.py": (
                "USE: tuple[Metric, ...] = (\n",
                '{there}    gauge("podgpu_gpu_newcomer_ratio", "How new it is.", Call("Newcomer", PERCENT)),\n',
            )
        },
        command=("-m", "podgpu", "metrics"),
        shows="podgpu_gpu_newcomer_ratio  (gauge, ratio, stable)\n    How new it is.",
    ),
    "an option": Change(
        files={
            "src/podgpu/config/fields.py": (
                "    interval: float = GENERAL.single(\n",
                '    newcomer: str = GENERAL.single("--newcomer", help="New.", parse=str, default="1")\n{there}',
            )
        },
        command=("-m", "podgpu", "agent", "--help"),
        shows="New. $PODGPU_NEWCOMER, default 1",
    ),
    "a dialect": Change(
        files={
            "src/podgpu/views/dialects/newcomer.py": """
from podgpu.views.dialects import Dialect

DIALECT = Dialect(pages={"/metrics/newcomer": lambda snapshot, options: []})
"""
        },
        command=("-m", "podgpu", "agent", "--web.listen-address=:1=newcome"),
        shows="did you mean newcomer?",
    ),
    "a sharing system": Change(
        files={
            "src/podgpu/sharing/newcomer.py": """
from podgpu.sharing.system import SharingSystem

SYSTEM = SharingSystem(
    name="newcomer",
    signs=("example.org/newcomer",),
    needs="nothing",
    explains=lambda allocation, inventory: False,
    claims=lambda inventory: (),
)
"""
        },
        command=("-c", "from podgpu import sharing; print(sharing.signs())"),
        shows="example.org/newcomer",
    ),
    "a source": Change(
        files={
            "src/podgpu/sources/newcomer/__init__.py": """
from podgpu.sources.protocols import SourceEntry

SOURCE = SourceEntry(name="newcomer", help="somewhere new")
"""
        },
        command=("-m", "podgpu", "agent", "--help"),
        shows="newcomer (somewhere new)",
    ),
    "a command": Change(
        files={
            "src/podgpu/cli/newcomer.py": """
HELP = "Greet a newcomer."
OPTIONS = ()


def run(config, arguments):
    return 0
"""
        },
        command=("-m", "podgpu", "--help"),
        shows="Greet a newcomer.",
    ),
    "a check of `doctor`": Change(
        files={
            "src/podgpu/doctor/hardware.py": (
                "def _none_of(",
                """
@check("gpu.newcomer", "No card is new.", "Wait.")
def newcomer(snapshot: Snapshot, _: Machine) -> CheckResult:
    return passed("all are old")


{there}""",
            )
        },
        command=("-m", "tools.docs"),
        output="docs/doctor.md",
        shows="| `gpu.newcomer` | No card is new. | Wait. |",
    ),
    "a kind of problem": Change(
        files={
            "src/podgpu/insight/part_problems.py": (
                "KINDS = (\n",
                '{there}    ProblemKind("newcomer", 12, "A node is new.", of_cluster=lambda cluster: iter(())),\n',
            )
        },
        command=("-m", "tools.docs"),
        output="docs/problems.md",
        shows="A node is new.",
    ),
    "an alert": Change(
        files={
            "deploy/rules/newcomer.yaml": """
groups:
  - name: podgpu-newcomer
    rules:
      - alert: PodgpuNewcomer
        expr: podgpu_up == 2
        annotations:
          runbook_url: https://github.com/podgpu/podgpu/blob/main/docs/alerts.md#podgpunewcomer
""",
            "docs/alerts.md": ("## PodgpuAllocationsUnknown\n", "## PodgpuNewcomer\n\nGreet it.\n\n{there}"),
        },
        command=("-m", "tools.chart", "--check"),
        shows="files/rules/newcomer.yaml is stale: run make chart",
    ),
    "a panel": Change(
        files={
            "tools/dashboards/health.py": (
                '    "Presence and errors",\n    (\n',
                '{there}        stat("Newcomers", "Cards that are new.", "short", "count(podgpu_gpu_up{<node>})"),\n',
            )
        },
        command=("-m", "tools.dashboards"),
        output="deploy/dashboards/podgpu-health.json",
        shows='"title": "Newcomers"',
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree with all changes at once: none of them may be in the way of another."""
    root = tmp_path_factory.mktemp("newcomer")
    for tree in TREES:
        shutil.copytree(REPOSITORY / tree, root / tree, ignore=shutil.ignore_patterns("__pycache__"))
    for change in CHANGES.values():
        for name, text in change.files.items():
            write(root / name, text)
    return root


def write(file: Path, text: str | tuple[str, str]) -> None:
    if isinstance(text, str):
        assert not file.exists()
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return
    there, instead = text
    assert file.read_text().count(there) == 1
    file.write_text(file.read_text().replace(there, instead.replace("{there}", there)))


def run(copy: Path, command: tuple[str, ...]) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", CHANGES)
def test_the_change_does_what_the_table_says(name: str, copy: Path) -> None:
    change = CHANGES[name]
    said = run(copy, change.command)
    shown = (copy / change.output).read_text() if change.output else said
    assert " ".join(change.shows.split()) in " ".join(shown.split())


def test_the_table_has_these_changes_and_counts_their_files() -> None:
    page = (REPOSITORY / "docs/architecture.md").read_text().partition("## Where a change goes\n")[2]
    rows = re.findall(r"^\| ((?:a|an) [^|]+) \|[^|]+\| (\d)(?: folder)? \|", page, re.MULTILINE)
    assert {name: int(count) for name, count in rows} == {name: len(change.files) for name, change in CHANGES.items()}
