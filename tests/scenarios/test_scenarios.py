"""Whole nodes as data: each folder has a node.yaml and the expected pages, which `pytest --update` rewrites."""

from pathlib import Path

import msgspec
import pytest

from podgpu.views import json, native
from podgpu.views.exposition import Format, render
from podgpu.views.table import table
from podgpu.views.why import why
from tests.agent.stage import check_balance
from tests.conftest import Golden
from tests.fakekubelet.kubelet import kubelet_root
from tests.scenarios.play import play
from tests.scenarios.script import read

HERE = Path(__file__).parent
SCENARIOS = sorted(path.parent.name for path in HERE.glob("*/node.yaml"))


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_scenario_gives_its_pages_and_balances(name: str, tmp_path: Path, golden: Golden) -> None:
    script = read(HERE / name / "node.yaml")
    with kubelet_root() as kubelet:
        snapshot = await play(script, tmp_path, kubelet)
    check_balance(snapshot)
    expected = f"../scenarios/{name}/expected"
    golden(f"{expected}/native.prom", render(native.families(snapshot, {}), Format.TEXT))
    golden(f"{expected}/snapshot.json", msgspec.json.format(json.encode(snapshot), indent=1))
    golden(f"{expected}/table.txt", table(snapshot, 80, colour=False))
    for pod in snapshot.pods:
        text = why(snapshot, pod.namespace, pod.name, 80)
        golden(f"{expected}/why-{pod.namespace}-{pod.name}.txt", text or "")
