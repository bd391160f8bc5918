"""gpu-manager's notes place hundredths of cards, or nothing is placed."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podgpu.model import Allocation, Claim, Device, Gpu, Pod, PodContainer
from podgpu.sharing import claims, gpu_manager, unplaced
from podgpu.sharing.inventory import Inventory

ZERO, ONE, TWO = "GPU-minor-0", "GPU-minor-1", "GPU-minor-2"
DEVICES = (
    Device(gpu=Gpu(uuid=TWO, index=0, minor=2)),
    Device(gpu=Gpu(uuid=ONE, index=1, minor=1)),
    Device(gpu=Gpu(uuid=ZERO, index=2, minor=0)),
    Device(gpu=Gpu(uuid="GPU-nameless", index=3)),
)
MIB = 1 << 20


def held(cores: int, blocks: int = 0, container: str = "main", pod: str = "p") -> list[Allocation]:
    ids = [(gpu_manager.CORE, f"tencent.com/vcuda-core-{n}") for n in range(cores)]
    ids += [(gpu_manager.MEMORY, f"tencent.com/vcuda-memory-268435456-{n}") for n in range(blocks)]
    return [
        Allocation(namespace="ns", pod=pod, container=container, resource=resource, device_id=device_id)
        for resource, device_id in ids
    ]


def noted(
    *notes: str,
    phase: str = "Running",
    uid: str = "u",
    assigned: str = "true",
    spec: Sequence[str] = ("main",),
) -> Pod:
    """`notes` are those of the first container, the second and so on. `spec` names them all."""
    places = {f"tencent.com/predicate-gpu-idx-{place}": text for place, text in enumerate(notes)}
    return Pod(
        namespace="ns",
        name="p",
        uid=uid,
        phase=phase,
        annotations={**places, "tencent.com/gpu-assigned": assigned},
        containers=tuple(PodContainer(name=name, is_init=name == "init") for name in spec),
    )


def inventory(allocations: Sequence[Allocation], *pods: Pod) -> Inventory:
    return Inventory(DEVICES, allocations, (), pods)


def found(allocations: Sequence[Allocation], *pods: Pod) -> list[Claim]:
    return list(gpu_manager.claims(inventory(allocations, *pods)))


def unexplained(allocations: Sequence[Allocation], *pods: Pod) -> list[Allocation]:
    node = inventory(allocations, *pods)
    return [allocation for allocation in allocations if not gpu_manager.explains(allocation, node)]


def test_a_part_of_a_card_is_found_by_the_minor_in_the_note() -> None:
    allocations = held(30, 16)
    (claim,) = found(allocations, noted("2"))
    assert (claim.gpu, claim.share, claim.memory_limit_bytes) == (TWO, 0.3, 4096 * MIB)
    assert (claim.container.container, claim.container.pod_uid) == ("main", "u")
    assert (claim.system, claim.source, claim.resource) == ("gpu-manager", "annotation", gpu_manager.CORE)
    assert unexplained(allocations, noted("2")) == []


def test_two_whole_cards_without_a_note_are_those_of_its_processes() -> None:
    node = inventory(held(200), noted(assigned="false"))
    (nowhere,) = unplaced(node, claims(node))
    assert nowhere.devices == 2
    seen = {nowhere.container: frozenset({ZERO, TWO})}
    assert {(claim.gpu, claim.share) for claim in claims(node, seen=seen)} == {(ZERO, 1.0), (TWO, 1.0)}


@pytest.mark.parametrize(
    ("note", "limit"), [(None, 0.3), ("50", 0.5), ("20", 0.2), ("400", 1.0), ("half", None), ("", 0.3)]
)
def test_a_part_is_limited_to_its_cores_or_to_what_the_pod_says(note: str | None, limit: float | None) -> None:
    pod = noted("2")
    if note is not None:
        pod = msgspec.structs.replace(pod, annotations={**pod.annotations, gpu_manager.CORE_LIMIT: note})
    (claim,) = found(held(30, 16), pod)
    assert (claim.share, claim.core_limit_ratio) == (0.3, limit)
    assert [claim.core_limit_ratio for claim in found(held(100, 1), pod)] == [None]


def test_whole_cards_have_all_of_their_memory() -> None:
    claims = found(held(200, 8), noted("0,2"))
    assert [(claim.gpu, claim.share, claim.memory_limit_bytes) for claim in claims] == [
        (ZERO, 1.0, None),
        (TWO, 1.0, None),
    ]


def test_an_odd_number_of_cores_is_split_evenly() -> None:
    assert [(claim.gpu, claim.share) for claim in found(held(150), noted("2,0"))] == [
        (ZERO, 0.75),
        (TWO, 0.75),
    ]


@pytest.mark.parametrize(
    "note",
    [
        "",
        ",",
        "3",
        "None",
        "-1",
        " 2",
        "2 ",
        "02",
        "٢",
        "2,2",
        "0,2",
        "2,",
        "2;0",
        "2\n",
        "/dev/nvidia2",
        "9" * 9999,
    ],
)
def test_a_note_that_does_not_fit_places_nothing(note: str) -> None:
    allocations = held(30, 16)
    assert found(allocations, noted(note)) == []
    assert unexplained(allocations, noted(note)) == allocations


@pytest.mark.parametrize("note", ["0", "0,1,2", "0,0", "0,3"])
def test_two_whole_cards_need_a_note_of_two(note: str) -> None:
    assert found(held(200), noted(note)) == []


@pytest.mark.parametrize("pods", [[], [noted()], [noted("2", uid="a"), noted("2", uid="b")]])
def test_without_the_pod_or_its_note_the_ids_stay_visible(pods: list[Pod]) -> None:
    allocations = held(30, 16)
    assert found(allocations, *pods) == []
    assert unexplained(allocations, *pods) == allocations


@pytest.mark.parametrize("assigned", ["false", "", "TRUE"])
def test_a_plan_is_not_yet_a_place(assigned: str) -> None:
    assert found(held(30, 16), noted("2", assigned=assigned)) == []


def test_a_part_without_memory_is_no_gpu_for_gpu_manager() -> None:
    allocations = held(30)
    assert unexplained(allocations, noted("2")) == allocations


def test_a_pod_that_has_ended_holds_nothing() -> None:
    assert found(held(30, 16), noted("2", phase="Succeeded")) == []


def test_ids_of_another_form_are_not_counted() -> None:
    odd = Allocation(
        namespace="ns",
        pod="p",
        container="main",
        resource=gpu_manager.MEMORY,
        device_id="tencent.com/vcuda-memory-1-1",
    )
    (claim,) = found([*held(30, 16), odd], noted("2"))
    assert claim.memory_limit_bytes == 4096 * MIB
    assert unexplained([*held(30, 16), odd], noted("2")) == [odd]


def test_a_note_belongs_to_the_only_container_that_holds_something() -> None:
    """Whatever its place in the pod is: a sidecar without a GPU may come before it."""
    notes = {"tencent.com/predicate-gpu-idx-1": "0", "tencent.com/gpu-assigned": "true"}
    pod = Pod(namespace="ns", name="p", uid="u", annotations=notes)
    (claim,) = found(held(30, 16, container="zz"), pod)
    assert (claim.gpu, claim.container.container) == (ZERO, "zz")


def test_two_containers_on_one_card_need_no_order() -> None:
    claims = found(held(30, 16, "a") + held(50, 8, "b"), noted("1", "1"))
    assert [(claim.container.container, claim.gpu, claim.share) for claim in claims] == [
        ("a", ONE, 0.3),
        ("b", ONE, 0.5),
    ]


def test_containers_of_unlike_size_are_told_apart_by_it() -> None:
    claims = found(held(30, 16, "a") + held(200, 0, "b"), noted("0,2", "1"))
    assert {(claim.container.container, claim.gpu) for claim in claims} == {
        ("a", ONE),
        ("b", ZERO),
        ("b", TWO),
    }


def test_the_note_counts_places_in_the_spec() -> None:
    """The kubelet lists containers by name, and init containers are not counted."""
    pod = noted("0", "1", spec=["init", "b", "a"])
    claims = found(held(30, 16, "a") + held(50, 8, "b"), pod)
    assert {(claim.container.container, claim.gpu) for claim in claims} == {("a", ONE), ("b", ZERO)}


def test_an_order_that_the_kubelet_does_not_bear_out_is_not_believed() -> None:
    """One card is noted for the container that holds two."""
    pod = noted("1", "0,2", spec=["b", "a"])
    claims = found(held(30, 16, "a") + held(200, 0, "b"), pod)
    assert {(claim.container.container, claim.gpu) for claim in claims} == {
        ("a", ONE),
        ("b", ZERO),
        ("b", TWO),
    }


@pytest.mark.parametrize(("phase", "spec"), [("", ["a", "b"]), ("Running", ["a"]), ("Running", ["b", "c", "a"])])
def test_without_the_order_containers_that_cannot_be_told_apart_are_not_guessed(phase: str, spec: list[str]) -> None:
    """A pod that is known by its name alone has no phase."""
    allocations = held(30, 16, "a") + held(50, 8, "b")
    assert found(allocations, noted("0", "1", phase=phase, spec=spec)) == []
    assert unexplained(allocations, noted("0", "1", phase=phase, spec=spec)) == allocations


@pytest.mark.parametrize("notes", [["1"], ["1", "1", "1"], ["1", "7"], ["1", "0,2"]])
def test_notes_that_are_not_as_many_as_the_containers_place_nothing(notes: list[str]) -> None:
    assert found(held(30, 16, "a") + held(50, 8, "b"), noted(*notes)) == []


NOTES = st.text() | st.lists(st.sampled_from(["0", "1", "2", "3", "None", ""]), max_size=4).map(",".join)
SIZES = st.tuples(st.sampled_from([0, 1, 50, 100, 150, 300]), st.integers(0, 2))


@given(st.lists(NOTES, max_size=4), st.lists(SIZES, max_size=3), st.permutations(["init", "c0", "c1", "c2"]))
@example(["0" * 70000], [(1, 1)], ["c0"])
def test_no_note_claims_more_than_is_held_or_a_card_that_is_not_here(
    notes: list[str], sizes: list[tuple[int, int]], spec: list[str]
) -> None:
    allocations = [
        allocation
        for place, (cores, blocks) in enumerate(sizes)
        for allocation in held(cores, blocks, container=f"c{place}")
    ]
    pod = noted(*notes, spec=spec)
    claims = found(allocations, pod)
    assert {claim.gpu for claim in claims} <= {ZERO, ONE, TWO}
    placed = {claim.container.container for claim in claims}
    assert {allocation.container for allocation in allocations} - placed == {
        allocation.container for allocation in unexplained(allocations, pod)
    }
    for place, (cores, _) in enumerate(sizes):
        shares = [claim.share for claim in claims if claim.container.container == f"c{place}"]
        assert not shares or sum(shares) == pytest.approx(cores / 100)
        assert all(0 < share <= 1 for share in shares)
