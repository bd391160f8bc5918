"""The alerts and recording rules: valid, tested by promtool, explained, and about metrics that exist."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from podgpu.catalog.xids import UNKNOWN, XIDS
from tests.deploy.watching.promql import selectors
from tests.deploy.watching.rulebook import ALERTS, CASES, FILES, RECORDINGS, ROOT, RULES, TESTS, Rule, answers
from tests.deploy.watching.vocabulary import mistakes

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")

RUNBOOK = ROOT / "docs/alerts.md"
PUBLISHED = "https://github.com/podgpu/podgpu/blob/main/docs/alerts.md"
# What no demo can cause: these fire where there is nothing of podgpu.
MADE_UP = ("podgpu_build_info", "podgpu_cluster_build_info")  # of an agent, and of the reader of a cluster
ABSENT = {"PodgpuNoAgent", "PodgpuNodeWithoutAgent"}
SECTIONS = dict(re.findall(r"(?ms)^## (\w+)\n(.*?)(?=^## |\Z)", RUNBOOK.read_text()))

# What tells one scraped agent from another.
TARGET = {"cluster", "job", "instance", "node"}

each_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)


def promtool(*arguments: str) -> str:
    assert PROMTOOL
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_the_rules_are_valid() -> None:
    told = promtool("check", "rules", *map(str, FILES))
    assert told.count("SUCCESS") == len(FILES)


@needs_promtool
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_the_rules_do_what_their_tests_say(path: object) -> None:
    promtool("test", "rules", str(path))


@each_alert
def test_each_alert_fires_in_a_test_and_stays_quiet_in_its_twin(alert: Rule) -> None:
    cases = [case for case in CASES if case.alert == alert.name]
    assert {case.fires for case in cases} == {True, False}
    asked = {selector.metric for selector in selectors(alert.expr)}
    asked |= {metric for recording in RECORDINGS if recording.name in asked for metric in _metrics(recording)}
    # A case without anything to look at would be quiet whatever the rule says.
    assert all(case.metrics & asked for case in cases if not case.fires)


@needs_promtool
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_no_alert_is_about_a_demo_or_a_replay(path: Path, tmp_path: Path) -> None:
    """Each case that fires is played again, and its targets say that they are made up."""
    content = yaml.safe_load(path.read_text())
    content["rule_files"] = [str((path.parent / name).resolve()) for name in content["rule_files"]]
    # Months take promtool long.
    short = [test for test in content["tests"] if test["interval"] == "1m"]
    content["tests"] = [_made_up(test) for test in short if _fires(test)]
    copy = tmp_path / path.name
    copy.write_text(yaml.safe_dump(content))
    promtool("test", "rules", str(copy))


@each_alert
def test_each_alert_asks_whether_a_target_is_made_up(alert: Rule) -> None:
    asked = {alert.expr, *(recording.expr for recording in RECORDINGS if recording.name in _metrics(alert))}
    is_asked = any(f'{name}{{demo="true"}}' in expression for expression in asked for name in MADE_UP)
    assert is_asked != (alert.name in ABSENT)


def _fires(test: dict[str, Any]) -> bool:
    return any(check["exp_alerts"] for check in test.get("alert_rule_test", ()))


def _made_up(test: dict[str, Any]) -> dict[str, Any]:
    labels = [re.findall(r'(\w+)="([^"]*)"', each["series"]) for each in test["input_series"]]
    targets = {tuple(sorted(pair for pair in each if pair[0] in TARGET)) for each in labels}
    said = [
        {
            "series": f'{info}{{demo="true",{",".join(f"{name}={value!r}" for name, value in target)}}}',
            "values": "1x400",
        }
        for target in sorted(targets)
        for info in MADE_UP
    ]
    quiet = [{**check, "exp_alerts": []} for check in test["alert_rule_test"] if check["alertname"] not in ABSENT]
    return {**test, "input_series": [*test["input_series"], *said], "alert_rule_test": quiet}


@pytest.mark.parametrize("rule", RECORDINGS, ids=lambda rule: rule.name)
def test_each_recording_rule_is_asked_for_by_a_test(rule: Rule) -> None:
    in_alerts = {metric for alert in ALERTS for metric in _metrics(alert)}
    asked = {selector.metric for expression in answers() for selector in selectors(expression)}
    assert rule.name in asked | in_alerts | _read_by_recordings(asked)


@each_alert
def test_each_alert_says_what_happened_and_where_to_read_on(alert: Rule) -> None:
    assert alert.severity in {"critical", "warning", "info"}
    assert set(alert.annotations) == {"summary", "description", "runbook_url"}
    assert not alert.annotations["summary"].endswith(".")
    assert alert.annotations["description"].endswith(".")
    assert alert.annotations["runbook_url"] == f"{PUBLISHED}#{alert.name.lower()}"


@each_alert
def test_each_alert_has_a_runbook(alert: Rule) -> None:
    section = SECTIONS[alert.name]
    assert f"`{alert.severity}`" in section
    for part in ("**What it means.**", "**Look.**", "**Do.**"):
        assert part in section
    assert "```" in section, "name the commands to look with"


def test_there_is_no_runbook_for_an_alert_that_does_not_exist() -> None:
    assert set(SECTIONS) == {alert.name for alert in ALERTS}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_names_only_metrics_and_labels_that_exist(rule: Rule) -> None:
    assert mistakes(rule.expr) == []


@each_alert
def test_annotations_name_only_labels_that_the_alert_has(alert: Rule) -> None:
    named = set(re.findall(r"\$labels\.(\w+)", " ".join(alert.annotations.values())))
    for case in CASES:
        if case.alert == alert.name and case.fires:
            assert named <= case.labels


@pytest.mark.parametrize("code", range(1, 200))
def test_an_xid_has_the_alert_of_its_severity(code: int) -> None:
    """The page and the alerts judge by one table. A code that asks for nothing by itself has no alert."""
    xid = XIDS.get(code, UNKNOWN)
    found = [alert.severity for alert in ALERTS if "Xid" in alert.name and _takes(alert, str(code))]
    assert found == ([] if xid.action in ("nothing", "recover") else [xid.severity])


def test_no_name_is_used_twice() -> None:
    assert [name for name, times in Counter(rule.name for rule in RULES).items() if times > 1] == []


@pytest.mark.parametrize(
    ("expression", "mistake"),
    [
        ("podgpu_gpu_upp", "there is no metric podgpu_gpu_upp"),
        ('podgpu_gpu_up{pod="x"}', "podgpu_gpu_up has no label pod"),
        ('podgpu_gpu_clock_hertz{clock=~"sm|shader"}', "no clock of podgpu_gpu_clock_hertz is shader"),
        ("sum by (model) (podgpu_gpu_up)", "no series of it has the label model"),
    ],
)
def test_a_wrong_name_is_found(expression: str, mistake: str) -> None:
    assert mistakes(expression) == [mistake]


def _takes(alert: Rule, xid: str) -> bool:
    (matcher,) = selectors(alert.expr)[0].matchers
    return bool(re.fullmatch(matcher.value, xid)) != matcher.is_negative


def _metrics(rule: Rule) -> set[str]:
    return {selector.metric for selector in selectors(rule.expr)}


def _read_by_recordings(asked: set[str]) -> set[str]:
    """What a rule that is asked for reads of other rules is asked for with it."""
    return {metric for recording in RECORDINGS if recording.name in asked for metric in _metrics(recording)}
