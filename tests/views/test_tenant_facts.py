"""The facts of a pod and of a GPU, each with how it is known, and the commands that lead on."""

import json
from typing import Any

from msgspec.structs import replace

from podgpu.insight import reconclude
from podgpu.insight.tenants import cards_of, placements
from podgpu.model import Cluster, ClusterNode, Fault, Pod
from podgpu.views.facts import FactsQuery, facts_document
from podgpu.views.tenant_facts import tenant_facts
from tests.cluster.nodes import card, fresh, tenant
from tests.tree import SETTINGS

NOW = 1_700_000_000.0
BUSY = fresh("gpu-a", card("GPU-a", tenant("ml/train", 0.5)))
SHARED = fresh("gpu-b", card("GPU-b", tenant("web/serve", 0.2), tenant("web/other", 0.5, idle=True)))


def cluster(*nodes: ClusterNode) -> Cluster:
    return reconclude(Cluster(taken_at=NOW, version="1.0", nodes=nodes), SETTINGS)


def facts_of(found: Cluster, name: str) -> dict[str, tuple[str, str]]:
    (place,) = (place for place in placements(cards_of(found)) if place.tenant.container.pod == name)
    return {fact.what: (fact.value, fact.how) for fact in tenant_facts(place)}


def asked(found: Cluster, **query: str) -> Any:
    return json.loads(facts_document(found, FactsQuery(**query)))


def commands(found: Cluster, **query: str) -> list[object]:
    return [command["text"] for command in asked(found, **query)["commands"]]


def test_each_number_says_how_it_is_known() -> None:
    found = facts_of(cluster(BUSY), "train")
    value, how = found["Given"]
    assert value.endswith("of the GPU")
    assert "reported by" in how
    assert found["Busy"][1].startswith("Since the previous reading. ")
    assert found["Memory"][1] == "The sum of its processes, as the driver reports them."


def test_what_is_not_known_is_said_and_never_0() -> None:
    unknown = replace(tenant("ml/train", 0.5), claims=())
    booking = replace(unknown.booking, memory_bytes=None, allocated_ratio=None, sm_ratio=None, bookable=False)
    found = facts_of(cluster(fresh("gpu-a", card("GPU-a", replace(unknown, booking=booking)))), "train")
    assert found["Given"] == ("nothing", "No claim is known.")
    assert found["Memory"] == ("not known", "None of its processes could be seen.")
    assert found["Energy so far"][0] == "not known"


def test_a_node_that_went_dark_is_not_told_as_of_now() -> None:
    dark = replace(BUSY, state="stale", reason="timeout", dark=True)
    assert facts_of(cluster(dark), "train")["Busy"][1].startswith("As last heard of its node. ")


def test_facts_of_a_pod_are_of_each_card_that_it_is_on() -> None:
    both = fresh("gpu-b", card("GPU-b", tenant("ml/train", 0.2)), card("GPU-c", tenant("ml/train", 0.2)))
    found = asked(cluster(BUSY, both), pod="ml/train")
    assert [(place["node"], place["uuid"]) for place in found["places"]] == [
        ("gpu-a", "GPU-a"),
        ("gpu-b", "GPU-b"),
        ("gpu-b", "GPU-c"),
    ]


def test_facts_of_a_gpu_are_of_all_who_are_on_it() -> None:
    found = asked(cluster(BUSY, SHARED), gpu="GPU-b")
    assert [place["container"]["pod"] for place in found["places"]] == ["serve", "other"]
    summary = {fact["what"]: fact["value"] for fact in found["summary"]}
    assert summary["Who is on it"] == "web/other, web/serve"
    assert summary["Node"] == "gpu-b"


def test_commands_name_the_pod_and_the_node_as_data() -> None:
    found = cluster(BUSY)
    assert commands(found, pod="ml/train") == [
        "kubectl logs -n ml train -c main",
        "kubectl describe pod -n ml train",
        "podgpu why ml/train",
    ]
    assert commands(found, gpu="GPU-a") == [
        "kubectl cordon gpu-a",
        "kubectl describe node gpu-a",
        "podgpu doctor --url http://gpu-a:19400",
    ]
    hostile = cluster(fresh("gpu-a", card("GPU-a", tenant("ml/$(touch owned)", 0.5))))
    assert commands(hostile, pod="ml/$(touch owned)")[1] == "kubectl describe pod -n ml '$(touch owned)'"
    option = cluster(fresh("--all", card("GPU-a")))
    assert commands(option, gpu="GPU-a") == []


def test_a_node_of_another_cluster_is_not_mistaken_for_one_here() -> None:
    elsewhere = replace(BUSY, name="eu/gpu-a", cluster="eu")
    assert commands(cluster(elsewhere), gpu="GPU-a")[0] == "kubectl --context eu cordon gpu-a"


def test_outside_kubernetes_there_is_no_kubectl() -> None:
    outsider = replace(tenant("ml/train", 0.5), claims=())
    ref = replace(outsider.container, namespace="", pod="", container="docker/web")
    found = cluster(fresh("gpu-a", card("GPU-a", replace(outsider, container=ref))))
    assert commands(found, pod="docker/web") == ["podgpu why docker/web"]
    assert not [text for text in commands(found, gpu="GPU-a") if "kubectl" in str(text)]


def test_a_problem_says_what_to_run_first() -> None:
    lost = fresh("gpu-b", card("GPU-b", fault=Fault(reason="lost", call="", detail="", seconds=60.0)), card("GPU-c"))
    assert lost.snapshot is not None
    lost = replace(lost, snapshot=replace(lost.snapshot, pods=(Pod(namespace="ml", name="train", uid="uid"),)))
    idle = fresh("gpu-a", card("GPU-a", tenant("web/other", 0.5, idle=True)))
    told = cluster(idle, lost).insight
    assert told is not None
    found = {problem.kind: problem.command for problem in told.problems}
    assert found["gpu_unreadable"] == "kubectl cordon gpu-b"
    assert found["idle"] == "kubectl logs -n web other --all-containers"


def test_a_node_has_commands_too_even_if_it_was_never_heard() -> None:
    silent = ClusterNode(name="gpu-z", state="failed", reason="timeout", dark=True, ready=False)
    found = cluster(BUSY, silent)
    assert commands(found, node="gpu-z")[:2] == ["kubectl cordon gpu-z", "kubectl describe node gpu-z"]
    summary = {fact["what"]: fact["value"] for fact in asked(found, node="gpu-a")["summary"]}
    assert (summary["Model"], summary["Given"]) == ("H200", "0.5 of 1 GPU")


def test_nobody_is_found_by_a_name_that_nothing_has() -> None:
    found = asked(cluster(BUSY), pod="ml/other")
    assert (found["places"], found["commands"]) == ([], [])
