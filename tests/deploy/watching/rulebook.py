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
            for one in group["rules"]:
                yield Rule(
                    name=one.get("alert") or one["record"],
                    expr=one["expr"],
                    is_alert="alert" in one,
                    severity=one.get("labels", {}).get("severity", ""),
                    annotations=one.get("annotations", {}),
                )


def _cases() -> Iterator[Case]:
    for path in TESTS:
        for test in yaml.safe_load(path.read_text())["tests"]:
            metrics = frozenset(one["series"].partition("{")[0] for one in test["input_series"])
            for check in test.get("alert_rule_test", ()):
                labels = frozenset(name for one in check["exp_alerts"] for name in one["exp_labels"])
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
ALERTS = tuple(one for one in RULES if one.is_alert)
RECORDINGS = tuple(one for one in RULES if not one.is_alert)
CASES = tuple(_cases())
