"""The JSON of zxporter's gpu-exporter."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.config import Config
from podgpu.config.precedence import load
from podgpu.model import (
    UNKNOWN,
    Booking,
    Claim,
    ContainerRef,
    Device,
    Gpu,
    Instance,
    MigInstance,
    PartStatus,
    Process,
    Reading,
    Snapshot,
    Tenant,
    Workload,
)
from podgpu.option.value import Address
from podgpu.serve.pages import register_pages
from podgpu.sources.dcgm.options import DcgmOptions as DcgmSource
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from podgpu.views.dialects.container_json import DIALECT
from tests.conftest import Golden
from tests.serve.rig import StubNode, connected, serving
from tests.tree import card
from tests.views.dialects.rig import played, script
from tests.views.quirks import SNAPSHOT

DEFAULT = load({}, {}).of(DcgmPageOptions)
SPLIT = load({"dcgm_per_container": ["on"]}, {}).of(DcgmPageOptions)


def document(snapshot: Snapshot, options: DcgmPageOptions, query: Mapping[str, str]) -> bytes:
    return DIALECT.documents["/container/metrics"](snapshot, options)(query)


# As the README lists them.
TEXTS = [
    "node_name",
    "model_name",
    "device",
    "device_id",
    "device_uuid",
    "mig_profile",
    "mig_instance_id",
    "pod",
    "container",
    "namespace",
    "workload_name",
    "workload_kind",
]
OMITTED_IF_EMPTY = {"mig_profile", "mig_instance_id", "workload_name", "workload_kind"}

CARD = Gpu(uuid="GPU-0", index=0, model="NVIDIA H200")
CHAT = ContainerRef("team-a", "chat", "server", "uid-chat")
BATCH = ContainerRef("team-b", "batch", "main", "uid-batch")
ALL_OF_A_CARD = (
    Reading("sm_active_ratio", 0.5),
    Reading("sm_occupancy_ratio", 0.25),
    Reading("tensor_active_ratio", 0.125),
    Reading("dram_active_ratio", 0.0625),
    Reading("pcie_transmit_bytes_per_second", 1000.0),
    Reading("pcie_receive_bytes_per_second", 2000.0),
    Reading("nvlink_transmit_bytes_per_second", 3000.0),
    Reading("nvlink_receive_bytes_per_second", 4000.0),
    Reading("graphics_engine_active_ratio", 0.75),
    Reading("memory_total_bytes", 1000 * 2**20),
    Reading("memory_used_bytes", 600 * 2**20),
    Reading("memory_free_bytes", 400 * 2**20),
    Reading("pcie_link_generation", 5.0),
    Reading("pcie_link_width", 16.0),
    Reading("temperature_celsius", 50.0, ("gpu",)),
    Reading("temperature_celsius", 60.0, ("memory",)),
    Reading("power_watts", 300.5),
    Reading("utilization_ratio", 0.9),
    Reading("pipe_active_ratio", 0.1, ("integer",)),
    Reading("pipe_active_ratio", 0.2, ("fp16",)),
    Reading("pipe_active_ratio", 0.3, ("fp32",)),
    Reading("pipe_active_ratio", 0.4, ("fp64",)),
    Reading("clock_event", 0.0, ("idle",)),
    Reading("clock_event", 1.0, ("software_power_cap",)),
    Reading("clock_event", 1.0, ("hardware_thermal",)),
    Reading("xid_last_code", 31.0),
    Reading("throttle_seconds_total", 1.5, ("power",)),
    Reading("throttle_seconds_total", 0.5, ("thermal",)),
    Reading("clock_hertz", 1_980e6, ("sm",)),
    Reading("clock_hertz", 3_201e6, ("memory",)),
)
# The values it gives, as the README lists the fields.
VALUES = {
    "sm_active": 0.5,
    "sm_occupancy": 0.25,
    "tensor_active": 0.125,
    "dram_active": 0.0625,
    "pcie_tx_bytes": 1000.0,
    "pcie_rx_bytes": 2000.0,
    "nvlink_tx_bytes": 3000.0,
    "nvlink_rx_bytes": 4000.0,
    "graphics_engine_active": 0.75,
    "framebuffer_total": 1000.0,
    "framebuffer_used": 600.0,
    "framebuffer_free": 400.0,
    "pcie_link_gen": 5.0,
    "pcie_link_width": 16.0,
    "temperature": 50.0,
    "memory_temperature": 60.0,
    "power_usage": 300.5,
    "gpu_utilization": 90.0,
    "int_pipe_active": 0.1,
    "fp16_pipe_active": 0.2,
    "fp32_pipe_active": 0.3,
    "fp64_pipe_active": 0.4,
    "clocks_event_reasons": float(0x04 | 0x40),
    "xid_errors": 31.0,
    "power_violation": 1.5e9,
    "thermal_violation": 0.5e9,
    "sm_clock": 1980.0,
    "mem_clock": 3201.0,
}
NUMBERS = list(VALUES)


def rows(
    snapshot: Snapshot = SNAPSHOT, query: Mapping[str, str] | None = None, config: DcgmPageOptions = DEFAULT
) -> list[dict[str, Any]]:
    found = json.loads(document(snapshot, config, query or {}))
    assert isinstance(found, list)
    return found


def node(*tenants: Tenant, readings: tuple[Reading, ...] = ALL_OF_A_CARD) -> Snapshot:
    return Snapshot(
        node="n",
        taken_at=1_760_000_000.25,
        interval_seconds=5.0,
        version="t",
        cards=(card(Device(gpu=CARD, readings=readings), tenants=tenants),),
    )


def held(container: ContainerRef, share: float = 1.0, booking: Booking | None = None) -> Tenant:
    return Tenant(
        container=container,
        workload=Workload(kind="Deployment", name="chat") if container == CHAT else None,
        claims=(Claim(gpu=CARD.uuid, container=container, share=share),),
        booking=booking or Booking(),
    )


BUSY = Booking(processes=1, memory_bytes=500 * 2**20, sm_ratio=0.7, power_watts=200.0)
ON_CHAT, ON_BATCH = held(CHAT, 0.5, BUSY), held(BATCH, 0.5, Booking(power_watts=40.0))
SHARED = node(ON_CHAT, ON_BATCH)


@pytest.mark.parametrize(("name", "query"), [("default", {}), ("missing-null", {"missing": "null"})])
def test_the_document(name: str, query: dict[str, str], golden: Golden) -> None:
    golden(f"dialects/container-json/{name}.json", document(SNAPSHOT, DEFAULT, query))


async def test_the_document_of_a_node_with_mig(tmp_path: Path, golden: Golden) -> None:
    snapshot = await played(script("mig"), tmp_path)
    golden("dialects/container-json/mig.json", document(snapshot, DEFAULT, {"missing": "null"}))


def test_a_row_has_all_fields_in_the_order_of_the_readme() -> None:
    (row,) = rows(node(held(CHAT)))
    plain = [name for name in TEXTS if not name.startswith("mig_")]
    assert list(row) == [*plain, *NUMBERS, "timestamp"]
    whole = next(row for row in rows() if "mig_profile" in row)
    assert list(whole) == [*TEXTS, *NUMBERS, "timestamp"]


def test_an_instance_whose_number_is_not_known_has_none() -> None:
    """So it is with MIG devices that dcgm-exporter's page names by their UUID alone."""
    mig = MigInstance(uuid="MIG-1", gpu_instance_id=UNKNOWN, compute_instance_id=UNKNOWN, profile="1g.18gb")
    whole = node().cards[0]
    instance = Instance(mig=mig, readings=(Reading("memory_used_bytes", 2.0**30),))
    (row,) = rows(replace(node(), cards=(replace(whole, instances=(instance,)),)))
    assert row["mig_profile"] == "1g.18gb"
    assert "mig_instance_id" not in row


def test_every_value_is_there_in_its_unit() -> None:
    (row,) = rows(node(held(CHAT)))
    assert {name: row[name] for name in NUMBERS} == VALUES
    assert {name: row[name] for name in ("node_name", "model_name", "device", "device_id", "device_uuid")} == {
        "node_name": "n",
        "model_name": "NVIDIA H200",
        "device": "nvidia0",
        "device_id": "0",
        "device_uuid": "GPU-0",
    }
    assert (row["workload_kind"], row["workload_name"]) == ("Deployment", "chat")


def test_the_time_is_that_of_the_reading() -> None:
    (row,) = rows(node())
    assert row["timestamp"].endswith("Z")
    assert datetime.fromisoformat(row["timestamp"]).timestamp() == 1_760_000_000.25


def test_a_card_without_a_pod_has_a_row_without_one() -> None:
    (row,) = rows(node())
    assert (row["pod"], row["container"], row["namespace"]) == ("", "", "")
    assert not OMITTED_IF_EMPTY & row.keys()


def test_missing_values_are_0_or_null_as_the_query_asks() -> None:
    snapshot = node(readings=(Reading("power_watts", 5.0), Reading("utilization_ratio", float("nan"))))
    for query, missing in (({}, 0.0), ({"missing": "null"}, None), ({"missing": "zero"}, 0.0)):
        (row,) = rows(snapshot, query)
        assert {row[name] for name in NUMBERS if name != "power_usage"} == {missing}
        assert row["power_usage"] == 5.0


def test_without_data_the_array_is_empty() -> None:
    assert document(replace(SNAPSHOT, cards=()), DEFAULT, {}) == b"[]\n"
    assert document(SNAPSHOT, DEFAULT, {"pod": "nobody"}) == b"[]\n"
    assert rows(node(held(CHAT), readings=())) == []


@pytest.mark.parametrize(
    ("query", "pods"),
    [
        ({"pod": "chat"}, ["chat"]),
        ({"pod": "cha"}, []),
        ({"pod": "Chat"}, []),
        ({"namespace": "team-b"}, ["batch"]),
        ({"container": "server", "namespace": "team-b"}, []),
        ({"container": "server", "namespace": "team-a"}, ["chat"]),
        ({"node": "n"}, ["chat", "batch"]),
        ({"node": "m"}, []),
        ({"pod": "", "colour": "red"}, ["chat", "batch"]),
    ],
)
def test_filters_are_exact_and_all_must_match(query: dict[str, str], pods: list[str]) -> None:
    assert [row["pod"] for row in rows(SHARED, query)] == pods


def test_a_shared_card_has_a_row_for_each_container_with_the_values_of_the_card() -> None:
    chat, batch = rows(SHARED)
    assert (chat["pod"], batch["pod"]) == ("chat", "batch")
    assert [chat[name] for name in NUMBERS] == [batch[name] for name in NUMBERS] == list(VALUES.values())


def test_each_container_has_its_own_values_by_option() -> None:
    chat, batch = rows(SHARED, {"missing": "null"}, SPLIT)
    split = ("gpu_utilization", "framebuffer_used", "power_usage", "graphics_engine_active")
    assert [chat[name] for name in split] == [70.0, 500.0, 200.0, 0.7]
    assert [batch[name] for name in split] == [None, None, 40.0, None]
    others = [name for name in NUMBERS if name not in split]
    assert [chat[name] for name in others] == [batch[name] for name in others]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 1e308])
def test_a_value_that_is_not_a_number_is_missing(wrong: float) -> None:
    broken = node(replace(ON_CHAT, booking=replace(BUSY, sm_ratio=wrong)), ON_BATCH)
    assert [row["gpu_utilization"] for row in rows(broken, {"missing": "null"}, SPLIT)] == [None, None]
    absurd = node(ON_CHAT, ON_BATCH, readings=(Reading("utilization_ratio", wrong),))
    assert rows(absurd) == []


def test_a_container_alone_on_a_card_has_the_cards_values() -> None:
    (row,) = rows(node(ON_CHAT), config=SPLIT)
    assert row["framebuffer_used"] == 600.0


def test_a_container_that_uses_a_card_it_was_not_given_has_a_row() -> None:
    unclaimed = node(replace(ON_CHAT, claims=()), replace(ON_BATCH, claims=()))
    assert [row["pod"] for row in rows(unclaimed)] == ["chat", "batch"]


def test_ended_containers_and_those_outside_kubernetes_have_no_row() -> None:
    process = Process(pid=1, kinds=("compute",))
    outside = Tenant(container=ContainerRef("", "", "docker/web"), processes=(process,), idle=False)
    ended = Tenant(container=CHAT, booking=BUSY)
    left = card(Device(gpu=CARD, readings=ALL_OF_A_CARD), tenants=[outside], ended=[ended])
    (row,) = rows(replace(node(), cards=(left,)))
    assert (row["pod"], row["container"]) == ("", "")


async def test_instances_share_the_uuid_of_their_card_and_report_no_utilization(tmp_path: Path) -> None:
    found = rows(await played(script("mig"), tmp_path), {"missing": "null"})
    assert len({row["device_uuid"] for row in found}) == 2
    assert len({(row["device_uuid"], row["mig_instance_id"]) for row in found}) == 7
    assert {row["gpu_utilization"] for row in found} == {None}
    assert [row["pod"] for row in found if row["mig_instance_id"] == "8"] == ["left", "right"]


async def test_it_is_served_at_its_path_and_on_a_port_of_its_own() -> None:
    place = Address("127.0.0.1", 0, "container-json")
    documents = register_pages(Config().of).documents
    async with serving(StubNode(), place, documents=documents) as server, connected(server) as client:
        for path in ("/container/metrics?node=worker-1", "/metrics"):
            answer = await client.get(path)
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
            assert [row["power_usage"] for row in json.loads(answer.body)] == [72.5]
        client.ask("/container/metrics", "POST")
        refused = await client.answer()
        assert (refused.status, refused.text) == (405, "method not allowed\n")


@pytest.mark.parametrize(
    ("parts", "cards", "status", "body"),
    [
        ((PartStatus(name="nvml", up=False),), False, 500, "internal server error\n"),
        ((PartStatus(name="dcgm", up=False),), False, 500, "internal server error\n"),
        ((PartStatus(name="nvml", up=True), PartStatus(name="podresources", up=False)), False, 200, "[]\n"),
        ((), False, 200, "[]\n"),
        ((PartStatus(name="nvml", up=False),), True, 200, None),
    ],
)
async def test_what_cannot_be_read_at_all_is_an_error_as_in_zxporter(
    parts: tuple[PartStatus, ...], cards: bool, status: int, body: str | None
) -> None:
    stub = StubNode()
    stub.current = replace(stub.current, parts=parts, cards=stub.current.cards if cards else ())
    async with (
        serving(stub, documents=register_pages(Config().of).documents) as server,
        connected(server) as client,
    ):
        answer = await client.get("/container/metrics")
        assert answer.status == status
        assert body is None or answer.text == body


def test_the_variables_of_zxporter_are_understood(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.touch()
    given = {
        "NODE_NAME": "n1",
        "KUBE_CONFIG_PATH": str(kubeconfig),
        "DCGM_LABELS": "app=exporter",
        "DCGM_METRICS_ENDPOINT": "/gpu",
        "GPU_REFRESH_INTERVAL_SECONDS": "10",
    }
    config = load({}, given)
    source = config.of(DcgmSource)
    assert (config.node_name, config.kube_kubeconfig) == ("n1", kubeconfig)
    assert (source.selector, source.path, config.interval) == ("app=exporter", "/gpu", 10.0)


words = st.text(max_size=300)


@given(model=words, pod=words, query=st.dictionaries(st.sampled_from(["pod", "node", "missing", "x"]), words))
def test_no_name_and_no_query_breaks_the_document(model: str, pod: str, query: dict[str, str]) -> None:
    container = ContainerRef(pod, pod, pod, pod)
    device = Device(gpu=Gpu(uuid=model, index=0, model=model), readings=ALL_OF_A_CARD)
    tenant = Tenant(
        container=container,
        workload=Workload(kind=pod, name=pod),
        claims=(Claim(gpu=model, container=container),),
    )
    snapshot = replace(node(), node=model, cards=(card(device, tenants=[tenant]),))
    assert len(rows(snapshot, query)) <= 1
    assert len(rows(snapshot)) == 1
