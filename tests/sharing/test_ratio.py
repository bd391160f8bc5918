"""Cards cut into virtual GPUs by a plugin that does not tell into how many."""

from collections.abc import Sequence

import pytest

from podgpu.model import Allocation, Claim, Device, Gpu, Pod, Reading
from podgpu.sharing import claims, statuses, unclaimed
from podgpu.sharing.inventory import Inventory

ZERO = "GPU-00000000-0000-4000-8000-000000000000"
ONE = "GPU-00000000-0000-4000-8000-000000000001"
GIB = 1 << 30
DEVICES = tuple(
    Device(gpu=Gpu(uuid=uuid, index=index), readings=(Reading("memory_total_bytes", float(80 * GIB)),))
    for index, uuid in enumerate([ZERO, ONE])
)


def given(*ids: str, pod: str = "p", resource: str = "nvidia.com/gpu") -> list[Allocation]:
    return [
        Allocation(namespace="ns", pod=pod, container="c", resource=resource, device_id=device_id) for device_id in ids
    ]


def found(ratios: Sequence[float], allocations: Sequence[Allocation], *pods: Pod) -> list[Claim]:
    return list(claims(Inventory(DEVICES, allocations, (), pods, ratios=ratios)))


def told(claims: list[Claim]) -> list[tuple[str, str, float]]:
    return [(claim.gpu, claim.system, claim.share) for claim in claims]


def test_one_number_is_for_every_card() -> None:
    first, second = found([4], given(ZERO) + given(ONE, pod="q"))
    assert told([first, second]) == [(ZERO, "ratio", 0.25), (ONE, "ratio", 0.25)]
    assert (first.memory_limit_bytes, first.container.pod, first.source) == (20 * GIB, "p", "podresources")


def test_several_pods_hold_the_same_uuid() -> None:
    claims = found([2], given(ZERO) + given(ZERO, pod="q"))
    assert [(claim.container.pod, claim.share) for claim in claims] == [("p", 0.5), ("q", 0.5)]


def test_two_ids_of_a_card_are_two_parts_of_it() -> None:
    claims = found([4], given(f"{ZERO}-0", f"{ZERO}-3"))
    assert told(claims) == [(ZERO, "ratio", 0.25)] * 2


def test_a_ratio_need_not_be_whole() -> None:
    (claim,) = found([2.5], given(ZERO))
    assert (claim.share, claim.memory_limit_bytes) == (0.4, 32 * GIB)


def test_several_numbers_are_for_the_cards_by_their_index() -> None:
    claims = found([2, 4], given(ONE) + given(ZERO))
    assert [(claim.gpu, claim.share) for claim in claims] == [(ONE, 0.25), (ZERO, 0.5)]


@pytest.mark.parametrize(("cards", "ratios"), [(1, [2, 5]), (2, [2, 4, 8])], ids=["2,5 on one GPU", "too many"])
def test_with_another_number_of_ratios_than_of_cards_no_share_is_known(cards: int, ratios: list[float]) -> None:
    """A fraction may have been written with a comma, or a card may be gone, and the indexes have changed."""
    node = Inventory(DEVICES[:cards], given(ZERO) + given(f"{ZERO}-0", pod="q"), ratios=ratios)
    found = claims(node)
    assert told(list(found)) == [(ZERO, "ratio", 0.0)] * 2
    assert {claim.memory_limit_bytes for claim in found} == {None}
    assert unclaimed(node, found) == ()
    (status,) = statuses(node, found, ())
    assert status.system == "ratio"
    assert status.doubts[0].startswith(f"the ratio file has {len(ratios)} numbers for {cards} GPUs, ")


def test_as_many_ratios_as_cards_are_in_no_doubt() -> None:
    node = Inventory(DEVICES, given(ZERO), ratios=[2, 4])
    assert [status.doubts for status in statuses(node, claims(node), ())] == [()]


def test_a_ratio_of_one_leaves_a_card_whole() -> None:
    assert told(found([1], given(ZERO))) == [(ZERO, "exclusive", 1.0)]
    assert told(found([1], given(f"{ZERO}-0"))) == [(ZERO, "ratio", 1.0)]


def test_without_a_ratio_nothing_is_cut() -> None:
    assert told(found([], given(ZERO, f"{ONE}-0"))) == [(ZERO, "exclusive", 1.0)]


def test_a_limit_is_unknown_where_the_cards_memory_is() -> None:
    node = Inventory([Device(gpu=Gpu(uuid=ZERO, index=0))], given(ZERO), ratios=[2])
    (claim,) = claims(node)
    assert (claim.share, claim.memory_limit_bytes) == (0.5, None)


def test_replicas_tell_their_number_themselves() -> None:
    offered = [("nvidia.com/gpu", f"{ZERO}::{number}") for number in range(2)]
    node = Inventory(DEVICES, given(f"{ZERO}::0", f"{ZERO}::1"), offered, ratios=[4])
    assert [(claim.system == "ratio", claim.share) for claim in claims(node)] == [(False, 0.5)] * 2


def test_a_schedulers_note_about_the_pod_is_believed() -> None:
    note = {"hami.io/vgpu-devices-allocated": f"{ONE},NVIDIA,8192,30:;"}
    pod = Pod(namespace="ns", name="p", uid="u", annotations=note)
    assert told(found([4], given(f"{ZERO}-0"), pod)) == [(ONE, "hami", 0.3)]


def test_what_goes_by_a_resource_of_its_own_is_another_systems() -> None:
    pod = Pod(namespace="ns", name="p", uid="u", annotations={"ALIYUN_COM_GPU_MEM_IDX": "0"})
    claims = found([4], given(f"{ZERO}-_-0", resource="aliyun.com/gpu-mem"), pod)
    assert [claim.system for claim in claims] == ["gpushare"]


@pytest.mark.parametrize("device_id", ["GPU-9-0", f"{ZERO}0", "", "mlx5_0"])
def test_what_does_not_begin_with_a_uuid_is_nobodys(device_id: str) -> None:
    assert found([4], given(device_id)) == []


def test_a_word_in_an_annotation_takes_no_claim_away() -> None:
    pod = Pod(namespace="ns", name="p", uid="u", annotations={"note": f"see {ONE}"})
    assert told(found([4], given(f"{ZERO}-1"), pod)) == [(ZERO, "ratio", 0.25)]


def test_a_container_that_another_systems_note_speaks_for_is_not_claimed_twice() -> None:
    note = {"hami.io/vgpu-devices-allocated": f"{ONE},NVIDIA,1024,50:;"}
    pod = Pod(namespace="ns", name="p", uid="u", phase="Running", annotations=note)
    assert told(found([4], given(f"{ZERO}-1"), pod)) == [(ONE, "hami", 0.5)]
