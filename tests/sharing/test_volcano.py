"""Volcano's notes become claims as far as the kubelet bears them out, whatever else is written there."""

from collections.abc import Sequence

import pytest
from hypothesis import given as chosen
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.model import Allocation, Claim, Device, Gpu, Pod, PodContainer, Reading, VirtualGpu
from podgpu.sharing import ambiguous_claims, statuses, unclaimed, unplaced, volcano
from podgpu.sharing import claims as all_claims
from podgpu.sharing.inventory import Inventory

ONE, TWO, THREE = (f"GPU-00000000-0000-4000-8000-00000000000{n}" for n in range(3))
FOREIGN = "GPU-ffffffff-0000-4000-8000-00000000000f"
MIB = 1 << 20
TOTAL = Reading("memory_total_bytes", 1000.0 * MIB)
DEVICES = (
    Device(gpu=Gpu(uuid=ONE, index=0, minor=2), readings=(TOTAL,)),
    Device(gpu=Gpu(uuid=TWO, index=1, minor=1)),
    Device(gpu=Gpu(uuid=THREE, index=2, minor=0), readings=(TOTAL,)),
)
UNITS = {index: [f"{index}-{n}" for n in range(100)] for index in range(3)}  # of ten MiB each


def allocated(*ids: str, resource: str, container: str = "c") -> list[Allocation]:
    return [
        Allocation(namespace="ns", pod="p", container=container, resource=resource, device_id=device_id)
        for device_id in ids
    ]


def inventory(
    allocations: list[Allocation],
    annotations: dict[str, str],
    offered: list[tuple[str, str]] | None = None,
    phase: str = "Running",
    spec: Sequence[str] = (),
) -> Inventory:
    names = spec or sorted({allocation.container for allocation in allocations})
    containers = tuple(PodContainer(name=name, is_init=name == "init") for name in names)
    pod = Pod(namespace="ns", name="p", uid="uid", phase=phase, annotations=annotations, containers=containers)
    units = [
        (resource, device_id)
        for resource in (volcano.VGPU_MEMORY, volcano.MEMORY)
        for ids in UNITS.values()
        for device_id in ids
    ]
    return Inventory(DEVICES, allocations, units if offered is None else offered, [pod])


def vgpus(
    note: str,
    given: dict[str, int] | None = None,
    offered: list[tuple[str, str]] | None = None,
    *,
    phase: str = "Running",
    spec: Sequence[str] = (),
) -> list[Claim]:
    held = [
        allocation
        for container, count in ({"c": 1} if given is None else given).items()
        for allocation in allocated(*(f"{ONE}-{n}" for n in range(count)), resource=volcano.VGPU, container=container)
    ]
    return list(volcano.claims(inventory(held, {volcano.VGPU_IDS: note}, offered, phase, spec)))


def memory(index: str, held: int = 25, offered: list[tuple[str, str]] | None = None) -> list[Claim]:
    ids = allocated(*UNITS[1][:held], resource=volcano.MEMORY)
    return list(volcano.claims(inventory(ids, {volcano.INDICES: index}, offered)))


def places(claims: list[Claim]) -> dict[str, list[str]]:
    by_container: dict[str, list[str]] = {}
    for claim in claims:
        by_container.setdefault(claim.container.container, []).append(claim.gpu)
    return by_container


def test_a_note_gives_card_share_and_limits() -> None:
    (claim,) = vgpus(f"{THREE},NVIDIA,50,30:")
    assert (claim.gpu, claim.container.pod_uid, claim.share) == (THREE, "uid", 0.3)
    assert (claim.memory_limit_bytes, claim.core_limit_ratio) == (500 * MIB, 0.3)
    assert (claim.system, claim.source, claim.resource) == ("volcano", "annotation", volcano.VGPU)
    assert claim.device_id == f"{THREE},NVIDIA,50,30"


def test_without_a_core_limit_the_share_is_that_of_the_memory() -> None:
    (claim,) = vgpus(f"{THREE},NVIDIA,50,0:")
    assert (claim.share, claim.core_limit_ratio) == (0.5, None)


def test_more_memory_than_there_is_is_the_whole_card() -> None:
    (claim,) = vgpus(f"{THREE},NVIDIA,101,0:")
    assert claim.share == 1.0


def units(count: int, card: str = ONE) -> list[tuple[str, str]]:
    return [(volcano.VGPU_MEMORY, f"{card}-memory-{n}") for n in range(count)]


@pytest.mark.parametrize(
    ("offered", "held", "share", "limit"),
    [
        (units(1000), 50, 0.05, 50),  # a unit is a MiB
        (units(100), 50, 0.5, 500),  # ten of them
        (units(90), 45, 0.5, 495),  # eleven
        (units(62), 31, 0.5, 496),  # 16, as 1000 / 16 is rounded down
        (units(3), 1, 1 / 3, 256),  # 251 to 333, of which 256 is the only round number
        (units(1), 1, 1.0, None),  # 512 or 1000
        (units(59), 50, 50 / 59, None),  # no factor leads to 59
        (units(100), 500, 1.0, None),  # units of a smaller factor: the kubelet has not learnt of it
    ],
)
def test_a_unit_is_what_the_plugin_divided_the_card_by(
    offered: list[tuple[str, str]], held: int, share: float, limit: int | None
) -> None:
    (claim,) = vgpus(f"{ONE},NVIDIA,{held},0:", offered=offered)
    assert claim.share == pytest.approx(share)
    assert claim.memory_limit_bytes == (None if limit is None else limit * MIB)


def test_a_plugin_that_offers_as_many_units_of_any_card_tells_nothing() -> None:
    """So it is with 1.9.2 to 1.11. The cores and the card are known all the same."""
    (claim,) = vgpus(f"{ONE},NVIDIA,50,0:", offered=units(32_767))
    assert (claim.gpu, claim.share, claim.memory_limit_bytes) == (ONE, 0.0, None)
    (claim,) = vgpus(f"{ONE},NVIDIA,50,30:", offered=units(32_767))
    assert (claim.share, claim.memory_limit_bytes) == (0.3, None)


def test_what_cannot_be_known_is_said() -> None:
    held = allocated(f"{ONE}-0", resource=volcano.VGPU)
    unsure = inventory(held, {volcano.VGPU_IDS: f"{ONE},NVIDIA,50,0:"}, units(32_767))
    (status,) = statuses(unsure, volcano.claims(unsure), ())
    assert "limits of memory are not known" in " ".join(status.doubts)
    sure = inventory(held, {volcano.VGPU_IDS: f"{ONE},NVIDIA,50,0:"}, units(1000))
    (status,) = statuses(sure, volcano.claims(sure), ())
    assert status.doubts == ()


def test_a_file_of_the_library_settles_a_limit() -> None:
    held = allocated(f"{ONE}-0", resource=volcano.VGPU)
    seen = inventory(held, {volcano.VGPU_IDS: f"{ONE},NVIDIA,50,0:"}, units(32_767))
    file = VirtualGpu(pod_uid="uid", container="c", gpu=ONE, memory_limit_bytes=512 * MIB)
    (claim,) = volcano.claims(Inventory(seen.devices, seen.allocations, seen.allocatable, seen.pods, vgpus=[file]))
    assert claim.memory_limit_bytes == 512 * MIB


def test_a_plugin_that_offers_no_memory_counts_in_mebibytes() -> None:
    """So it is with 1.9."""
    (claim,) = vgpus(f"{ONE},NVIDIA,250,0:", offered=[(volcano.VGPU, f"{ONE}-0")])
    assert (claim.share, claim.memory_limit_bytes) == (0.25, 250 * MIB)


def test_memory_that_the_kubelet_refused_to_list_is_of_an_unknown_unit() -> None:
    """Newer plugins offer cores too, and more ids of memory than the kubelet takes."""
    offered = [(volcano.VGPU, f"{ONE}-0"), (volcano.VGPU_CORES, f"{ONE}-core-0")]
    (claim,) = vgpus(f"{ONE},NVIDIA,250,0:", offered=offered)
    assert (claim.share, claim.memory_limit_bytes) == (0.0, None)


def test_resources_may_have_other_names() -> None:
    """Nobody else has ids of memory and cores like these."""
    held = allocated(f"{ONE}-0", resource="example.com/gpu")
    held += allocated(f"{ONE}-memory-3", resource="example.com/memory")
    offered = [("example.com/memory", device_id) for _, device_id in units(1000, THREE)]
    seen = inventory(held, {volcano.VGPU_IDS: f"{THREE},NVIDIA,500,0:"}, offered)
    (claim,) = volcano.claims(seen)
    assert (claim.gpu, claim.share, claim.memory_limit_bytes) == (THREE, 0.5, 500 * MIB)
    assert all(volcano.explains(each, seen) for each in held)


def test_ids_of_another_plugin_are_not_volcanos_by_a_note() -> None:
    held = allocated(f"{ONE}-0", resource="k8s.amazonaws.com/vgpu")
    seen = inventory(held, {volcano.VGPU_IDS: f"{THREE},NVIDIA,500,0:"}, [])
    assert list(volcano.claims(seen)) == []


def test_whole_cards_are_those_of_the_note_whatever_the_ids_are() -> None:
    held = allocated(ONE, TWO, resource=volcano.NUMBER)
    seen = inventory(held, {volcano.INDICES: "2,0"}, [])
    assert {(claim.gpu, claim.share) for claim in all_claims(seen)} == {(ONE, 1.0), (THREE, 1.0)}
    assert unclaimed(seen) == ()


def test_whole_cards_may_also_be_those_that_the_ids_name() -> None:
    """Then nothing is claimed by the note."""
    held = allocated(ONE, TWO, resource=volcano.NUMBER)
    seen = inventory(held, {volcano.INDICES: "2,0"}, [])
    (either,) = ambiguous_claims(seen)
    assert [sorted(cards) for cards in either.cards] == [[ONE, THREE], [ONE, TWO]]
    assert either.usual == 0
    claims = all_claims(seen, {either: 1})
    assert {(claim.gpu, claim.share) for claim in claims} == {(ONE, 1.0), (TWO, 1.0)}
    assert {(claim.system, claim.source, claim.ruled_out) for claim in claims} == {
        ("volcano", "podresources", (THREE,))
    }
    assert all_claims(seen, {either: 0}) == all_claims(seen)


@pytest.mark.parametrize("note", ["1,0", "0", "0,9", ""])
def test_a_note_that_agrees_or_is_not_believed_leaves_no_alternative(note: str) -> None:
    seen = inventory(allocated(ONE, TWO, resource=volcano.NUMBER), {volcano.INDICES: note}, [])
    assert list(volcano.ambiguous_claims(seen)) == []


@pytest.mark.parametrize("note", ["0", "0,0", "0,9", "0,1,2"])
def test_a_note_of_other_cards_than_were_given_claims_nothing(note: str) -> None:
    seen = inventory(allocated(ONE, TWO, resource=volcano.NUMBER), {volcano.INDICES: note}, [])
    assert list(volcano.claims(seen)) == []


@pytest.mark.parametrize("note", [{}, {volcano.INDICES: "x"}, {volcano.INDICES: "0,1"}])
def test_without_a_note_that_fits_whole_cards_are_those_of_the_processes(note: dict[str, str]) -> None:
    """The kubelet picks any ids, and the plugin does not keep to them. So whoever has the card's note keeps it."""
    held = allocated(ONE, resource=volcano.NUMBER)
    other = Pod(namespace="ns", name="q", uid="other", phase="Running", annotations={volcano.INDICES: "0"})
    theirs = [replace(allocation, pod="q", device_id=TWO) for allocation in held]
    pods = [*inventory(held, note, []).pods, other]
    seen = Inventory(DEVICES, [*held, *theirs], [], pods)
    assert [(claim.container.pod, claim.gpu) for claim in all_claims(seen)] == [("q", ONE)]
    assert unclaimed(seen, all_claims(seen)) == tuple(held)
    (nowhere,) = unplaced(seen, all_claims(seen))
    assert (nowhere.container.pod, nowhere.devices) == ("p", 1)
    settled = all_claims(seen, seen={nowhere.container: frozenset({ONE})})
    assert unplaced(seen, settled) == ()
    assert {(claim.container.pod, claim.gpu, claim.share) for claim in settled} == {("p", ONE, 1.0), ("q", ONE, 1.0)}
    assert unclaimed(seen, settled) == ()


def test_without_a_note_the_only_card_is_that_of_the_ids() -> None:
    for pods in ((), inventory([], {}).pods):
        seen = Inventory(DEVICES[:1], allocated(ONE, resource=volcano.NUMBER), [], pods)
        assert [(claim.gpu, claim.share) for claim in all_claims(seen)] == [(ONE, 1.0)]
        assert unclaimed(seen) == ()


def test_two_vgpus_without_a_note_are_on_two_cards() -> None:
    """Of which a process may show one, and then the other is still unknown."""
    node = inventory(allocated(f"{ONE}-0", f"{TWO}-1", resource=volcano.VGPU), {}, [])
    (nowhere,) = unplaced(node, all_claims(node))
    assert nowhere.devices == 2
    found = all_claims(node, seen={nowhere.container: frozenset({THREE})})
    assert [claim.gpu for claim in found] == [THREE]
    assert [left.devices for left in unplaced(node, found)] == [1]


def test_units_of_unknown_size_limit_nothing() -> None:
    """So it is for a moment after a kubelet's restart, when nothing is offered."""
    (claim,) = vgpus(f"{ONE},NVIDIA,50,0:", offered=[])
    assert (claim.share, claim.memory_limit_bytes) == (0.0, None)


def test_a_card_of_unknown_size_has_shares_and_no_limits() -> None:
    (claim,) = vgpus(f"{TWO},NVIDIA,50,0:")
    assert (claim.share, claim.memory_limit_bytes) == (0.5, None)


@pytest.mark.parametrize("note", [f"{TWO},NVIDIA,1,1:", f";{TWO},NVIDIA,1,1:;:"])
def test_containers_without_a_vgpu_have_no_entry_or_an_empty_one(note: str) -> None:
    assert places(vgpus(note, {"z": 1})) == {"z": [TWO]}


def test_entries_are_told_apart_by_their_number_of_devices() -> None:
    note = f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:{THREE},NVIDIA,1,1:"
    assert places(vgpus(note, {"a": 2, "b": 1})) == {"a": [TWO, THREE], "b": [ONE]}


def test_entries_are_in_the_order_of_the_spec() -> None:
    """The kubelet sorts by name. Containers without a vGPU and init containers have no entry."""
    note = f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:"
    claims = vgpus(note, {"a": 1, "z": 1}, spec=["init", "z", "log", "a"])
    assert places(claims) == {"a": [TWO], "z": [ONE]}


def test_without_the_order_what_cannot_be_told_apart_is_no_claim() -> None:
    """A pod that is known by its name alone has no phase."""
    assert vgpus(f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:", {"a": 1, "b": 1}, phase="") == []
    assert len(vgpus(f"{ONE},NVIDIA,1,1:;{ONE},NVIDIA,1,1:", {"a": 1, "b": 1}, phase="")) == 2


def test_a_container_that_the_spec_does_not_have_has_no_place_in_the_order() -> None:
    assert vgpus(f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:", {"a": 1, "b": 1}, spec=["a"]) == []


@pytest.mark.parametrize("given", [{}, {"c": 2}, {"c": 1, "d": 1}])
def test_a_note_that_the_kubelet_does_not_bear_out_is_no_claim(given: dict[str, int]) -> None:
    assert vgpus(f"{ONE},NVIDIA,1,1:", given) == []


@pytest.mark.parametrize(
    "device",
    [
        f"{ONE},NVIDIA,1,101",
        f"{ONE},NVIDIA,99999999,1",
        f"{ONE},NVIDIA,1",
        f"{ONE},NVI\x1bDIA,1,1",
        f"{FOREIGN},NVIDIA,1,1",
        ONE,
    ],
)
def test_a_device_that_makes_no_sense_is_left_out_alone(device: str) -> None:
    assert places(vgpus(f"{device}:{TWO}[group1-0],NVIDIA,1,1:", {"c": 2})) == {"c": [TWO]}


def test_memory_is_of_the_card_with_the_noted_index() -> None:
    """The ids name another one, and the /dev minor is another again."""
    (claim,) = memory("0")
    assert (claim.gpu, claim.share, claim.memory_limit_bytes) == (ONE, 0.25, 250 * MIB)
    assert (claim.device_id, claim.source) == ("0-* (25 units)", "annotation")


@pytest.mark.parametrize("index", ["", "3", "-1", "0,1", "00", " 0", "\u0660", "None"])
def test_an_index_of_no_one_card_is_no_claim(index: str) -> None:
    assert memory(index) == []


def test_a_pod_that_has_ended_holds_nothing() -> None:
    ids = allocated("0-1", resource=volcano.MEMORY)
    assert list(volcano.claims(inventory(ids, {volcano.INDICES: "0"}, phase="Succeeded"))) == []


def test_every_id_of_a_noted_pod_is_explained() -> None:
    ids = [
        *allocated(f"{TWO}-3", resource=volcano.VGPU),
        *allocated(f"{TWO}-core-99", resource=volcano.VGPU_CORES),
        *allocated("1-17", f"{TWO}-memory-5", resource=volcano.VGPU_MEMORY),
        *allocated("0-3", resource=volcano.MEMORY),
    ]
    seen = inventory(ids, {volcano.VGPU_IDS: f"{ONE},NVIDIA,1,1:", volcano.INDICES: "1"})
    assert all(volcano.explains(each, seen) for each in ids)


@pytest.mark.parametrize(
    ("resource", "device_id"),
    [
        (volcano.VGPU, f"{ONE}-0"),
        (volcano.MEMORY, "0-3"),
        (volcano.VGPU, ONE),
        (volcano.VGPU_CORES, f"{ONE}-1"),
        (volcano.VGPU_MEMORY, "0"),
        ("nvidia.com/gpu", f"{ONE}-0"),
    ],
)
def test_an_id_without_a_note_or_of_another_form_stays_unexplained(resource: str, device_id: str) -> None:
    ids = allocated(device_id, resource=resource)
    assert not any(volcano.explains(each, inventory(ids, {})) for each in ids)


PIECES = st.sampled_from([ONE, TWO, FOREIGN, "NVIDIA", ",", ":", ";", "[a-1]", "0", "100", "101", "4096", "\n"])
DEVICES_OF_A_NOTE = st.tuples(st.sampled_from([ONE, TWO, FOREIGN]), st.integers(0, 10**9), st.integers(0, 1000)).map(
    lambda device: f"{device[0]},NVIDIA,{device[1]},{device[2]}:"
)
NOTES = st.one_of(
    st.text(),
    st.lists(PIECES, max_size=40).map("".join),
    st.lists(st.lists(DEVICES_OF_A_NOTE, max_size=3).map("".join), max_size=4).map(";".join),
)


@chosen(
    note=NOTES,
    index=st.one_of(st.text(), st.integers().map(str)),
    given=st.integers(1, 3),
    units=st.integers(0, 9),
    phase=st.sampled_from(["", "Running"]),
)
def test_no_note_breaks_anything(note: str, index: str, given: int, units: int, phase: str) -> None:
    ids = allocated(*(f"{ONE}-{n}" for n in range(given)), resource=volcano.VGPU)
    ids += allocated(*UNITS[0][:units], resource=volcano.MEMORY, container="old")
    seen = inventory(ids, {volcano.VGPU_IDS: note, volcano.INDICES: index}, phase=phase)
    claims = list(volcano.claims(seen))
    assert all(0.0 <= claim.share <= 1.0 and claim.gpu in seen.gpus for claim in claims)
    held = places(claims)
    assert len(held.get("c", [])) <= given
    assert {allocation.container for allocation in ids if volcano.explains(allocation, seen)} == set(held)
