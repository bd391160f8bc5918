"""What OpenCost needs: tests/e2e/test_opencost.py compares the real program with podgpu report."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.watching.promql import selectors
from tests.deploy.watching.vocabulary import mistakes

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/opencost"
RULES = [rule for group in yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"] for rule in group["rules"]]
OWN = ("podgpu_", "podgpu:")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_the_rules_do_what_their_tests_say() -> None:
    command = ["promtool", "test", "rules", str(Path(__file__).with_name("opencost.test.yaml"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_read_series_that_exist() -> None:
    read = {metric for rule in RULES for metric in (each.metric for each in selectors(rule["expr"]))}
    assert {name for name in read if not name.startswith(OWN)} == {"node_cpu_hourly_cost"}
    assert [fault for name in read if name.startswith(OWN) for fault in mistakes(name)] == []


def test_opencost_writes_none_of_the_names_that_the_rules_record() -> None:
    """It has no series of use: those are a dcgm-exporter's."""
    values = yaml.safe_load((FOLDER / "values.yaml").read_text())["opencost"]
    (dropped,) = values["metrics"]["serviceMonitor"]["metricRelabelings"]
    recorded = {rule["record"] for rule in RULES} - {"DCGM_FI_PROF_GR_ENGINE_ACTIVE"}
    assert dropped["action"] == "drop"
    assert {name for name in recorded if re.fullmatch(dropped["regex"], name)} == recorded
    assert set(dropped["regex"].split("|")) == recorded


def test_the_prices_are_the_same_with_and_without_the_chart() -> None:
    model = yaml.safe_load((FOLDER / "values.yaml").read_text())["opencost"]["customPricing"]["costModel"]
    pricing = json.loads((FOLDER / "pricing.json").read_text())
    assert {name: pricing[name] for name in model if name != "description"} == {
        name: value for name, value in model.items() if name != "description"
    }
