"""The name of a part appears in the catalog and in the part itself, and nowhere else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from podgpu.catalog.agent_parts import PARTS, AgentPart

SOURCE = Path(__file__).parents[2] / "src" / "podgpu"
CATALOG = "catalog/agent_parts.py"

# Where each part lives. A folder is the part's as a whole.
HOMES = {
    "nvml": ("sources/nvml",),
    # A page of dcgm-exporter is also one of the origins of a cluster's nodes.
    "dcgm": (
        "sources/dcgm",
        "catalog/reference.py",
        "views/dialects/dcgm.py",
        "model/snapshot.py",
        "assembly/cluster.py",
        "assembly/exporter.py",
    ),
    "simulator": ("sources/simulator",),
    "podresources": ("kube/kubelet/podresources.py",),
    # Its folder is looked for before its client is imported.
    "pods-api": ("kube/kubelet/__init__.py", "kube/kubelet/pods_api.py"),
    "apiserver": ("kube/object_watch.py",),
    "log-dirs": ("kube/log_dirs.py",),
    "resource-claims": ("kube/resource_claims.py",),
    "procfs": ("host/procfs.py",),
    # The terminal lists them, too.
    "workloads": ("kube/workloads.py", "cli/top.py", "cli/_top", "insight/rows.py"),
    "sharing": ("sharing/__init__.py",),
    "attribution": ("agent/loop.py",),
    "switches": ("sources/switches", "numbers.py"),  # a plural, too
    "otlp": ("push",),
}


def literals(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def is_at_home(place: str, name: str) -> bool:
    return any(place == home or place.startswith(f"{home}/") for home in (CATALOG, *HOMES[name]))


def strangers() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        for number, text in literals(path):
            if text in PARTS and not is_at_home(place, text):
                yield f"{place}:{number}: {text}"


def test_nobody_but_a_part_itself_knows_its_name() -> None:
    assert list(strangers()) == []


def test_a_name_that_is_found_outside_would_be_noticed() -> None:
    assert not is_at_home("views/page/card.py", "procfs")
    assert not is_at_home("sources/nvml_other.py", "nvml")
    assert (SOURCE / CATALOG).exists() and set(HOMES) == set(PARTS)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_part_is_filed_under_its_name_and_described_in_sentences(part: AgentPart) -> None:
    assert PARTS[part.name] is part
    for sentence in part.next_steps.values():
        assert sentence[0].isupper() and sentence.endswith(".")
