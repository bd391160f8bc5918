"""What the API server says to the chart's objects, before any of them runs."""

import json

import pytest

from tests.deploy import chart
from tests.kubernetes import kubectl

APPLY = (
    "apply",
    "--dry-run=server",
    "--validate=strict",
    "--warnings-as-errors",
    "--namespace=gpu",
    "--filename=-",
)


@pytest.fixture(scope="module", autouse=True)
def namespace(operators: None) -> None:
    kubectl.make_namespace("gpu")


@pytest.mark.parametrize("kind", chart.MATRIX)
def test_the_api_server_takes_every_object(kind: str) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": chart.objects(kind)}
    said = kubectl.kubectl(*APPLY, stdin=json.dumps(items))
    assert said.count("(server dry run)") == len(chart.objects(kind))
