"""A note can name a card, but it takes a claim below neither the spec's limits nor the ids that the kubelet gave."""

import json
import time
from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from podgpu.model import Allocation, Claim, Device, Gpu, Pod, PodContainer, Reading
from podgpu.sharing import annotations, claims, unclaimed
from podgpu.sharing.inventory import Inventory

ONE, TWO = (f"GPU-00000000-0000-4000-8000-00000000000{n}" for n in range(2))
GIB = 1 << 30
HAMI, VGPU = "hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new"
SPREAD, ALLOCATED = "scheduler.framework.gpushare.allocation", "scheduling.koordinator.sh/device-allocated"
MANAGED = {"tencent.com/gpu-assigned": "true", "tencent.com/predicate-gpu-idx-0": "0"}


def cards(*uuids: str) -> list[Device]:
    memory = (Reading("memory_total_bytes", 80.0 * GIB),)
    return [Device(gpu=Gpu(uuid=uuid, index=n, minor=n), readings=memory) for n, uuid in enumerate(uuids)]


def given(resource: str, *ids: str) -> list[Allocation]:
    return [
        Allocation(namespace="ns", pod="p", container="c", resource=resource, device_id=device_id) for device_id in ids
    ]


def pod(notes: Mapping[str, str], limits: Mapping[str, str], phase: str = "Running") -> Pod:
    container = PodContainer(name="c", limits=dict(limits))
    return Pod(namespace="ns", name="p", uid="u", phase=phase, annotations=dict(notes), containers=(container,))


def found(
    holder: Pod,
    allocations: Sequence[Allocation] = (),
    offered: Sequence[tuple[str, str]] = (),
    uuids: Sequence[str] = (ONE, TWO),
) -> list[Claim]:
    return list(claims(Inventory(cards(*uuids), allocations, offered, [holder])))


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        ({"nvidia.com/gpumem": "40960"}, 0.5),
        ({"nvidia.com/gpumem-percentage": "25"}, 0.25),
        ({"nvidia.com/gpumem": "40960", "nvidia.com/gpucores": "30"}, 0.3),
        ({}, 0.1),  # the plugin offers ten parts of each card
    ],
)
@pytest.mark.parametrize("note", [f"{ONE},NVIDIA,1,1:;", f"{ONE},NVIDIA,1,0:;"])
def test_memory_and_cores_are_at_least_what_the_spec_asks_for(limits: dict[str, str], share: float, note: str) -> None:
    offered = [("nvidia.com/gpu", f"{uuid}-{n}") for uuid in (ONE, TWO) for n in range(10)]
    (claim,) = found(pod({HAMI: note}, limits), given("nvidia.com/gpu", f"{TWO}-3"), offered)
    assert claim.gpu == ONE
    assert claim.share == pytest.approx(share)


def test_a_limit_is_not_shown_lower_than_it_was_asked_for() -> None:
    limits = {"nvidia.com/gpumem": "40960", "nvidia.com/gpucores": "30"}
    note = pod({HAMI: f"{ONE},NVIDIA,1,1:;"}, limits)
    (claim,) = found(note, given("nvidia.com/gpu", f"{TWO}-3"))
    assert (claim.memory_limit_bytes, claim.core_limit_ratio) == (40 * GIB, 0.3)


@pytest.mark.parametrize(("noted", "mib"), [(2048, 2048), (1, 2048)])
def test_the_entry_of_another_container_is_at_least_what_that_one_asked_for(noted: int, mib: int) -> None:
    """Up to 2.6 HAMi gives an init container that keeps running the entry of the first container of its size."""
    init = PodContainer(name="c", limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "30"}, is_init=True)
    main = PodContainer(name="main", limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2048"})
    both = replace(pod({HAMI: f"{ONE},NVIDIA,{noted},0:;"}, {}), containers=(init, main))
    (claim,) = found(both, given("nvidia.com/gpu", f"{TWO}-3"))
    assert (claim.container.container, claim.memory_limit_bytes) == ("c", mib << 20)


def test_a_spec_that_is_not_known_bounds_nothing() -> None:
    note = pod({HAMI: f"{ONE},NVIDIA,4096,0:;"}, {}, phase="")
    (claim,) = found(note, given("nvidia.com/gpu", f"{TWO}-3"))
    assert claim.share == 0.05


@pytest.mark.parametrize(("kind", "share"), [("core", 0.4), ("memory", 0.5)], ids=["by its cores", "by its memory"])
def test_ids_of_memory_and_cores_are_what_a_note_cannot_lower(kind: str, share: float) -> None:
    ids = [f"{TWO}-{kind}-{n}" for n in range(40)]
    resource = {"core": "volcano.sh/vgpu-cores", "memory": "volcano.sh/vgpu-memory"}[kind]
    held = [*given("volcano.sh/vgpu-number", f"{TWO}-0"), *given(resource, *ids)]
    offered = [("volcano.sh/vgpu-memory", f"{uuid}-memory-{n}") for uuid in (ONE, TWO) for n in range(80)]
    (claim,) = found(pod({VGPU: f"{ONE},NVIDIA,1,1:"}, {}), held, offered)
    assert (claim.gpu, claim.share) == (ONE, share)


def test_a_spread_of_fewer_units_than_there_are_ids_is_stretched() -> None:
    held = given("aliyun.com/gpu-mem", *(f"{TWO}-_-{n}" for n in range(40)))
    offered = [("aliyun.com/gpu-mem", f"{uuid}-_-{n}") for uuid in (ONE, TWO) for n in range(80)]
    note = json.dumps({"0": {"0": 1, "1": 1}})
    assert [claim.share for claim in found(pod({SPREAD: note}, {}), held, offered)] == [0.25, 0.25]


def test_a_card_of_a_million_units_is_not_believed() -> None:
    held = given("aliyun.com/gpu-mem", *(f"{ONE}-_-{n}" for n in range(100, 140)))
    notes = {"ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_DEV": "999999999"}
    (claim,) = found(pod(notes, {}), held)
    assert claim.share == 40 / (80 << 10)


def test_a_limit_below_ones_own_cores_is_none() -> None:
    cores = [f"tencent.com/vcuda-core-{n}" for n in range(40)]
    held = [
        *given("tencent.com/vcuda-core", *cores),
        *given("tencent.com/vcuda-memory", "tencent.com/vcuda-memory-268435456-0"),
    ]
    (claim,) = found(pod({**MANAGED, "tencent.com/vcuda-core-limit": "1"}, {}), held)
    assert (claim.share, claim.core_limit_ratio) == (0.4, 0.4)


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        ({"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "20"}, 0.5),
        ({"koordinator.sh/gpu-memory-ratio": "20"}, 0.2),
        ({"koordinator.sh/gpu": "30"}, 0.3),
        ({"koordinator.sh/gpu-memory": "20Gi"}, 0.25),
        ({"nvidia.com/gpu": "1"}, 1.0),
    ],
)
def test_a_note_of_one_per_cent_is_at_least_the_limit(limits: dict[str, str], share: float) -> None:
    note = json.dumps({"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "1"}}]})
    (claim,) = found(pod({ALLOCATED: note}, limits))
    assert (claim.gpu, claim.share) == (ONE, share)


@pytest.mark.parametrize("notes", [{}, {HAMI: "x", VGPU: "x", SPREAD: "x", ALLOCATED: "x"}])
@pytest.mark.parametrize(
    ("held", "limits", "share"),
    [
        (given("nvidia.com/gpu", f"{ONE}-3"), {"nvidia.com/gpumem": "40960"}, 0.5),
        (given("volcano.sh/vgpu-number", f"{ONE}-3"), {"volcano.sh/vgpu-cores": "40"}, 0.4),
        (given("volcano.sh/vgpu-number", f"{ONE}-3"), {"volcano.sh/vgpu-memory-percentage": "40"}, 0.4),
        (given("aliyun.com/gpu-mem", *(f"{ONE}-_-{n}" for n in range(40))), {}, 0.5),
        ([], {"koordinator.sh/gpu-core": "50"}, 0.5),
        (
            [
                *given("tencent.com/vcuda-core", *(f"tencent.com/vcuda-core-{n}" for n in range(40))),
                *given("tencent.com/vcuda-memory", "tencent.com/vcuda-memory-268435456-0"),
            ],
            {},
            0.4,
        ),
    ],
    ids=["hami", "volcano", "volcano-percentage", "gpushare", "koordinator", "gpu-manager"],
)
def test_without_a_note_that_makes_sense_the_only_card_is_meant(
    notes: dict[str, str], held: list[Allocation], limits: dict[str, str], share: float
) -> None:
    holder = pod(notes, limits)
    assert [(claim.gpu, claim.share) for claim in found(holder, held, uuids=[ONE])] == [(ONE, share)]
    assert found(holder, held) == []


@pytest.mark.parametrize(
    ("notes", "held", "limits"),
    [
        ({HAMI: f"{ONE},NVIDIA,40960,0:;"}, given("nvidia.com/gpu", f"{TWO}-3"), {}),
        ({VGPU: f"{ONE},NVIDIA,1,50:"}, given("volcano.sh/vgpu-number", f"{TWO}-3"), {}),
        (
            {ALLOCATED: json.dumps({"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "50"}}]})},
            [],
            {"koordinator.sh/gpu-core": "50"},
        ),
        (
            MANAGED,
            [
                *given("tencent.com/vcuda-core", *(f"tencent.com/vcuda-core-{n}" for n in range(50))),
                *given("tencent.com/vcuda-memory", "tencent.com/vcuda-memory-268435456-0"),
            ],
            {},
        ),
    ],
    ids=["hami", "volcano", "koordinator", "gpu-manager"],
)
@pytest.mark.parametrize("later", [{}, {HAMI: "x", VGPU: "x", ALLOCATED: "x"}])
def test_who_strikes_his_note_out_keeps_the_card_that_it_named(
    notes: dict[str, str], held: list[Allocation], limits: dict[str, str], later: dict[str, str]
) -> None:
    """Among several cards nothing else says which one is his, and the others on it would pay."""

    def claimed(pods: Sequence[Pod], ids: Sequence[Allocation], before: Sequence[Claim]) -> tuple[Claim, ...]:
        return claims(Inventory(cards(ONE, TWO), ids, (), pods), before=before)

    first = claimed([pod(notes, limits)], held, ())
    assert [(claim.gpu, claim.share) for claim in first] == [(ONE, 0.5)]
    struck = pod(later, limits)
    assert claimed([struck], held, claimed([struck], held, first)) == first
    assert claimed([], held, first) == claimed([pod(later, limits, "Succeeded")], held, first) == ()
    if held:
        assert claimed([struck], (), first) == ()


@pytest.mark.parametrize(
    ("note", "held"),
    [
        ("ALIYUN_COM_GPU_MEM_IDX", given("aliyun.com/gpu-mem", *(f"{TWO}-_-{n}" for n in range(40)))),
        ("volcano.sh/gpu-index", given("volcano.sh/gpu-number", TWO)),
    ],
    ids=["gpushare", "volcano"],
)
def test_a_removed_annotation_does_not_move_the_claim_to_the_card_that_the_ids_name(
    note: str, held: list[Allocation]
) -> None:
    """The kubelet picks any ids. The other pod has the card that they name."""
    other = replace(pod({note: "1"}, {}), name="q", uid="v")
    theirs = [replace(allocation, pod="q", device_id=allocation.device_id.replace(TWO, ONE)) for allocation in held]

    def claimed(notes: dict[str, str], before: Sequence[Claim]) -> tuple[Claim, ...]:
        return claims(Inventory(cards(ONE, TWO), [*held, *theirs], (), [pod(notes, {}), other]), before=before)

    first = claimed({note: "0"}, ())
    assert [(claim.container.pod, claim.gpu) for claim in first] == [("p", ONE), ("q", TWO)]
    assert set(claimed({}, first)) == set(claimed({}, claimed({}, first))) == set(first)


def test_the_annotation_of_another_system_does_not_replace_a_removed_one() -> None:
    held = [
        *given("tencent.com/vcuda-core", *(f"tencent.com/vcuda-core-{n}" for n in range(50))),
        *given("tencent.com/vcuda-memory", "tencent.com/vcuda-memory-268435456-0"),
    ]
    forged = {ALLOCATED: json.dumps({"gpu": [{"minor": 1, "resources": {"koordinator.sh/gpu-core": "1"}}]})}
    first = claims(Inventory(cards(ONE, TWO), held, (), [pod(MANAGED, {})]))
    later = claims(Inventory(cards(ONE, TWO), held, (), [pod(forged, {})]), before=first)
    assert [(claim.gpu, claim.share) for claim in first] == [(ONE, 0.5)]
    assert set(first) < set(later)


def test_systems_that_go_by_notes_say_which() -> None:
    names = annotations()
    assert {HAMI, VGPU, SPREAD, ALLOCATED, "runai-gpu-group", "tencent.com/predicate-gpu-idx-"} <= set(names)


def test_long_notes_are_read_once_however_often_something_else_changes() -> None:
    """A hundred pods with as much on them as is kept, and ids of which each asks for its pod's notes."""
    resource = "koordinator.sh/gpu-core"
    ids = [replace(given(resource, str(n))[0], pod=f"p{n % 100}") for n in range(2000)]

    def seconds(size: int) -> float:
        entries = ",".join('{"minor":0,"resources":{"koordinator.sh/gpu-core":"1"}}' for _ in range(size))
        vgpu = f"{ONE},NVIDIA,1,1:" * size
        notes = {ALLOCATED: f'{{"gpu":[{entries}]}}', HAMI: vgpu, VGPU: vgpu}
        pods = [
            replace(pod({key: text + " " * n for key, text in notes.items()}, {}), name=f"p{n}", uid=f"u{n}")
            for n in range(100)
        ]
        node = Inventory(cards(ONE, TWO), ids, (), pods)
        began = time.process_time()
        claims(node)
        unclaimed(node)
        return time.process_time() - began

    # If each of the 2000 ids read its pod's notes again, long ones would take about eighty times as long.
    assert min(seconds(500) for _ in range(3)) < 20 * min(seconds(1) for _ in range(3))
