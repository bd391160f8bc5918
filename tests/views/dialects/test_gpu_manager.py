from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from podgpu.model import (
    SEES_ALL,
    Booking,
    Card,
    Claim,
    ContainerRef,
    Device,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    Pod,
    PodContainer,
    Process,
    Reading,
    Snapshot,
    Tenant,
)
from podgpu.views.dialects.gpu_manager import DIALECT, families, usage
from podgpu.views.series import Labels
from tests.conftest import Golden
from tests.tree import card
from tests.views.dialects.rig import (
    NODES,
    block,
    check_series,
    complaints,
    joined,
    played,
    script,
    text,
    values,
)
from tests.views.quirks import SNAPSHOT

MIB, GIB = 2**20, 2**30
CARDS = ("GPU-0", "GPU-1")
WORK = ContainerRef("ml", "train", "work", "u1")

UTILIZATION, MEMORY = "container_gpu_utilization", "container_gpu_memory_total"
REQUESTED_CARDS, REQUESTED_MIB = "container_request_gpu_utilization", "container_request_gpu_memory"


def device(index: int = 0, **facts: object) -> Device:
    plain = Device(
        gpu=Gpu(uuid=CARDS[index], index=index, multiprocessors=100, pci_bus_id=f"0000:0{index}:00.0"),
        readings=(Reading("memory_total_bytes", 80 * GIB),),
    )
    return replace(plain, **facts)


def node(*cards: Card, limits: dict[str, str] | None = None, **facts: object) -> Snapshot:
    """The container of the pod requests the limits."""
    containers = (PodContainer(name="work", limits=limits or {}), PodContainer(name="log"))
    plain = Snapshot(
        node="n",
        taken_at=0.0,
        interval_seconds=5.0,
        version="test",
        cards=cards,
        pods=(Pod(namespace="ml", name="train", uid="u1", phase="Running", containers=containers),),
    )
    return replace(plain, **facts)


def booked(
    index: int = 0,
    *,
    sm: float | None = 0.5,
    mib: int | None = 100,
    instance: float | None = None,
    **facts: object,
) -> Tenant:
    """The container holds the card and uses it."""
    booking = Booking(
        processes=1,
        memory_bytes=None if mib is None else mib * MIB,
        sm_ratio=sm,
        instance_ratio=instance,
    )
    plain = Tenant(
        container=WORK,
        claims=(Claim(gpu=CARDS[index], container=WORK),),
        processes=(Process(pid=42, kinds=("compute",)),),
        booking=booking,
        idle=False,
    )
    return replace(plain, **facts)


def used(index: int = 0, **facts: Any) -> Card:
    return card(device(index), tenants=[booked(index, **facts)])


def series(snapshot: Snapshot, name: str, key: str, container: str = "work") -> dict[str, float]:
    """The values of a container, by the label in which they differ."""
    page = values(families(snapshot, None), name)
    found: dict[str, float] = {}
    for which in ("gpu0", "gpu1", *CARDS, "total"):
        pairs = {"container_name": container, "namespace": "ml", "node": "n", "pod_name": "train", key: which}
        labels = block(Labels.by_name(pairs))
        if labels in page:
            found[which] = page[labels]
    return found


def test_the_page(golden: Golden) -> None:
    golden("dialects/gpu-manager/quirks.txt", text(families(SNAPSHOT, None)))


async def test_a_node_of_gpu_manager(golden: Golden, tmp_path: Path) -> None:
    story = script("gpu-manager")
    limits = {"small": ("main", "20", "8"), "large": ("work", "50", "32"), "whole": ("main", "100", "0")}
    for pod in story.pods:
        if wanted := limits.get(pod.name.partition("/")[2]):
            container, cores, blocks = wanted
            pod.limits = {container: {"tencent.com/vcuda-core": cores, "tencent.com/vcuda-memory": blocks}}
    for gpu in story.gpus:
        gpu.memory_total = 80 * GIB
    snapshot = await played(story, tmp_path)
    golden("dialects/gpu-manager/node.txt", text(families(snapshot, None)))
    golden("dialects/gpu-manager/usage.json", msgspec.json.format(usage(snapshot, None)({}), indent=1))


@pytest.mark.parametrize(("cores", "cards"), [("50", 0.5), ("200", 2.0)])
def test_requested_cores_are_shown_in_cards(cores: str, cards: float) -> None:
    snapshot = node(used(), limits={"tencent.com/vcuda-core": cores})
    assert series(snapshot, REQUESTED_CARDS, "req_of_gpu") == {"total": cards}


@pytest.mark.parametrize(("blocks", "mib"), [("30", 7680), ("40", 10240)])
def test_memory_is_requested_in_blocks_of_256_mib(blocks: str, mib: int) -> None:
    snapshot = node(used(), limits={"tencent.com/vcuda-core": "50", "tencent.com/vcuda-memory": blocks})
    assert series(snapshot, REQUESTED_MIB, "req_of_gpu_memory") == {"total": mib}


def test_a_container_that_requests_no_memory_may_use_all_of_its_cards() -> None:
    snapshot = node(used(0), used(1), limits={"tencent.com/vcuda-core": "200"})
    assert series(snapshot, REQUESTED_MIB, "req_of_gpu_memory") == {"total": 2 * 80 * 1024}


def test_the_other_containers_of_a_pod_with_cores_request_none() -> None:
    snapshot = node(used(), limits={"tencent.com/vcuda-core": "50"})
    assert series(snapshot, REQUESTED_CARDS, "req_of_gpu", "log") == {"total": 0.0}
    assert series(snapshot, REQUESTED_MIB, "req_of_gpu_memory", "log") == {"total": 0.0}
    assert series(snapshot, UTILIZATION, "gpu", "log") == {}


def test_a_container_with_another_resource_requests_no_cores_either() -> None:
    pod = node(limits={"tencent.com/vcuda-core": "50"}).pods[0]
    sidecar = PodContainer(name="log", limits={"rdma/hca": "1"})
    snapshot = node(used(), pods=(replace(pod, containers=(pod.containers[0], sidecar)),))
    assert series(snapshot, REQUESTED_CARDS, "req_of_gpu", "log") == {"total": 0.0}
    assert series(snapshot, REQUESTED_MIB, "req_of_gpu_memory", "log") == {"total": 0.0}


def test_the_requested_memory_is_unknown_while_the_card_is() -> None:
    snapshot = node(limits={"tencent.com/vcuda-core": "50"})
    assert series(snapshot, REQUESTED_CARDS, "req_of_gpu") == {"total": 0.5}
    assert series(snapshot, REQUESTED_MIB, "req_of_gpu_memory") == {}


@pytest.mark.parametrize("limits", [{}, {"nvidia.com/gpu": "1"}])
def test_another_container_of_a_pod_with_cores_may_have_a_card_of_another_system(
    limits: dict[str, str],
) -> None:
    cores = PodContainer(name="log", limits={"tencent.com/vcuda-core": "50"})
    other = PodContainer(name="work", limits=limits)
    pod = replace(node().pods[0], containers=(cores, other))
    assert series(node(used(), pods=(pod,)), REQUESTED_CARDS, "req_of_gpu") == {"total": 1.0}


@pytest.mark.parametrize("text", ["", "-1", "1e9", "9" * 40, "½"])
def test_a_request_that_cannot_be_read_is_left_out(text: str) -> None:
    limits = {"tencent.com/vcuda-core": text, "tencent.com/vcuda-memory": text}
    snapshot = node(used(), limits=limits)
    assert series(snapshot, REQUESTED_CARDS, "req_of_gpu") == {}
    assert series(snapshot, REQUESTED_MIB, "req_of_gpu_memory") == {}


def test_what_another_system_gave_is_the_request() -> None:
    claim = Claim(gpu=CARDS[0], container=WORK, share=0.25, memory_limit_bytes=GIB)
    snapshot = node(used(claims=(claim,)))
    assert series(snapshot, REQUESTED_CARDS, "req_of_gpu") == {"total": 0.25}
    assert series(snapshot, REQUESTED_MIB, "req_of_gpu_memory") == {"total": 1024}


def test_an_unknown_share_is_no_request() -> None:
    unknown = Claim(gpu=CARDS[1], container=WORK, share=0.0)
    assert series(node(used(0), used(1, claims=(unknown,))), REQUESTED_CARDS, "req_of_gpu") == {}


def test_the_request_of_a_container_that_was_given_nothing_is_unknown() -> None:
    snapshot = node(used(claims=()))
    assert series(snapshot, REQUESTED_CARDS, "req_of_gpu") == {}
    assert series(snapshot, MEMORY, "gpu_memory") == {"gpu0": 100, "total": 100}


def test_use_is_shown_by_card_and_in_total() -> None:
    snapshot = node(used(0, sm=0.5), used(1, sm=0.75))
    assert series(snapshot, UTILIZATION, "gpu") == {"gpu0": 50, "gpu1": 75, "total": 125}
    assert series(snapshot, MEMORY, "gpu_memory") == {"gpu0": 100, "gpu1": 100, "total": 200}


def test_a_total_with_an_unknown_part_is_left_out() -> None:
    snapshot = node(used(0), used(1, sm=None, mib=None))
    assert series(snapshot, UTILIZATION, "gpu") == {"gpu0": 50}
    assert series(snapshot, MEMORY, "gpu_memory") == {"gpu0": 100}


HELD = Claim(gpu=CARDS[0], container=WORK)
STRAY = device(processes=(Process(pid=7, kinds=("compute",)),))


def test_a_holder_that_certainly_has_no_process_uses_nothing() -> None:
    snapshot = node(joined(device(), [HELD]))
    assert series(snapshot, UTILIZATION, "gpu") == {"gpu0": 0, "total": 0}
    assert series(snapshot, MEMORY, "gpu_memory") == {"gpu0": 0, "total": 0}


@pytest.mark.parametrize(
    "silent",
    [
        joined(device(), [HELD], knows_owners=False),
        joined(device(ability=replace(SEES_ALL, sees_all=False)), [HELD]),
        joined(STRAY, [HELD]),
        joined(STRAY, [HELD], [Holder(pid=7, kind="unknown", reason="hidden")]),
    ],
)
def test_a_holder_that_may_have_a_process_is_not_taken_for_idle(silent: Card) -> None:
    snapshot = node(silent)
    assert series(snapshot, UTILIZATION, "gpu") == series(snapshot, MEMORY, "gpu_memory") == {}
    assert series(snapshot, REQUESTED_CARDS, "req_of_gpu") == {"total": 1}


def test_a_holder_is_idle_beside_a_process_that_is_gone() -> None:
    gone = Holder(pid=7, kind="unknown", reason="exited")
    snapshot = node(joined(STRAY, [HELD], [gone]))
    assert series(snapshot, UTILIZATION, "gpu") == {"gpu0": 0, "total": 0}


def test_two_cards_with_the_same_index_are_not_added_up() -> None:
    """They come from two pages, each of which counts its cards from 0."""
    twin = used(1, sm=0.75)
    snapshot = node(used(0, sm=0.5), replace(twin, gpu=replace(twin.gpu, index=0)))
    assert series(snapshot, UTILIZATION, "gpu") == {"GPU-0": 50, "GPU-1": 75, "total": 125}
    assert series(snapshot, MEMORY, "gpu_memory") == {"GPU-0": 100, "GPU-1": 100, "total": 200}


def test_the_activity_of_a_compute_instance_is_that_of_its_gpu_instance() -> None:
    halves = tuple(
        Instance(
            mig=MigInstance(uuid=f"MIG-{number}", gpu_instance_id=1, compute_instance_id=number, multiprocessors=20)
        )
        for number in range(2)
    )
    snapshot = node(card(device(instances=halves), tenants=[booked(instance=0.25, mig="MIG-0")]))
    assert series(snapshot, UTILIZATION, "gpu") == {"gpu0": 10, "total": 10}


def test_a_ratio_that_is_not_a_number_is_left_out() -> None:
    snapshot = node(used(sm=float("nan")))
    assert series(snapshot, UTILIZATION, "gpu") == {}
    assert msgspec.json.decode(usage(snapshot, None)({}))


def test_use_of_a_slice_is_shown_as_part_of_the_card() -> None:
    mig = MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0, multiprocessors=25)
    instance = Instance(mig=mig, readings=(Reading("memory_total_bytes", 20 * GIB),))
    snapshot = node(card(device(instances=(instance,)), tenants=[booked(instance=0.8, mig="MIG-1")]))
    assert series(snapshot, UTILIZATION, "gpu") == {"gpu0": 20, "total": 20}
    assert series(snapshot, REQUESTED_CARDS, "req_of_gpu") == {"total": 0.25}
    assert series(snapshot, REQUESTED_MIB, "req_of_gpu_memory") == {"total": 20 * 1024}


def test_a_recreated_pod_is_added_to_the_former_one_of_its_name() -> None:
    former = booked(container=replace(WORK, pod_uid="u0"))
    both = card(device(), tenants=[former, booked()])
    assert series(node(both), MEMORY, "gpu_memory") == {"gpu0": 200, "total": 200}


def test_usage_is_by_pod_uid_and_leaves_out_unknown_values() -> None:
    snapshot = node(used(sm=None))
    assert msgspec.json.decode(usage(snapshot, None)({})) == {
        "usage": {
            "u1": {
                "stat": {
                    "work": {
                        "dev": [
                            {
                                "id": "0000:00:00.0",
                                "card_idx": "0",
                                "mem": 100,
                                "pids": [42],
                                "device_mem": 80 * 1024,
                            }
                        ]
                    }
                },
                "project": "ml",
                "spec": {"work": {"gpu": 1.0, "mem": 80 * 1024}},
            }
        }
    }


def test_without_pods_the_pages_are_empty() -> None:
    empty = replace(node(), pods=())
    assert text(families(empty, None)) == ""
    assert usage(empty, None)({}) == b'{"usage":{}}'


def test_both_paths_lead_to_the_page() -> None:
    assert set(DIALECT.pages) == {"/metric", "/metrics/gpu-manager"}


def test_promtool_complains_about_inherited_names_only() -> None:
    assert complaints(families(SNAPSHOT, None)) <= {MEMORY}


@given(NODES)
def test_no_snapshot_gives_a_series_twice(snapshot: Snapshot) -> None:
    check_series(families(snapshot, None))
    msgspec.json.decode(usage(snapshot, None)({}))


@pytest.mark.parametrize(
    ("cores", "cards"),
    [("1k", 10), ("1Ki", 10.24), ("1e3", 10), ("1E+3", 10), ("1500m", 0.02), ("+50", 0.5), ("0.05k", 0.5)],
)
def test_a_request_is_a_quantity_as_kubernetes_writes_it(cores: str, cards: float) -> None:
    """What is left over counts as one more, as with every extended resource."""
    snapshot = node(used(), limits={"tencent.com/vcuda-core": cores, "tencent.com/vcuda-memory": "1k"})
    assert series(snapshot, REQUESTED_CARDS, "req_of_gpu") == {"total": cards}
    assert series(snapshot, REQUESTED_MIB, "req_of_gpu_memory") == {"total": 256_000}


def test_the_page_of_requests_in_every_spelling(golden: Golden) -> None:
    spellings = {
        "plain": ("50", "8"), "decimal": ("0.5k", "1k"), "binary": ("1Ki", "2Ki"), "exponent": ("1e3", "1E+3"),
        "milli": ("1500m", "500m"), "signed": ("+50", "+8"), "nonsense": ("many", "8"),
    }  # fmt: skip
    pods = tuple(
        Pod(
            namespace="ml",
            name=name,
            uid=name,
            phase="Running",
            containers=(
                PodContainer(name="work", limits={"tencent.com/vcuda-core": cores, "tencent.com/vcuda-memory": blocks}),
            ),
        )
        for name, (cores, blocks) in spellings.items()
    )
    golden("dialects/gpu-manager/quantities.txt", text(families(replace(node(), pods=pods), None)))


def test_usage_names_the_user_and_the_cluster() -> None:
    snapshot = node(used())
    named = replace(snapshot, pods=(replace(snapshot.pods[0], submitter="ada", cluster="east"),))
    pod = msgspec.json.decode(usage(named, None)({}))["usage"]["u1"]
    assert (pod["user"], pod["cluster"]) == ("ada", "east")
