"""The CronJob that gives advice."""

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
PLAIN: Object = {"fit": {"schedule": "0 6 * * 1", "store": "http://prometheus:9090"}}
FULL: Object = {
    "fit": {
        "schedule": "0 6 * * 1",
        "store": "https://mimir.example/prometheus",
        "from": "28d",
        "headroom": 35,
        "percentile": 99.5,
        "releaseAfter": "14d",
        "output": "json",
        "prices": PRICES,
        "config": {"prometheus": {"timeout": "2m"}},
        "login": {"existingSecret": "mimir"},
        "extraArgs": ["--namespace=team-a"],
    }
}


def of_fit(values: Object) -> list[Object]:
    manifests = chart.parse(chart.text(values))
    return [each for each in manifests if each["metadata"]["labels"].get("app.kubernetes.io/component") == "fit"]


def pod(found: list[Object]) -> Object:
    return dict(chart.only(found, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"])


def test_there_is_none_unless_it_is_wanted() -> None:
    assert of_fit({}) == []


def test_kubernetes_knows_every_field_and_the_whole_output_is_reviewed(golden: Golden) -> None:
    manifests = of_fit(FULL)
    for each in manifests:
        assert kubernetes_validate.validate(each, "1.36", strict=True) == "1.36"
    golden("chart/fit.yaml", yaml.safe_dump_all(manifests, sort_keys=False))


def test_it_writes_nothing_and_may_do_nothing() -> None:
    manifests = of_fit(PLAIN)
    (container,) = pod(manifests)["containers"]
    assert {each["kind"] for each in manifests} == {"ConfigMap", "CronJob"}
    assert pod(manifests)["automountServiceAccountToken"] is False
    assert [each["mountPath"] for each in container["volumeMounts"]] == ["/etc/podgpu"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize("values", [PLAIN, FULL], ids=["plain", "full"])
def test_the_command_takes_its_arguments_and_files(
    values: Object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It gets as far as the store, which is not there."""
    manifests = of_fit(values)
    for name, content in chart.only(manifests, "ConfigMap")["data"].items():
        local: dict[str, Any] = yaml.safe_load(content)
        if name == "podgpu.yml":
            local["prometheus.url"] = "http://127.0.0.1:9"
        (tmp_path / name).write_text(yaml.safe_dump(local).replace("/etc/podgpu-prices", str(tmp_path)))
    (container,) = pod(manifests)["containers"]
    line = shlex.join(container["args"]).replace("/etc/podgpu/", f"{tmp_path}/")
    assert main(shlex.split(line)) == 2
    assert "store_unreachable" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"store": ""}, "fit.schedule makes advice of what a store has, but fit.store is empty"),
        ({"prices": PRICES, "existingPrices": "mine"}, "each have prices. Keep one."),
        ({"config": {"price": "x"}}, "fit.config.price cannot be set"),
        ({"output": "focus"}, "output"),
        ({"percentile": 0.99}, "percentile"),
    ],
)
def test_values_that_give_no_advice_are_refused_with_what_to_do(change: Object, reason: str) -> None:
    assert reason in chart.refusal({"fit": {**PLAIN["fit"], **change}})
