"""Every way to share GPUs, on a Kubernetes whose pods do not show their device ids: notes and counts have to do."""

from typing import Any

import pytest
from msgspec.structs import replace

from podgpu.cluster.allocations import allocate
from podgpu.model import (
    Card,
    ClaimUse,
    ClusterNode,
    KubeNode,
    KubeObjects,
    PendingPod,
    Pod,
    PodContainer,
    ResourceClaim,
    Waiting,
)

GIB, MIB = 1 << 30, 1 << 20
A, B = (f"GPU-0000000{n}-52d4-4b8e-9c60-1a2b3c4d5e60" for n in "ab")


def offering(resources: dict[str, int], **facts: Any) -> KubeNode:
    texts = {name: str(count) for name, count in resources.items()}
    return KubeNode(name="n", capacity=texts, allocatable=texts, **facts)


def pod(name: str, limits: dict[str, int], namespace: str = "team", **facts: Any) -> Pod:
    asked = {resource: str(count) for resource, count in limits.items()}
    return Pod(
        namespace=namespace,
        name=name,
        uid=f"uid-{name}",
        phase="Running",
        node=facts.pop("node", "n"),
        containers=(PodContainer(name="app", running=True, limits=asked),),
        **facts,
    )


def found(node: KubeNode, *pods: Pod) -> ClusterNode:
    return allocate(KubeObjects(at=1.0, nodes=(node,), pods=pods)).nodes["n"]


def cards(node: ClusterNode) -> tuple[Card, ...]:
    assert node.snapshot is not None
    return node.snapshot.cards


def holders(node: ClusterNode) -> dict[str, list[tuple[str | int, float, int | None]]]:
    """Each pod's cards, by UUID or number, with its share and its limit of memory."""
    seen: dict[str, list[tuple[str | int, float, int | None]]] = {}
    for card in cards(node):
        for tenant in card.tenants:
            seen.setdefault(tenant.container.pod, []).extend(
                (card.gpu.uuid or card.gpu.index, claim.share, claim.memory_limit_bytes) for claim in tenant.claims
            )
    return seen


def left(node: ClusterNode) -> list[tuple[str, str, int]]:
    assert node.snapshot is not None
    return [(allocation.pod, allocation.resource, allocation.units) for allocation in node.snapshot.unclaimed]


def test_whole_cards_are_some_cards_that_nobody_names() -> None:
    seen = found(offering({"nvidia.com/gpu": 4}), pod("one", {"nvidia.com/gpu": 1}), pod("two", {"nvidia.com/gpu": 2}))
    assert [[tenant.container.pod for tenant in card.tenants] for card in cards(seen)] == [
        ["one"],
        ["two"],
        ["two"],
        [],
    ]
    assert {(card.gpu.uuid, card.gpu.index) for card in cards(seen)} == {("", -1)}


@pytest.mark.parametrize(
    ("capacity", "labels", "cards_in_mig_mode"),
    [
        ({"nvidia.com/mig-1g.18gb": 7}, {}, 1),
        ({"nvidia.com/mig-1g.18gb": 28}, {}, 1),  # it may be one card whose instances are offered four times
        ({"nvidia.com/mig-1g.18gb": 14}, {"nvidia.com/mig-1g.18gb.count": "14"}, 2),
        (
            {"nvidia.com/mig-3g.71gb": 3, "nvidia.com/mig-1c.3g.71gb": 9},
            {"nvidia.com/mig-3g.71gb.count": "3", "nvidia.com/mig-1c.3g.71gb.count": "9"},
            3,
        ),
        ({"nvidia.com/gpu": 2, "nvidia.com/mig-7g.141gb": 0}, {"nvidia.com/gpu.count": "2"}, 0),
        ({"nvidia.com/gpu": 2, "nvidia.com/mig-7g.141gb": 1}, {"nvidia.com/gpu.count": "8"}, 6),
        ({"nvidia.com/gpu": 2}, {"nvidia.com/gpu.count": "8"}, 0),
        ({"nvidia.com/mig-999g.x": 5, "nvidia.com/mig-": 5}, {}, 0),
    ],
)
def test_cards_in_mig_mode_are_counted_as_far_as_they_are_sure(
    capacity: dict[str, int], labels: dict[str, str], cards_in_mig_mode: int
) -> None:
    seen = found(offering(capacity, labels=labels))
    assert [card.gpu.mig_enabled for card in cards(seen)].count(True) == cards_in_mig_mode
    if total := labels.get("nvidia.com/gpu.count"):
        assert len(cards(seen)) == int(total)


def test_replicas_without_ids_are_on_no_card() -> None:
    """Four of a resource may be four cards or one: labels say that it is one."""
    labels = {
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.replicas": "4",
        "nvidia.com/gpu.product": "NVIDIA-L4-SHARED",
    }
    seen = found(offering({"nvidia.com/gpu": 4}, labels=labels), pod("part", {"nvidia.com/gpu": 1}))
    assert len(cards(seen)) == 1
    assert (holders(seen), left(seen)) == ({}, [("part", "nvidia.com/gpu", 1)])
    assert seen.model == "NVIDIA-L4"


def test_more_than_the_node_has_is_given_to_nobody() -> None:
    seen = found(offering({"nvidia.com/gpu": 1}), pod("greedy", {"nvidia.com/gpu": 2}))
    assert (holders(seen), left(seen)) == ({}, [("greedy", "nvidia.com/gpu", 2)])


def test_a_note_of_hami_names_the_card_that_the_node_registered() -> None:
    register = f'[{{"id":"{A}","index":0,"count":10,"devmem":143771,"devcore":100,"type":"NVIDIA-NVIDIA H200"}}]'
    shared = offering({"nvidia.com/gpu": 10}, annotations={"hami.io/node-nvidia-register": register})
    note = {"hami.io/vgpu-devices-allocated": f"{A},NVIDIA,3000,30:;"}
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}
    seen = found(shared, pod("a", limits, annotations=note), pod("b", {"nvidia.com/gpu": 1}))
    assert holders(seen) == {"a": [(A, 0.3, 3000 * MIB)]}
    assert left(seen) == [("b", "nvidia.com/gpu", 1)], "who has no note is not given a whole card"
    assert [card.readings[0].value for card in cards(seen)] == [143771 * MIB]


def test_the_older_register_of_hami_is_read_too() -> None:
    register = f"{A},10,24576,100,NVIDIA-A10,0,true:{B},10,24576,100,NVIDIA-A10,0,true:"
    seen = found(offering({"nvidia.com/gpu": 20}, annotations={"hami.io/node-nvidia-register": register}))
    assert [card.gpu.uuid for card in cards(seen)] == [A, B]
    assert seen.model == "NVIDIA-A10"


@pytest.mark.parametrize("place", [2, 7])
def test_a_number_of_thousands_of_digits_in_the_older_register_of_hami_is_none(place: int) -> None:
    fields = [A, "10", "24576", "100", "NVIDIA-A10", "0", "true", "3", "hami-core"]
    fields[place] = "9" * 5000
    register = f"{','.join(fields)}:"
    seen = found(offering({"nvidia.com/gpu": 10}, annotations={"hami.io/node-nvidia-register": register}))
    assert [card.gpu.uuid for card in cards(seen)] == [A]


def test_a_note_that_names_a_card_of_another_node_counts_for_nothing() -> None:
    register = f'[{{"id":"{A}","devmem":1000,"type":"x"}}]'
    shared = offering({"nvidia.com/gpu": 10}, annotations={"hami.io/node-nvidia-register": register})
    note = {"hami.io/vgpu-devices-allocated": f"{B},NVIDIA,3000,30:;"}
    seen = found(shared, pod("liar", {"nvidia.com/gpu": 1}, annotations=note))
    assert (holders(seen), left(seen)) == ({}, [("liar", "nvidia.com/gpu", 1)])


def test_a_note_of_volcano_names_the_card_that_the_node_registered() -> None:
    shared = offering(
        {"volcano.sh/vgpu-number": 10},
        annotations={"volcano.sh/node-vgpu-register": f"{A},10,1000,NVIDIA,true:"},
    )
    note = {"volcano.sh/vgpu-ids-new": f"{A},NVIDIA,1000,25:"}
    seen = found(shared, pod("a", {"volcano.sh/vgpu-number": 1}, annotations=note))
    assert holders(seen) == {"a": [(A, 0.25, None)]}


def test_gpu_manager_counts_cards_by_their_cores() -> None:
    shared = offering({"tencent.com/vcuda-core": 200, "tencent.com/vcuda-memory": 128})
    notes = {"tencent.com/gpu-assigned": "true", "tencent.com/predicate-gpu-idx-0": "1"}
    limits = {"tencent.com/vcuda-core": 30, "tencent.com/vcuda-memory": 8}
    seen = found(shared, pod("a", limits, annotations=notes))
    assert holders(seen) == {"a": [(1, 0.3, 2 * GIB)]}
    assert [card.gpu.index for card in cards(seen)] == [0, 1]


def test_koordinator_notes_the_minor() -> None:
    shared = offering({"koordinator.sh/gpu-core": 200, "koordinator.sh/gpu-memory": 32 * GIB})
    note = '{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory":"8Gi"}}]}'
    seen = found(
        shared,
        pod(
            "a",
            {"koordinator.sh/gpu-core": 50},
            annotations={"scheduling.koordinator.sh/device-allocated": note},
        ),
    )
    assert holders(seen) == {"a": [(1, 0.5, 8 * GIB)]}


def test_a_note_with_a_number_that_no_card_has_hides_no_card() -> None:
    shared = offering({"aliyun.com/gpu-mem": 22, "aliyun.com/gpu-count": 2})
    note = {"ALIYUN_COM_GPU_MEM_IDX": "999", "ALIYUN_COM_GPU_MEM_DEV": "1"}
    honest = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_DEV": "11"}
    limits = {"aliyun.com/gpu-mem": 4}
    seen = found(shared, pod("liar", limits, annotations=note), pod("a", limits, annotations=honest))
    assert [card.gpu.index for card in cards(seen)] == [0, 1]
    assert holders(seen) == {"a": [(1, 4 / 11, 4 * GIB)]}
    assert left(seen) == [("liar", "aliyun.com/gpu-mem", 4)]


def test_a_fraction_by_kai_is_on_the_card_of_its_reservation() -> None:
    reservation = pod(
        "gpu-reservation-n-x",
        {"nvidia.com/gpu": 1},
        namespace="kai-resource-reservation",
        labels={"runai-gpu-group": "g1"},
        annotations={"run.ai/reserve_for_gpu_index": A},
    )
    asked = {"gpu-fraction": "0.5"}
    tenant = pod("half", {}, labels={"runai-gpu-group": "g1"}, annotations=asked, scheduler="kai-scheduler")
    seen = found(offering({"nvidia.com/gpu": 2}), reservation, tenant)
    assert holders(seen) == {"half": [(A, 0.5, None)]}
    assert len(cards(seen)) == 2


@pytest.mark.parametrize(
    ("device_id", "place"),
    [("nvidia0", (0, "")), ("nvidia1/gi3", (1, "nvidia1/gi3")), ("nvidia0/vgpu1", (0, ""))],
)
def test_googles_ids_name_numbers(device_id: str, place: tuple[int, str]) -> None:
    held = PodContainer(name="app", running=True, devices=(("nvidia.com/gpu", device_id),))
    pod = Pod(namespace="t", name="p", uid="u", phase="Running", node="n", containers=(held,))
    seen = found(offering({"nvidia.com/gpu": 2}), pod)
    assert [(card.gpu.index, tenant.mig) for card in cards(seen) for tenant in card.tenants] == [place]


def test_amazons_parts_of_a_card_are_counted_by_the_node() -> None:
    held = PodContainer(name="app", running=True, devices=(("k8s.amazonaws.com/vgpu", f"{A}-9"),))
    pod = Pod(namespace="t", name="p", uid="u", phase="Running", node="n", containers=(held,))
    seen = found(offering({"k8s.amazonaws.com/vgpu": 10}), pod)
    assert holders(seen) == {"p": [(A, 0.1, None)]}


def test_a_pod_that_has_ended_or_waits_holds_nothing() -> None:
    ended = pod("ended", {"nvidia.com/gpu": 1})
    seen = allocate(
        KubeObjects(
            at=1.0,
            nodes=(offering({"nvidia.com/gpu": 1}),),
            pods=(
                Pod(namespace="t", name="e", uid="e", phase="Succeeded", node="n", containers=ended.containers),
                pod("later", {"nvidia.com/gpu": 1}, node="", waiting=Waiting(since=5.0, reason="no room")),
                pod("web", {}, node=""),
            ),
        )
    )
    assert holders(seen.nodes["n"]) == {}
    assert seen.pending == (
        PendingPod(
            namespace="team",
            name="later",
            uid="uid-later",
            since=5.0,
            asks={"nvidia.com/gpu": "1"},
            reason="no room",
        ),
    )


def test_a_pod_that_waits_for_a_claim_of_gpus_is_pending() -> None:
    def waiting(name: str) -> Pod:
        use = PodContainer(name="app", uses=(ClaimUse("g"),))
        return Pod(
            namespace="t",
            name=name,
            uid=name,
            phase="Pending",
            containers=(use,),
            resource_claims={"g": name},
        )

    claims = (
        ResourceClaim(namespace="t", name="cards", classes=("gpu.nvidia.com",)),
        ResourceClaim(namespace="t", name="nics", classes=("rdma.example.com",)),
    )
    seen = allocate(KubeObjects(at=1.0, pods=(waiting("cards"), waiting("nics")), claims=claims))
    assert [(pending.name, pending.claims) for pending in seen.pending] == [("cards", ("cards",))]


def test_what_init_containers_ask_for_counts_once() -> None:
    def asking(count: str, *, init: bool = False) -> PodContainer:
        return PodContainer(name=f"c{count}{init}", is_init=init, limits={"nvidia.com/gpu": count})

    def asked(*containers: PodContainer) -> dict[str, str]:
        pod = Pod(namespace="t", name="p", uid="u", phase="Pending", containers=containers)
        return allocate(KubeObjects(at=1.0, pods=(pod,))).pending[0].asks

    assert asked(asking("3", init=True), asking("1"), asking("1")) == {"nvidia.com/gpu": "3"}
    sidecar = replace(asking("2", init=True), is_sidecar=True)
    assert asked(sidecar, asking("3", init=True), asking("1")) == {"nvidia.com/gpu": "5"}


def test_a_node_that_did_not_change_is_the_same_object() -> None:
    nodes = (offering({"nvidia.com/gpu": 1}), KubeNode(name="m", capacity={"nvidia.com/gpu": "1"}))
    first = allocate(KubeObjects(at=1.0, nodes=nodes))
    later = allocate(KubeObjects(at=2.0, nodes=nodes, pods=(pod("p", {"nvidia.com/gpu": 1}),)), first)
    assert later.nodes["m"] is first.nodes["m"]
    assert later.nodes["n"] is not first.nodes["n"]


def test_a_node_without_gpus_is_left_out() -> None:
    assert not allocate(KubeObjects(at=1.0, nodes=(offering({"example.com/nic": 2}),))).nodes
