"""Rules and dashboards as the chart brings them: what is in deploy/, and nothing else."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy import chart
from tests.deploy.chart import needs_helm
from tests.deploy.watching.rulebook import ALERTS, FILES, RECORDINGS
from tests.deploy.watching.test_rules import PROMTOOL, needs_promtool
from tools.chart import CHART, copies
from tools.dashboards.__main__ import DASHBOARDS

ON = {"enabled": True}
SWITCHES = yaml.safe_load((CHART / "values.yaml").read_text())["defaultRules"]["rules"]


def groups(values: chart.Values, kind: str = "PrometheusRule") -> dict[str, Any]:
    found = chart.only(chart.parse(chart.text(values)), kind)
    return {group["name"]: group for group in found["spec"]["groups"]}


def alerts(values: chart.Values) -> list[dict[str, Any]]:
    return [rule for group in groups(values).values() for rule in group["rules"] if "alert" in rule]


@needs_helm
@pytest.mark.parametrize(("value", "kind"), [("prometheusRule", "PrometheusRule"), ("vmRule", "VMRule")])
def test_every_rule_arrives_as_it_is(value: str, kind: str) -> None:
    written = [group for path in FILES for group in yaml.safe_load(path.read_text())["groups"]]
    assert groups({value: ON}, kind) == {group["name"]: group for group in written}


@needs_helm
@needs_promtool
def test_promtool_takes_the_rules_with_labels_and_runbooks(tmp_path: Path) -> None:
    chosen = {"runbookUrl": "https://wiki.example.com/alerts", "additionalRuleLabels": {"team": "gpu"}}
    found = chart.only(chart.parse(chart.text({"prometheusRule": ON, "defaultRules": chosen})), "PrometheusRule")
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(found["spec"]))
    done = subprocess.run([str(PROMTOOL), "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"SUCCESS: {len(ALERTS) + len(RECORDINGS)} rules found" in done.stdout


@needs_helm
def test_an_alert_gets_the_labels_and_the_address_of_its_runbook() -> None:
    chosen = {
        "runbookUrl": "https://wiki.example.com/alerts",
        "additionalRuleLabels": {"team": "gpu", "severity": "x"},
    }
    found = {rule["alert"]: rule for rule in alerts({"prometheusRule": ON, "defaultRules": chosen})}
    assert found["PodgpuGpuDown"]["labels"] == {"severity": "critical", "team": "gpu"}
    for name, rule in found.items():
        assert rule["annotations"]["runbook_url"] == f"https://wiki.example.com/alerts#{name.lower()}"
        assert rule["labels"]["team"] == "gpu"


@needs_helm
def test_how_long_what_is_gone_is_shown_as_not_seen_can_be_chosen() -> None:
    found = groups({"prometheusRule": ON, "defaultRules": {"seenWithin": "1d"}})["podgpu-presence"]
    assert [rule["expr"].count("[1d]") for rule in found["rules"]] == [1, 1, 1]
    assert "[6h]" not in str(found)


@needs_helm
def test_groups_and_single_rules_can_be_left_out() -> None:
    chosen = {"rules": {"kubeStateMetrics": False, "gpuHealth": False}, "disabled": {"PodgpuPodIdle": True}}
    values = {"prometheusRule": ON, "defaultRules": chosen}
    assert not {"podgpu-kube-state-metrics", "podgpu-gpu-health"} & groups(values).keys()
    assert "podgpu-workloads" in groups(values)
    assert "PodgpuPodIdle" not in {rule["alert"] for rule in alerts(values)}


@needs_helm
@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"prometheusRule": ON, "vmRule": ON}, "so every alert would be sent twice"),
        ({"defaultRules": {"disabled": {"PodgpuIdle": True}}}, "there is no rule PodgpuIdle"),
        ({"vmRule": ON, "defaultRules": {"rules": {"use": False}}}, "but use is off"),
        (
            {"prometheusRule": ON, "defaultRules": {"rules": dict.fromkeys(SWITCHES, False)}},
            "every group of defaultRules.rules is off",
        ),
        ({"defaultRules": {"rules": {"gpus": True}}}, "additional properties 'gpus' not allowed"),
    ],
)
def test_rules_that_would_do_nothing_or_too_much_are_refused(values: chart.Values, reason: str) -> None:
    assert reason in chart.refusal(values)


def test_each_file_of_rules_has_a_switch() -> None:
    assert {path.stem.replace("-", "") for path in FILES} == {name.lower() for name in SWITCHES}


@needs_helm
def test_grafanas_sidecar_finds_every_dashboard() -> None:
    found = [each for each in chart.objects("watched") if "grafana_dashboard" in each["metadata"]["labels"]]
    assert {each["metadata"]["labels"]["grafana_dashboard"] for each in found} == {"1"}
    assert {each["metadata"]["annotations"]["grafana_folder"] for each in found} == {"GPUs"}
    texts = {name: text for each in found for name, text in each["data"].items()}
    assert {name: json.loads(text) for name, text in texts.items()} == {
        f"{dashboard.uid}.json": json.loads(dashboard.render()) for dashboard in DASHBOARDS
    }


@needs_helm
def test_the_sidecar_may_look_elsewhere_and_for_another_label() -> None:
    chosen = {**ON, "namespace": "grafana", "label": "dashboards", "labelValue": "yes", "folder": ""}
    found = [
        each["metadata"]
        for each in chart.parse(chart.text({"grafanaDashboard": chosen}))
        if "dashboard" in each["metadata"]["name"]
    ]
    assert len(found) == len(DASHBOARDS)
    for each in found:
        assert (each["namespace"], each["labels"]["dashboards"]) == ("grafana", "yes")
        assert "annotations" not in each


@needs_helm
def test_neither_is_there_unless_asked_for() -> None:
    assert not {"PrometheusRule", "VMRule"} & {each["kind"] for each in chart.objects("defaults")}
    assert len([each for each in chart.objects("defaults") if each["kind"] == "ConfigMap"]) == 1


def test_a_copy_without_an_original_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "CHART", tmp_path)
    shutil.copytree(CHART / "files", tmp_path / "files")
    assert copies.strays() == []
    (tmp_path / "files/rules/old.yaml").write_text("groups: []")
    assert copies.strays() == [tmp_path / "files/rules/old.yaml"]
