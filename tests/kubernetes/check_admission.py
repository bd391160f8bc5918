"""What the API server says to the chart's objects, before any of them runs."""

import json
from collections.abc import Iterator

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
def namespace(operators: None) -> Iterator[None]:
    """One where no pod of these starts."""
    quota = {"metadata": {"name": "none", "namespace": "gpu"}, "spec": {"hard": {"pods": "0"}}}
    kubectl.make_namespace("gpu")
    kubectl.apply({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    yield
    kubectl.kubectl("delete", "namespace", "gpu")
    kinds = "clusterroles,clusterrolebindings,clusterpodmonitorings"
    kubectl.kubectl("delete", kinds, "--selector=app.kubernetes.io/name=podgpu")


@pytest.mark.parametrize("kind", chart.MATRIX)
def test_the_api_server_takes_every_object(kind: str) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": chart.objects(kind)}
    said = kubectl.kubectl(*APPLY, stdin=json.dumps(items))
    assert said.count("(server dry run)") == len(chart.objects(kind))


@pytest.mark.parametrize("kind", chart.MATRIX)
def test_an_object_is_kept_as_it_was_written(kind: str) -> None:
    """Where the API server leaves something out or adds to a list, tools that compare see a difference for ever."""
    kubectl.apply(*chart.objects(kind))
    again = kubectl.apply(*chart.objects(kind)).splitlines()
    assert [line for line in again if not line.endswith(" unchanged")] == []
