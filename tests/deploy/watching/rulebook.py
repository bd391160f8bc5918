"""The rule files and their tests, as data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "deploy/rules").glob("*.yaml"))
TESTS = sorted((ROOT / "tests/deploy/watching/rules").glob("*.test.yaml"))


@dataclass(frozen=True)
class Rule:
    name: str
    expr: str
    is_alert: bool
    severity: str
    annotations: Mapping[str, str]
    labels: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    """A test of an alert: the metrics that are there, whether it should fire, and with which labels."""

    alert: str
    fires: bool
    metrics: frozenset[str]
    labels: frozenset[str]


def _rules() -> Iterator[Rule]:
    for path in FILES:
        for group in yaml.safe_load(path.read_text())["groups"]:
            for rule in group["rules"]:
                yield Rule(
                    name=rule.get("alert") or rule["record"],
                    expr=rule["expr"],
                    is_alert="alert" in rule,
                    severity=rule.get("labels", {}).get("severity", ""),
                    annotations=rule.get("annotations", {}),
                    labels=frozenset(rule.get("labels", {})),
                )


def _cases() -> Iterator[Case]:
    for path in TESTS:
        for test in yaml.safe_load(path.read_text())["tests"]:
            metrics = frozenset(series["series"].partition("{")[0] for series in test["input_series"])
            for check in test.get("alert_rule_test", ()):
                labels = frozenset(name for alert in check["exp_alerts"] for name in alert["exp_labels"])
                yield Case(check["alertname"], bool(check["exp_alerts"]), metrics, labels)


def answers() -> set[str]:
    """The expressions that the tests of recording rules ask for."""
    checks: list[Any] = [
        check
        for path in TESTS
        for test in yaml.safe_load(path.read_text())["tests"]
        for check in test.get("promql_expr_test", ())
    ]
    return {check["expr"] for check in checks if check["exp_samples"]}


RULES = tuple(_rules())
ALERTS = tuple(rule for rule in RULES if rule.is_alert)
RECORDINGS = tuple(rule for rule in RULES if not rule.is_alert)
CASES = tuple(_cases())
