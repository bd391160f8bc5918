"""What a collector decodes is what the snapshot says, in OpenTelemetry's words."""

from collections.abc import Mapping

from msgspec.structs import replace
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from podgpu.model import Balance, Booking, Card, ContainerRef, Fault, Gpu, Reading, Snapshot, Tenant, Workload
from podgpu.views import native
from podgpu.views.otlp import encode, rejection
from podgpu.views.series import count
from tests.push.points import Points, attributes, data_points, metrics_of, points_of
from tests.tree import WATCHED
from tests.views.quirks import SNAPSHOT

LLAMA = ContainerRef("team-a", "llama-0", "server", "uid-1")
BOOKING = Booking(method="measured", processes=1, memory_bytes=5 << 30, sm_ratio=0.5, busy_us=1_500_000)
CARD = Card(
    gpu=Gpu(uuid="GPU-1", index=3, model="NVIDIA H200"),
    ability=replace(WATCHED, counts_busy=True),
    readings=(
        Reading("memory_used_bytes", 6e9),
        Reading("energy_joules_total", 12.5),
        Reading("encoder_utilization_ratio", 0.25),
        Reading("ecc_errors_total", 2.0, ("corrected", "volatile")),
        Reading("clock_hertz", 1.98e9, ("sm",)),
    ),
    tenants=(Tenant(container=LLAMA, workload=Workload(kind="Deployment", name="llama"), booking=BOOKING),),
    balance=Balance(busy_us=1_500_000),
)
PLACE = {"k8s.node.name": "worker-1", "hw.id": "GPU-1", "hw.name": "GPU 3"}
POD = {
    **PLACE,
    "k8s.namespace.name": "team-a",
    "k8s.pod.name": "llama-0",
    "k8s.pod.uid": "uid-1",
    "k8s.container.name": "server",
}


def node(*cards: Card) -> Snapshot:
    return Snapshot(node="worker-1", taken_at=1000.5, interval_seconds=5.0, version="1.2.3", cards=cards)


def request(
    snapshot: Snapshot, limit: int = 10**6, resource: Mapping[str, str] | None = None
) -> ExportMetricsServiceRequest:
    body = encode(snapshot, resource or {}, started_at=900.25, series_limit=limit)
    return ExportMetricsServiceRequest.FromString(body)


def points(*cards: Card) -> Points:
    return points_of(request(node(*cards)))


def key(name: str, facts: dict[str, str]) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(facts.items())


def test_a_cards_values_go_by_the_names_of_the_conventions() -> None:
    found = points(CARD)
    assert found[key("hw.gpu.memory.usage", PLACE)] == 6e9
    assert found[key("hw.energy", {**PLACE, "hw.type": "gpu"})] == 12.5
    assert found[key("hw.gpu.utilization", {**PLACE, "hw.gpu.task": "encoder"})] == 0.25
    assert found[key("hw.status", {**PLACE, "hw.type": "gpu", "hw.state": "ok"})] == 1.0
    ecc = {"hw.type": "gpu", "error.type": "ecc.corrected", "podgpu.lifetime": "volatile"}
    assert found[key("hw.errors", {**PLACE, **ecc})] == 2.0


def test_what_the_conventions_do_not_know_goes_by_its_own_name() -> None:
    assert points(CARD)[key("podgpu.gpu.clock", {**PLACE, "clock": "sm"})] == 1.98e9


def test_a_containers_values_name_its_pod_and_workload() -> None:
    found = points(CARD)
    facts = {**POD, "k8s.deployment.name": "llama"}
    assert found[key("podgpu.container.memory_used", facts)] == 5 << 30
    assert found[key("podgpu.container.sm_utilization", facts)] == 0.5
    assert found[key("podgpu.container.busy", facts)] == 1.5


def test_before_anything_is_booked_there_are_no_counters() -> None:
    """As on the page: a 0 would be taken for what was used so far."""
    names = {name for name, _ in points(replace(CARD, balance=None))}
    assert "podgpu.container.memory_used" in names
    assert not {"podgpu.container.busy", "podgpu.container.allocated"} & names


def test_a_workload_of_another_kind_is_named_with_its_kind() -> None:
    def facts(kind: str) -> dict[str, str]:
        tenant = Tenant(container=LLAMA, workload=Workload(kind=kind, name="w"), booking=BOOKING)
        found = points(replace(CARD, tenants=(tenant,)))
        (pairs,) = [pairs for name, pairs in found if name == "podgpu.container.busy"]
        return dict(pairs - POD.items())

    assert facts("RayJob") == {"podgpu.workload.kind": "RayJob", "podgpu.workload.name": "w"}
    assert facts("StatefulSet") == {"k8s.statefulset.name": "w"}
    assert facts("Pod") == {}


def test_two_pods_of_one_name_are_told_apart_by_their_uid() -> None:
    again = Tenant(container=ContainerRef("team-a", "llama-0", "server", "uid-2"), booking=Booking(busy_us=7))
    found = points(replace(CARD, tenants=(), ended=(*CARD.tenants, again)))
    busy = {dict(pairs)["k8s.pod.uid"]: value for (name, pairs), value in found.items() if name.endswith("r.busy")}
    assert busy == {"uid-1": 1.5, "uid-2": 7e-6}
    assert not any(name == "podgpu.container.memory_used" for name, _ in found)


def test_a_card_at_fault_has_its_status_claims_and_counters_alone() -> None:
    found = points(replace(CARD, fault=Fault(reason="lost"), readings=()))
    assert found[key("hw.status", {**PLACE, "hw.type": "gpu", "hw.state": "ok"})] == 0.0
    names = {name for name, _ in found}
    assert "podgpu.container.busy" in names
    assert not names & {"hw.gpu.memory.usage", "podgpu.container.memory_used", "podgpu.container.processes"}


def test_counters_are_cumulative_sums_with_a_start() -> None:
    metrics = metrics_of(request(node(CARD)))
    for name, monotonic in (
        ("hw.energy", True),
        ("podgpu.container.busy", True),
        ("hw.gpu.memory.usage", False),
    ):
        total = metrics[name].sum
        assert total.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        assert total.is_monotonic is monotonic
        assert {point.start_time_unix_nano for point in total.data_points} == {900_250_000_000}
    for metric in metrics.values():
        assert {point.time_unix_nano for point in data_points(metric)} == {1_000_500_000_000}
    assert metrics["hw.gpu.utilization"].HasField("gauge")


def test_units_are_those_of_the_conventions() -> None:
    metrics = metrics_of(request(node(CARD)))
    names = (
        "hw.energy",
        "hw.gpu.memory.usage",
        "hw.gpu.utilization",
        "hw.errors",
        "hw.status",
        "podgpu.gpu.clock",
    )
    assert [metrics[name].unit for name in names] == ["J", "By", "1", "{error}", "1", "Hz"]


def test_the_resource_says_whose_numbers_these_are() -> None:
    def resource(snapshot: Snapshot, given: Mapping[str, str] | None = None) -> dict[str, str]:
        return attributes(request(snapshot, resource=given).resource_metrics[0].resource.attributes)

    assert resource(node()) == {
        "service.name": "podgpu",
        "service.version": "1.2.3",
        "service.instance.id": "worker-1",
        "k8s.node.name": "worker-1",
    }
    assert resource(replace(node(), demo=True))["podgpu.demo"] == "true"
    given = resource(node(), {"service.name": "gpus", "k8s.cluster.name": "prod"})
    assert (given["service.name"], given["k8s.cluster.name"]) == ("gpus", "prod")


def test_nothing_of_a_hostile_node_is_lost_or_there_twice() -> None:
    pages = native.families(SNAPSHOT, {})
    sent = points_of(request(SNAPSHOT))
    merged = sum(len(family.samples) for family in pages if family.name.startswith("podgpu_container_"))
    own = sum(name.startswith("podgpu.container.") for name, _ in sent)
    assert own >= merged  # pods of one name are apart here
    assert len(sent) - own == count(pages) - merged
    energy = next(family for family in pages if family.name == "podgpu_gpu_energy_joules_total")
    found = [value for (name, _), value in sent.items() if name == "hw.energy"]
    assert sorted(found) == sorted(energy.samples.values())


def test_beyond_the_limit_the_least_important_go() -> None:
    assert len(points_of(request(SNAPSHOT, 100))) <= 100


def test_the_collectors_complaint_is_read() -> None:
    answer = ExportMetricsServiceResponse()
    assert rejection(answer.SerializeToString()) == ""
    assert rejection(b"OK\xff") == ""
    answer.partial_success.rejected_data_points = 3
    answer.partial_success.error_message = "too old"
    assert rejection(answer.SerializeToString()) == "3 series rejected: too old"
