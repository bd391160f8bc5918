"""The CronJob that makes bills."""

import shlex
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from podgpu.cli.main import main
from tests.conftest import Golden
from tests.deploy import chart
from tests.deploy.chart import Object, needs_helm

pytestmark = needs_helm

PRICES = {"currency": "EUR", "gpu_hour": {"*": 3.5}}
PLAIN: Object = {"report": {"schedule": "30 2 1 * *", "store": "http://prometheus:9090"}}
FULL: Object = {
    "report": {
        "schedule": "0 3 * * 1",
        "period": "week",
        "store": "https://mimir.example/prometheus",
        "by": "team",
        "basis": "greater",
        "share": "held",
        "coverage": 0.995,
        "prices": PRICES,
        "config": {"prometheus": {"headers-file": "/etc/podgpu-login/headers", "timeout": "2m"}},
        "login": {"existingSecret": "mimir"},
        "volume": {"existingClaim": "bills"},
        "extraArgs": ["-o", "markdown"],
    }
}


def of_report(values: Object) -> list[Object]:
    manifests = chart.parse(chart.text(values))
    return [each for each in manifests if each["metadata"]["labels"].get("app.kubernetes.io/component") == "report"]


def job(found: list[Object]) -> Object:
    return dict(chart.only(found, "CronJob")["spec"]["jobTemplate"]["spec"])


def container(found: list[Object]) -> Object:
    (only,) = job(found)["template"]["spec"]["containers"]
    return dict(only)


def test_there_is_none_unless_it_is_wanted() -> None:
    assert of_report({}) == []


@pytest.mark.parametrize("version", ["1.29", "1.36"])
@pytest.mark.parametrize("values", [PLAIN, FULL], ids=["plain", "full"])
def test_kubernetes_knows_every_field(values: Object, version: str) -> None:
    for each in of_report(values):
        assert kubernetes_validate.validate(each, version, strict=True) == version


def test_whole_output(golden: Golden) -> None:
    golden("chart/report.yaml", yaml.safe_dump_all(of_report(FULL), sort_keys=False))


def test_bills_are_kept_on_a_claim_that_outlives_the_release() -> None:
    claim = chart.only(of_report(PLAIN), "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    volumes = {each["name"]: each for each in job(of_report(PLAIN))["template"]["spec"]["volumes"]}
    assert volumes["bills"]["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}
    assert "PersistentVolumeClaim" not in {each["kind"] for each in of_report(FULL)}


def test_a_bill_with_gaps_fails_the_job_at_once_and_a_dead_store_is_asked_again() -> None:
    found = job(of_report(PLAIN))
    (rule,) = found["podFailurePolicy"]["rules"]
    assert (rule["action"], rule["onExitCodes"]["values"]) == ("FailJob", [1, 3])
    assert rule["onExitCodes"]["containerName"] == container(of_report(PLAIN))["name"]
    assert (found["backoffLimit"], found["template"]["spec"]["restartPolicy"]) == (3, "Never")


@pytest.mark.parametrize("values", [PLAIN, FULL], ids=["plain", "full"])
def test_the_command_takes_its_arguments_and_files(
    values: Object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It gets as far as the store, which is not there."""
    found = of_report(values)
    dead = "http://127.0.0.1:9"
    for name, content in chart.only(found, "ConfigMap")["data"].items():
        local: dict[str, Any] = yaml.safe_load(content)
        if name == "podgpu.yml":
            local["prometheus.url"] = dead
            local.pop("prometheus.headers-file", None)
        (tmp_path / name).write_text(yaml.safe_dump(local).replace("/etc/podgpu-prices", str(tmp_path)))
    line = shlex.join(container(found)["args"]).replace("/etc/podgpu/", f"{tmp_path}/")
    assert main(shlex.split(line)) == 2
    assert "store_unreachable" in capsys.readouterr().err
    assert ("price" in (tmp_path / "podgpu.yml").read_text()) == ("prices" in values["report"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"store": ""}, "report.schedule makes bills of what a store has, but report.store is empty"),
        ({"prices": PRICES, "existingPrices": "mine"}, "each have prices. Keep one."),
        ({"prices": PRICES, "basis": "energy"}, "Set report.prices.kwh."),
        ({"config": {"price": "x"}}, "report.config.price cannot be set"),
        ({"period": "year"}, "report"),
        ({"coverage": 99}, "report"),
        ({"config": {"interval": "5s"}}, "interval"),
    ],
)
def test_values_that_make_no_bill_are_refused_with_what_to_do(change: Object, reason: str) -> None:
    assert reason in chart.refusal({"report": {**PLAIN["report"], **change}})
