"""MIG instances by their UUID or their place, under whatever resource the plugin's strategy has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.model import Allocation, Claim, Device, Gpu, Instance, MigInstance
from podgpu.sharing import claims, mig, unclaimed
from podgpu.sharing.inventory import Inventory

ONE, TWO = "GPU-00000000-0000-4000-8000-000000000001", "GPU-00000000-0000-4000-8000-000000000002"
SMALL, LEFT, RIGHT = (f"MIG-00000000-0000-5000-8000-00000000000{n}" for n in range(3))
OTHER = "MIG-00000000-0000-5000-8000-000000000009"


def card(uuid: str, index: int, *places: tuple[str, int, int]) -> Device:
    return Device(
        gpu=Gpu(uuid=uuid, index=index, mig_enabled=True),
        instances=tuple(
            Instance(mig=MigInstance(uuid=name, gpu_instance_id=gi, compute_instance_id=ci)) for name, gi, ci in places
        ),
    )


DEVICES = (card(ONE, 0, (SMALL, 7, 0), (LEFT, 1, 0), (RIGHT, 1, 1)), card(TWO, 1, (OTHER, 7, 0)))


def held(*ids: str, resource: str = "nvidia.com/gpu", pod: str = "p") -> list[Allocation]:
    return [
        Allocation(namespace="ns", pod=pod, container="c", resource=resource, device_id=device_id) for device_id in ids
    ]


def found(*allocations: Allocation) -> list[Claim]:
    return list(claims(Inventory(DEVICES, allocations)))


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/mig-1g.18gb", "nvidia.com/mig-1g.18gb.me"])
def test_the_resource_goes_by_the_strategy_and_the_id_names_the_instance(resource: str) -> None:
    (claim,) = found(*held(SMALL, resource=resource))
    assert (claim.gpu, claim.mig, claim.share, claim.system) == (ONE, SMALL, 1.0, "mig")
    assert (claim.resource, claim.device_id) == (resource, SMALL)


@pytest.mark.parametrize(
    ("device_id", "gpu", "instance"),
    [
        (f"MIG-{ONE}/7/0", ONE, SMALL),
        (f"MIG-{ONE}/1/0", ONE, LEFT),
        (f"MIG-{ONE}/1/1", ONE, RIGHT),
        (f"MIG-{TWO}/7/0", TWO, OTHER),
    ],
)
def test_an_old_id_names_an_instance_by_its_place(device_id: str, gpu: str, instance: str) -> None:
    (claim,) = found(*held(device_id))
    assert (claim.gpu, claim.mig, claim.device_id, claim.system) == (gpu, instance, device_id, "mig")


def test_an_old_driver_calls_the_instance_itself_by_its_place() -> None:
    place = f"MIG-{ONE}/7/0"
    (claim,) = mig.claims(Inventory([card(ONE, 0, (place, 7, 0))], held(place)))
    assert (claim.gpu, claim.mig) == (ONE, place)


def test_a_replica_of_an_old_id_is_a_share_of_that_instance() -> None:
    offered = [("nvidia.com/gpu", f"MIG-{ONE}/1/1::{number}") for number in range(4)]
    given = (*held(f"MIG-{ONE}/1/1::0"), *held(f"MIG-{ONE}/1/1::3", pod="q"))
    made = claims(Inventory(DEVICES, given, offered))
    assert [(claim.gpu, claim.mig, claim.share) for claim in made] == [(ONE, RIGHT, 0.25)] * 2
    assert {claim.system for claim in made} == {"time-slicing"}


@pytest.mark.parametrize(
    "device_id",
    [
        "MIG-00000000-0000-5000-8000-0000000000ff",  # an instance that is no longer there
        f"MIG-{ONE}/7/1",
        f"MIG-{ONE}/07/0",
        f"MIG-{ONE}/7",
        f"MIG-{TWO}/1/0",
        f"{ONE}/7/0",
        f"MIG-{ONE}/7/0::",
    ],
)
def test_what_this_node_lacks_is_no_claim_and_is_named(device_id: str) -> None:
    (allocation,) = held(device_id)
    assert found(allocation) == []
    assert unclaimed(Inventory(DEVICES, [allocation])) == (allocation,)


@given(st.text() | st.from_regex(rf"MIG-({ONE}|{TWO})/[0-9]{{0,2}}/[0-9]{{0,2}}", fullmatch=True))
def test_an_id_is_one_instance_or_none(device_id: str) -> None:
    (allocation,) = held(device_id)
    made = list(mig.claims(Inventory(DEVICES, [allocation])))
    assert len(made) == mig.explains(allocation, Inventory(DEVICES, [allocation]))
    assert {claim.mig for claim in made} <= {SMALL, LEFT, RIGHT, OTHER}
