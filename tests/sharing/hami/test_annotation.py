"""HAMi's notes become claims as far as the kubelet bears them out, whatever else is written there."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given as chosen
from hypothesis import strategies as st

from podgpu.model import (
    Allocation,
    Claim,
    Device,
    Gpu,
    Instance,
    MigInstance,
    Pod,
    PodContainer,
    Reading,
)
from podgpu.sharing import hami
from podgpu.sharing.hami.annotation import DEVICES_ALLOCATED, MIG_ALLOCATIONS
from podgpu.sharing.inventory import Inventory

ONE, TWO, THREE = (f"GPU-00000000-0000-4000-8000-00000000000{n}" for n in range(3))
FOREIGN = "GPU-ffffffff-0000-4000-8000-00000000000f"
SLICE, OTHER_SLICE = "MIG-1", "MIG-2"
MIB = 1 << 20
DEVICES = (
    Device(gpu=Gpu(uuid=ONE, index=0), readings=(Reading("memory_total_bytes", 1000.0 * MIB),)),
    Device(
        gpu=Gpu(uuid=TWO, index=1),
        instances=(Instance(mig=MigInstance(uuid=SLICE, gpu_instance_id=1, compute_instance_id=0)),),
    ),
    Device(
        gpu=Gpu(uuid=THREE, index=2),
        instances=(Instance(mig=MigInstance(uuid=OTHER_SLICE, gpu_instance_id=1, compute_instance_id=0)),),
    ),
)


def allocations(given: dict[str, int], card: str = ONE, resource: str = "nvidia.com/gpu") -> list[Allocation]:
    return [
        Allocation(namespace="ns", pod="p", container=container, resource=resource, device_id=f"{card}-{n}")
        for container, count in given.items()
        for n in range(count)
    ]


def inventory(
    note: str | None,
    given: dict[str, int],
    *,
    init: Sequence[str] = (),
    spec: Sequence[str] = (),
    phase: str = "",
    migs: str = "",
) -> Inventory:
    """The pod's containers are `init` and `spec`, whose order is known if there is a phase."""
    names = spec or sorted({*given, "other"} - {*init})
    notes = {DEVICES_ALLOCATED: note, MIG_ALLOCATIONS: migs}
    pod = Pod(
        namespace="ns",
        name="p",
        uid="uid",
        phase=phase,
        annotations={key: value for key, value in notes.items() if value is not None},
        containers=(
            *(PodContainer(name=name, is_init=True) for name in init),
            *(PodContainer(name=name, is_ephemeral=name == "debug") for name in names),
        ),
    )
    return Inventory(DEVICES, allocations(given), (), [pod])


def found(
    note: str, given: dict[str, int] | None = None, *, init: Sequence[str] = (), spec: Sequence[str] = ()
) -> list[Claim]:
    """With a `spec` the order of the containers is known."""
    held = {"c": 1} if given is None else given
    phase = "Running" if spec else ""
    return list(hami.claims(inventory(note, held, init=init, spec=spec, phase=phase)))


def places(claims: list[Claim]) -> dict[str, list[str]]:
    by_container: dict[str, list[str]] = {}
    for claim in claims:
        by_container.setdefault(claim.container.container, []).append(claim.gpu)
    return by_container


def test_a_note_gives_card_share_and_limits() -> None:
    (claim,) = found(f"{TWO},NVIDIA,3000,30:;")
    assert (claim.gpu, claim.container.pod_uid, claim.share) == (TWO, "uid", 0.3)
    assert (claim.memory_limit_bytes, claim.core_limit_ratio) == (3000 * MIB, 0.3)
    assert (claim.system, claim.source, claim.resource) == ("hami", "annotation", "nvidia.com/gpu")
    assert claim.device_id == f"{TWO},NVIDIA,3000,30"


def test_without_a_core_limit_the_share_is_that_of_the_memory() -> None:
    (claim,) = found(f"{ONE},NVIDIA,250,0:;")
    assert (claim.share, claim.core_limit_ratio) == (0.25, None)


def test_more_memory_than_there_is_is_the_whole_card() -> None:
    """HAMi can be set to give out more than a card has."""
    (claim,) = found(f"{ONE},NVIDIA,2500,0:;")
    assert claim.share == 1.0


def test_without_the_cards_memory_there_is_a_limit_and_no_share() -> None:
    (claim,) = found(f"{TWO},NVIDIA,250,0:;")
    assert (claim.share, claim.memory_limit_bytes) == (0.0, 250 * MIB)


def test_a_note_without_amounts_limits_nothing() -> None:
    (claim,) = found(f"{ONE},NVIDIA,0,0:;")
    assert (claim.share, claim.memory_limit_bytes, claim.core_limit_ratio) == (0.0, None, None)


def test_a_container_may_have_parts_of_several_cards() -> None:
    assert places(found(f"{ONE},NVIDIA,1,1:{TWO},NVIDIA,1,1:;", {"c": 2})) == {"c": [ONE, TWO]}


def test_cards_are_numbered_as_the_scheduler_listed_them() -> None:
    listed = found(f"{TWO},NVIDIA,1,1:{ONE},NVIDIA,1,1:;", {"c": 2})
    assert [(claim.gpu, claim.index) for claim in listed] == [(TWO, 0), (ONE, 1)]
    (second,) = found(f"unreadable:{ONE},NVIDIA,1,1:;", {"c": 2})
    assert (second.gpu, second.index) == (ONE, 1)


@pytest.mark.parametrize("note", [f"{TWO},NVIDIA,1,1:;;", f";{TWO},NVIDIA,1,1:;", f";;{TWO},NVIDIA,1,1:"])
def test_an_entry_is_of_the_container_that_was_given_something(note: str) -> None:
    assert places(found(note, {"b": 1})) == {"b": [TWO]}


def test_entries_are_told_apart_by_their_number_of_devices() -> None:
    note = f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:{THREE},NVIDIA,1,1:;"
    assert places(found(note, {"a": 2, "b": 1})) == {"a": [TWO, THREE], "b": [ONE]}


def test_equal_entries_need_not_be_told_apart() -> None:
    note = f"{ONE},NVIDIA,1,1:;" * 2
    assert places(found(note, {"a": 1, "b": 1})) == {"a": [ONE], "b": [ONE]}


def test_what_cannot_be_told_apart_is_no_claim_and_not_explained() -> None:
    note = f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:;{TWO},NVIDIA,1,1:{THREE},NVIDIA,1,1:;"
    held = {"a": 1, "b": 1, "c": 2}
    assert places(found(note, held)) == {"c": [TWO, THREE]}
    seen = inventory(note, held)
    assert [hami.explains(allocation, seen) for allocation in seen.allocations] == [False, False, True, True]


def test_entries_are_in_the_order_of_the_spec() -> None:
    """The kubelet sorts by name. A container without a GPU has an empty entry, one for debugging has none."""
    note = f"{ONE},NVIDIA,1,1:;;{TWO},NVIDIA,1,1:;"
    claims = found(note, {"a": 1, "z": 1}, spec=["z", "log", "a", "debug"])
    assert places(claims) == {"a": [TWO], "z": [ONE]}


def test_by_the_order_newer_notes_count_the_init_containers() -> None:
    """Also those that the kubelet no longer lists; a sidecar it does."""
    note = f"{THREE},NVIDIA,1,1:;{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:;{THREE},NVIDIA,1,1:;"
    claims = found(note, {"a": 1, "side": 1, "z": 1}, init=["setup", "side"], spec=["z", "a"])
    assert places(claims) == {"a": [THREE], "side": [ONE], "z": [TWO]}


def test_by_the_order_older_notes_leave_the_init_containers_out() -> None:
    note = f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:;"
    assert places(found(note, {"a": 1, "z": 1}, init=["setup"], spec=["z", "a"])) == {"a": [TWO], "z": [ONE]}


@pytest.mark.parametrize("spec", [["a"], ["a", "log", "b"], ["a", "b", "c", "d"]])
def test_a_note_that_does_not_fit_the_spec_has_no_order(spec: list[str]) -> None:
    assert found(f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:;", {"a": 1, "b": 1}, spec=spec) == []


def test_an_order_that_the_kubelet_does_not_bear_out_is_not_believed() -> None:
    """The number of devices still tells whose an entry is."""
    note = f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:{THREE},NVIDIA,1,1:;"
    assert places(found(note, {"a": 2, "b": 1}, spec=["a", "b"])) == {"a": [TWO, THREE], "b": [ONE]}
    assert places(found(f"{ONE},NVIDIA,1,1:;;", {"b": 1}, spec=["a", "b"])) == {"b": [ONE]}


def test_newer_notes_begin_with_the_init_containers() -> None:
    """The kubelet lists none of these, so their entries are nobody's."""
    assert places(found(f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:;", {"c": 1}, init=["setup"])) == {"c": [TWO]}


def test_older_notes_leave_the_init_containers_out() -> None:
    note = f"{TWO},NVIDIA,1,1:;" * 2
    assert places(found(note, {"c": 1, "other": 1}, init=["setup"])) == {"c": [TWO], "other": [TWO]}


def test_a_sidecar_is_an_init_container_that_the_kubelet_lists() -> None:
    note = f"{ONE},NVIDIA,1,1:;{TWO},NVIDIA,1,1:;{TWO},NVIDIA,1,1:;"
    assert places(found(note, {"side": 1, "c": 1}, init=["setup", "side"])) == {"side": [TWO], "c": [TWO]}


def test_an_init_containers_entry_is_not_taken_for_another_ones() -> None:
    assert found(f"{ONE},NVIDIA,1,1:;;;", {"c": 1}, init=["setup"]) == []


@pytest.mark.parametrize("given", [{}, {"c": 2}, {"c": 1, "d": 1}])
def test_a_note_that_the_kubelet_does_not_bear_out_is_no_claim(given: dict[str, int]) -> None:
    assert found(f"{ONE},NVIDIA,1,1:;", given) == []


def test_a_whole_card_bears_out_nothing() -> None:
    """Else a note could add a claim to that of the system which gave out the card."""
    whole = Allocation(namespace="ns", pod="p", container="c", resource="nvidia.com/gpu", device_id=ONE)
    noted = inventory(f"{TWO},NVIDIA,1,1:;", {})
    seen = Inventory(DEVICES, [whole], (), noted.pods)
    assert list(hami.claims(seen)) == []
    assert not hami.explains(whole, seen)


def test_a_pod_that_has_ended_holds_nothing() -> None:
    assert list(hami.claims(inventory(f"{ONE},NVIDIA,1,1:;", {"c": 1}, phase="Failed"))) == []


@pytest.mark.parametrize("note", [None, "", f"{FOREIGN},NVIDIA,1,1:;"])
def test_an_id_without_a_card_of_this_node_stays_unexplained(note: str | None) -> None:
    seen = inventory(note, {"c": 1})
    assert list(hami.claims(seen)) == []
    assert not hami.explains(seen.allocations[0], seen)


@pytest.mark.parametrize(
    "device",
    [
        f"{ONE},NVIDIA,1,101",
        f"{ONE},NVIDIA,99999999,1",
        f"{ONE},NVIDIA,-1,1",
        f"{ONE},NVIDIA,1",
        f"{ONE},NVIDIA,1,1,1",
        f"{ONE},NVIDIA,1,\u0661",
        f"{ONE},NVI\x1bDIA,1,1",
        f"{ONE},,1,1",
        f" {ONE},NVIDIA,1,1",
        ONE,
    ],
)
def test_a_device_that_makes_no_sense_is_left_out_alone(device: str) -> None:
    assert places(found(f"{device}:{TWO},NVIDIA,1,1:;", {"c": 2})) == {"c": [TWO]}


def test_brackets_after_the_uuid_are_cut() -> None:
    (claim,) = found(f"{ONE}[0-1],NVIDIA,1,1:;")
    assert (claim.gpu, claim.mig) == (ONE, "")


def mig_note(**changes: object) -> str:
    note = {"containerIndex": 0, "deviceIndex": 0, "gpuUUID": TWO, "profile": "1g.10gb", "migUUID": SLICE}
    return json.dumps([note | changes])


def test_an_instance_is_held_as_a_whole() -> None:
    (claim,) = hami.claims(inventory(f"{TWO},NVIDIA,100,14:;", {"c": 1}, migs=mig_note()))
    assert (claim.gpu, claim.mig, claim.share, claim.core_limit_ratio) == (TWO, SLICE, 1.0, None)
    assert claim.memory_limit_bytes == 100 * MIB


@pytest.mark.parametrize(
    "migs",
    [
        mig_note(containerIndex=1),
        mig_note(deviceIndex=1),
        mig_note(migUUID=OTHER_SLICE),
        mig_note(migUUID="MIG-9"),
        mig_note(migUUID=7),
        "[" * 10_000,
        "\ud800",
        "null",
    ],
)
def test_an_instance_that_is_not_this_devices_is_not_believed(migs: str) -> None:
    (claim,) = hami.claims(inventory(f"{TWO},NVIDIA,100,14:;", {"c": 1}, migs=migs))
    assert (claim.gpu, claim.mig, claim.share) == (TWO, "", 0.14)


def test_only_ids_of_its_own_form_are_explained() -> None:
    seen = inventory(f"{ONE},NVIDIA,1,1:;", {"c": 1})
    others = [
        Allocation(namespace="ns", pod="p", container="c", resource=resource, device_id=device_id)
        for resource, device_id in (
            ("nvidia.com/gpu", ONE),
            ("nvidia.com/gpu", f"{ONE}::0"),
            ("nvidia.com/gpu", f"{ONE}-x"),
            ("example.com/gpu", ONE),
        )
    ]
    assert hami.explains(seen.allocations[0], seen)
    assert not any(hami.explains(other, seen) for other in others)


PIECES = st.sampled_from([ONE, TWO, FOREIGN, "NVIDIA", ",", ":", ";", "[0-1]", "0", "100", "101", "4096", "-", "\n"])
NOTES = st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join))
DEVICES_OF_A_NOTE = st.tuples(st.sampled_from([ONE, TWO, FOREIGN]), st.integers(0, 10**9), st.integers(0, 1000)).map(
    lambda device: f"{device[0]},NVIDIA,{device[1]},{device[2]}:"
)
ENTRIES = st.lists(st.lists(DEVICES_OF_A_NOTE, max_size=3).map("".join), max_size=4).map(";".join)


@chosen(
    note=st.one_of(NOTES, ENTRIES),
    migs=st.one_of(st.text(), st.just(mig_note())),
    given=st.dictionaries(st.sampled_from("abc"), st.integers(1, 3)),
    init=st.lists(st.sampled_from("bx"), unique=True),
    phase=st.sampled_from(["", "Running"]),
)
def test_no_note_breaks_anything(note: str, migs: str, given: dict[str, int], init: list[str], phase: str) -> None:
    seen = inventory(note, given, init=init, migs=migs, phase=phase)
    claims = list(hami.claims(seen))
    assert all(0.0 <= claim.share <= 1.0 and claim.gpu in seen.gpus for claim in claims)
    held = places(claims)
    assert all(len(cards) <= given[container] for container, cards in held.items())
    assert {allocation.container for allocation in seen.allocations if hami.explains(allocation, seen)} == set(held)
