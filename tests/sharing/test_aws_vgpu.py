"""Amazon's virtual GPUs: the id is the card's UUID and a number."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.model import Allocation, Claim, Device, Gpu, Pod
from podgpu.sharing import aws_vgpu
from podgpu.sharing.inventory import Inventory

ONE, TWO = "GPU-00000000-0000-4000-8000-000000000001", "GPU-00000000-0000-4000-8000-000000000002"
DEVICES = (Device(gpu=Gpu(uuid=ONE, index=0)), Device(gpu=Gpu(uuid=TWO, index=1)))
OFFERED = [f"{card}-{part}" for card in (ONE, TWO) for part in range(10)]


def held(*ids: str, pod: str = "p", resource: str = aws_vgpu.RESOURCE) -> list[Allocation]:
    return [
        Allocation(namespace="ns", pod=pod, container="c", resource=resource, device_id=device_id) for device_id in ids
    ]


def inventory(
    allocations: Sequence[Allocation], offered: Sequence[str] = OFFERED, pods: Sequence[Pod] = ()
) -> Inventory:
    return Inventory(DEVICES, allocations, [(aws_vgpu.RESOURCE, device_id) for device_id in offered], pods)


def found(allocations: Sequence[Allocation], offered: Sequence[str] = OFFERED) -> list[Claim]:
    return list(aws_vgpu.claims(inventory(allocations, offered)))


def test_a_share_is_what_is_held_of_all_parts_of_that_card() -> None:
    claims = found(held(f"{ONE}-0", f"{ONE}-9", f"{TWO}-3"))
    assert [(claim.gpu, claim.share) for claim in claims] == [(ONE, 0.1), (ONE, 0.1), (TWO, 0.1)]
    assert {(claim.system, claim.source, claim.mig) for claim in claims} == {("aws-vgpu", "podresources", "")}


def test_while_nothing_is_offered_a_share_is_not_known() -> None:
    (claim,) = found(held(f"{ONE}-9"), offered=[])
    assert (claim.gpu, claim.share) == (ONE, 0.0)


@pytest.mark.parametrize("device_id", [ONE, f"{ONE}-", f"{ONE}-x", f"{ONE}-٣", f"{ONE}-1-1", "GPU-9-1", "-1", ""])
def test_what_is_no_part_of_a_card_here_stays_visible(device_id: str) -> None:
    (allocation,) = held(device_id)
    assert found([allocation]) == []
    assert not aws_vgpu.explains(allocation, inventory([allocation]))


def test_the_same_id_of_another_resource_is_another_system() -> None:
    (allocation,) = held(f"{ONE}-1", resource="nvidia.com/gpu")
    assert found([allocation]) == []
    assert not aws_vgpu.explains(allocation, inventory([allocation]))


def test_a_pod_that_has_ended_holds_nothing() -> None:
    ended = Pod(namespace="ns", name="p", uid="u", phase="Failed")
    assert list(aws_vgpu.claims(inventory(held(f"{ONE}-1"), pods=[ended]))) == []


IDS = st.text() | st.builds("{}-{}".format, st.sampled_from([ONE, TWO, "GPU-9", ""]), st.text(max_size=3))


@given(st.lists(IDS, unique=True), st.lists(IDS))
def test_no_id_brings_more_than_there_is(ids: list[str], offered: list[str]) -> None:
    allocations = held(*ids)
    node = inventory(allocations, offered)
    claims = list(aws_vgpu.claims(node))
    explained = [allocation.device_id for allocation in allocations if aws_vgpu.explains(allocation, node)]
    assert explained == [claim.device_id for claim in claims]
    for card in (ONE, TWO):
        assert sum(claim.share for claim in claims if claim.gpu == card) < 1 + 1e-9
    assert {claim.gpu for claim in claims} <= {ONE, TWO}
