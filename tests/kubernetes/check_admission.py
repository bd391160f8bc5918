"""What the API server says to the chart's objects, before any of them runs."""

import json

import pytest

from tests.deploy import chart
from tests.kubernetes import kubectl
from tests.kubernetes.programs import HOME

APPLY = (
    "apply",
    "--dry-run=server",
    "--validate=strict",
    "--warnings-as-errors",
    "--namespace=gpu",
    "--filename=-",
)


@pytest.fixture(scope="module", autouse=True)
def operators() -> None:
    """The kinds of the monitoring operators, as they define them."""
    kubectl.make_namespace("gpu")
    for path in sorted((HOME / "crds").glob("*.yaml")):
        kubectl.kubectl("apply", "--server-side", f"--filename={path}")
    kubectl.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


@pytest.mark.parametrize("kind", chart.MATRIX)
def test_the_api_server_takes_every_object(kind: str) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": chart.objects(kind)}
    said = kubectl.kubectl(*APPLY, stdin=json.dumps(items))
    assert said.count("(server dry run)") == len(chart.objects(kind))
