"""What the API server says to the chart's objects, before any of them runs."""

import json
from collections.abc import Iterator

import pytest

from tests.deploy import chart
from tests.deploy.test_chart_values import of_agent, of_cluster
from tests.kubernetes import kubectl

OTHERS = ("agent", "cluster")  # sets of values beside the matrix
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


def objects(kind: str) -> list[chart.Object]:
    return {"agent": of_agent, "cluster": of_cluster}[kind]() if kind in OTHERS else chart.objects(kind)


@pytest.mark.parametrize("kind", [*chart.MATRIX, *OTHERS])
def test_the_api_server_takes_every_object(kind: str) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": objects(kind)}
    said = kubectl.kubectl(*APPLY, stdin=json.dumps(items))
    assert said.count("(server dry run)") == len(objects(kind))


@pytest.mark.parametrize("kind", [*chart.MATRIX, *OTHERS])
def test_an_object_is_kept_as_it_was_written(kind: str) -> None:
    """Where the API server leaves something out or adds to a list, tools that compare see a difference for ever."""
    kubectl.apply(*objects(kind))
    again = kubectl.apply(*objects(kind)).splitlines()
    # kubectl replaces the selector of a budget each time, whatever it is.
    others = [line for line in again if not line.startswith("poddisruptionbudget")]
    assert [line for line in others if not line.endswith(" unchanged")] == []
