"""A sharing system is one file in sharing/ and one folder of scenarios: nothing else knows its name."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import podgpu
from podgpu import sharing
from podgpu.views import json, native
from podgpu.views.exposition import Format, render
from tests.fakekubelet.kubelet import kubelet_root
from tests.scenarios.play import play
from tests.scenarios.script import GivenScript, GpuScript, NodeScript, PodScript

SOURCE = Path(podgpu.__file__).parent
SCENARIOS = Path(__file__).parents[1] / "scenarios"
ROOM = SOURCE / "sharing"
# Dialects speak the words of other systems; that is all they are.
DIALECTS = {SOURCE / "views" / "dialects"}
ELSEWHERE = sorted(
    path for path in SOURCE.rglob("*.py") if ROOM not in path.parents and not DIALECTS & {path, *path.parents}
)
SYSTEMS = sharing.systems()
SHARED = {"__init__.py", "__pycache__", *(f"{name}.py" for name in sharing.SHARED)}
# Names that others use too: NVIDIA's for parts of a GPU and kinds of process, Kubernetes' own, a method of booking.
ORDINARY = {"mig", "mps", "dra", "exclusive", "ratio", "replicas"}
WRITTEN = {
    "hami", "gpushare", "aliyun", "volcano", "koordinator", "tencent", "vcuda", "gpu-manager", "tkestack",
    "amazonaws", "runai", "run.ai", "kai-resource", "gpu-fraction", "time-slicing", "nvidia.com/mps", "mps.capable",
}  # fmt: skip


def words() -> Iterator[str]:
    for system in SYSTEMS:
        yield from (sign.strip("-_") for sign in system.signs)
    names = {system.name for system in SYSTEMS}
    names |= {path.stem.replace("_", "-") for path in ROOM.iterdir() if path.name not in SHARED}
    yield from names - ORDINARY
    yield from WRITTEN


def pattern() -> re.Pattern[str]:
    """Words in any spelling: with a dash, an underscore, or neither."""
    spelt = (re.escape(word).replace(r"\-", "[-_ ]?") for word in sorted(set(words())))
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(spelt)})(?![a-z0-9])", re.IGNORECASE)


def naming(paths: list[Path]) -> list[str]:
    """List the lines that name a system."""
    names = pattern()
    return [
        f"{path.relative_to(SOURCE)}:{number}: {found[0]}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (found := names.search(line))
    ]


def test_no_other_file_names_a_sharing_system() -> None:
    assert len(ELSEWHERE) > 50
    assert naming(ELSEWHERE) == []


def test_what_all_systems_have_in_common_names_none() -> None:
    assert naming([path for path in ROOM.glob("*.py") if path.name in SHARED]) == []


@pytest.mark.parametrize(
    "line",
    [
        "if system == 'hami':",
        "RESOURCE = 'aliyun.com/gpu-mem'",
        "class TimeSlicing:",
        "time_slicing = 4",
        "pod.labels['runai-gpu-group']",
        "'hami.io/vgpu-devices-allocated'",
        "volcano.sh/vgpu-number",
        "koordinator.sh/gpu-core",
    ],
)
def test_a_name_would_be_found(line: str) -> None:
    assert pattern().search(line)


@pytest.mark.parametrize("line", ['CLIENT = "mps"', 'method = "exclusive"', "mig_enabled", "utilization_ratio"])
def test_a_word_that_is_not_only_a_systems_may_be_said(line: str) -> None:
    assert not pattern().search(line)


@pytest.mark.parametrize("system", [system.name for system in SYSTEMS])
def test_each_system_has_a_scenario_that_it_claims_something_in(system: str) -> None:
    pages = SCENARIOS.glob("*/expected/snapshot.json")
    claims = (
        claim
        for page in pages
        for card in json.decode(page.read_bytes()).cards
        for tenant in card.tenants
        for claim in tenant.claims
    )
    assert any(claim.system == system for claim in claims)


NEW_SYSTEM = '''
"""Slots by nobody at all: `slot-N-UUID`."""

from podgpu.sharing.system import SharingSystem

NAME = "new-system"


def explains(allocation, inventory):
    return allocation.device_id.partition("/")[2] in inventory.gpus


def claims(inventory):
    for given in inventory.allocations:
        if explains(given, inventory):
            yield inventory.claim(given, given.device_id.partition("/")[2], system=NAME, share=0.125)


SYSTEM = SharingSystem(
    name=NAME, signs=("example.org/slot",), needs="nothing", explains=explains, claims=claims
)
'''


@pytest.fixture
def new_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "new_system.py").write_text(NEW_SYSTEM)
    monkeypatch.setattr(sharing, "__path__", [*sharing.__path__, str(folder)])
    yield
    sys.modules.pop("podgpu.sharing.new_system", None)
    vars(sharing).pop("new_system", None)


@pytest.mark.usefixtures("new_system")
async def test_a_new_file_is_found_and_reaches_the_page(tmp_path: Path) -> None:
    card = "GPU-00000000-0000-4000-8000-000000000000"
    script = NodeScript(
        story="",
        gpus=[GpuScript(uuid=card, minor=0)],
        pods=[PodScript(name="team-a/new")],
        given=[GivenScript(to="team-a/new/main", resource="example.org/slot", ids=[f"slot-1/{card}"])],
    )
    folder = tmp_path / "node"
    folder.mkdir()
    with kubelet_root() as kubelet:
        snapshot = await play(script, folder, kubelet)
    page = render(native.families(snapshot, {}), Format.TEXT).decode()
    (line,) = (line for line in page.splitlines() if line.startswith("podgpu_container_allocated_ratio{"))
    assert 'pod="new"' in line
    assert line.endswith(" 0.125")
    assert b'"system":"new-system"' in json.encode(snapshot)
    assert snapshot.unclaimed == ()


@pytest.mark.usefixtures("new_system")
@pytest.mark.parametrize("text", ["", "SYSTEM = None\n", "SYTSEM = 1\n"])
def test_a_file_without_a_system_is_refused(tmp_path: Path, text: str) -> None:
    sys.modules.pop("podgpu.sharing.new_system", None)
    (tmp_path / "package" / "new_system.py").write_text(text)
    with pytest.raises(TypeError, match="new_system must export SYSTEM"):
        sharing.systems()


def test_it_is_gone_again_with_its_file() -> None:
    assert "new-system" not in {system.name for system in sharing.systems()}
