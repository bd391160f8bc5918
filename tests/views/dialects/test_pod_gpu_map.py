import re
from pathlib import Path

from hypothesis import given
from msgspec.structs import replace

from podgpu.config.precedence import load
from podgpu.model import (
    Booking,
    Claim,
    ContainerRef,
    Device,
    Gpu,
    Instance,
    MigInstance,
    Process,
    Snapshot,
    Tenant,
)
from podgpu.views.dialects.pod_gpu_map import (
    DIALECT,
    MapRow,
    PodGpuMapOptions,
    deprecated_families,
    map_family,
    metric_name,
    node_families,
    rows,
)
from podgpu.views.series import Family
from tests.conftest import GOLDEN, Golden
from tests.tree import card
from tests.views.dialects.rig import NODES, check_series, complaints, joined, played, script, text
from tests.views.quirks import SNAPSHOT, STUCK

DEFAULT = load({}, {}).of(PodGpuMapOptions)
DEPRECATED = load({"dialect_pod_gpu_map_deprecated": ["on"]}, {}).of(PodGpuMapOptions)

CARD = "GPU-40f717b2-01dc-1a31-6b17-d487ffe7cb61"
OTHER = "GPU-40f717b2-01dc-1a31-6b17-d487ffe7cb91"


def page(snapshot: Snapshot = SNAPSHOT, path: str = "/metrics/pod-gpu-map") -> list[Family]:
    return list(DIALECT.pages[path](snapshot, DEFAULT))


def readme(name: str) -> list[str]:
    return (GOLDEN / "dialects/pod-gpu-map" / name).read_text().splitlines()


def readme_rows(lines: list[str]) -> list[MapRow]:
    """The rows of its README, including those that occur twice."""
    return [MapRow(*re.findall('"([^"]*)"', line)) for line in lines if "{" in line]


MODELS = {CARD: "4080ti", OTHER: "2080ti"}
DEVICES = tuple(
    Device(gpu=Gpu(uuid=uuid, index=index, model=model)) for index, (uuid, model) in enumerate(MODELS.items())
)


def held(uuid: str, pod: str, container: str = "main", uid: str = "1", mig: str = "") -> Claim:
    return Claim(gpu=uuid, container=ContainerRef("default", pod, container, uid), mig=mig)


def node(*claims: Claim, name: str = "ti", devices: tuple[Device, ...] = DEVICES) -> Snapshot:
    return Snapshot(
        node=name,
        taken_at=0.0,
        interval_seconds=5.0,
        version="test",
        cards=tuple(joined(device, claims) for device in devices),
    )


def using(pod: ContainerRef) -> Tenant:
    processes = (Process(pid=1, kinds=("compute",)),)
    return Tenant(container=pod, processes=processes, booking=Booking(processes=1), idle=False)


def test_the_page(golden: Golden) -> None:
    golden("dialects/pod-gpu-map/default.txt", text(DIALECT.pages["/metrics/pod-gpu-map"](SNAPSHOT, DEFAULT)))


def test_the_page_with_its_deprecated_names(golden: Golden) -> None:
    golden(
        "dialects/pod-gpu-map/deprecated.txt",
        text(DIALECT.pages["/metrics/pod-gpu-map"](SNAPSHOT, DEPRECATED)),
    )


def test_the_page_of_nodes(golden: Golden) -> None:
    golden("dialects/pod-gpu-map/nodes.txt", text(page(path="/metrics/nodes")))


def test_the_map_of_the_readme_without_its_duplicates() -> None:
    lines = readme("readme-map.txt")
    assert text([map_family(readme_rows(lines))]).splitlines() == list(dict.fromkeys(lines))


def test_the_nodes_of_the_readme_without_their_duplicates() -> None:
    lines = readme("readme-nodes.txt")
    assert text(node_families(readme_rows(lines))).splitlines() == list(dict.fromkeys(lines))


def test_the_deprecated_names_of_the_readme_without_duplicates() -> None:
    lines = readme("readme-deprecated.txt")
    mapped = readme_rows(lines)
    families = deprecated_families(mapped, DEPRECATED)
    assert text(families).splitlines()[:6] == lines[:6]
    assert [family.name for family in families] == [f"POD_GPU_MAP_INFO_{n}" for n in range(len(set(mapped)))]


def test_a_node_as_in_the_readme_gives_its_lines() -> None:
    lines = readme("readme-map.txt")
    assert text(page(node(held(CARD, "test"), held(OTHER, "test3")))).splitlines() == [
        *lines[:3],
        lines[-1],
    ]


def test_two_containers_of_a_pod_are_one_row() -> None:
    assert len(rows(node(held(CARD, "a", "x"), held(CARD, "a", "y"), held(CARD, "a", "y", uid="2")))) == 1


def test_a_pod_with_two_cards_has_two_rows() -> None:
    assert [row.gpu_id for row in rows(node(held(OTHER, "a"), held(CARD, "a")))] == [CARD, OTHER]


def test_a_pod_that_uses_what_it_was_not_given_has_a_row() -> None:
    thief = using(ContainerRef("default", "thief", "main", "9"))
    used = replace(node(), cards=(card(DEVICES[0], tenants=[thief]),))
    assert [row.pod_name for row in rows(used)] == ["thief"]


def test_a_pod_that_neither_holds_nor_uses_a_card_has_no_row() -> None:
    left = replace(using(ContainerRef("default", "left", "main", "9")), processes=(Process(pid=1),))
    assert rows(replace(node(), cards=(card(DEVICES[0], tenants=[left]),))) == []


def test_an_ended_pod_has_no_row() -> None:
    ended = Tenant(container=ContainerRef("default", "done", "main", "9"))
    assert rows(replace(node(), cards=(card(DEVICES[0], ended=[ended]),))) == []


def test_a_container_outside_kubernetes_has_no_row() -> None:
    outside = using(ContainerRef("", "", "docker/web"))
    assert rows(replace(node(), cards=(card(DEVICES[0], tenants=[outside]),))) == []


def test_a_slice_is_named_by_its_own_uuid() -> None:
    mig = MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0)
    split = replace(DEVICES[0], instances=(Instance(mig=mig),))
    (row,) = rows(node(held(CARD, "a", mig="MIG-1"), devices=(split,)))
    assert (row.gpu_id, row.gpu_model) == ("MIG-1", "4080ti")


def test_a_card_that_is_down_is_still_held() -> None:
    stuck = Device(gpu=STUCK.gpu, fault=STUCK.fault)
    assert len(rows(node(held(STUCK.gpu.uuid, "a"), devices=(stuck,)))) == 1


def test_without_gpu_pods_the_pages_are_empty() -> None:
    assert [text(view(node(), DEPRECATED)) for view in DIALECT.pages.values()] == ["", ""]


def test_a_node_makes_a_legal_name() -> None:
    assert metric_name("gpu-node.1") == "gpu_node_1_info"
    assert metric_name("1node") == "_1node_info"
    assert metric_name("") == "__info"
    assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", metric_name("ü\n\ud800"))


def test_nodes_with_similar_names_share_a_family() -> None:
    mapped = [*rows(node(held(CARD, "a"), name="a-1")), *rows(node(held(CARD, "a"), name="a.1"))]
    (family,) = node_families(mapped)
    assert len(family.samples) == 2


async def test_pods_on_one_slice_share_its_uuid(tmp_path: Path) -> None:
    devices = {row.pod_name: row.gpu_id for row in rows(await played(script("mig"), tmp_path))}
    assert devices["left"] == devices["right"] == "MIG-00000000-0000-5000-8000-000000000003"
    assert len(set(devices.values())) == len(devices) - 1


def test_promtool_has_no_complaints() -> None:
    assert complaints(page()) == set()
    assert complaints(page(path="/metrics/nodes")) == set()


@given(NODES)
def test_no_snapshot_gives_a_series_twice(snapshot: Snapshot) -> None:
    check_series(DIALECT.pages["/metrics/pod-gpu-map"](snapshot, DEPRECATED))
    check_series(DIALECT.pages["/metrics/nodes"](snapshot, DEFAULT))
