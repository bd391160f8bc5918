"""Claims become parts of the whole card, however strange their shares are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.ledger.cycle import TenantKey
from podgpu.ledger.shares import PARTS, GpuInstance, reserved
from podgpu.model import Claim, ContainerRef, Device, Gpu, Instance, MigInstance

GPU = "GPU-1"
A = ContainerRef("ns", "pod-a", "main", "uid-a")
WHOLE = Device(gpu=Gpu(uuid=GPU, index=0))
QUARTER = Device(
    gpu=Gpu(uuid=GPU, index=0, multiprocessors=4),
    instances=(Instance(mig=MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0, multiprocessors=1)),),
)


def claim(share: float, mig: str = "", limit: int | None = None) -> Claim:
    return Claim(gpu=GPU, mig=mig, container=A, share=share, memory_limit_bytes=limit)


@pytest.mark.parametrize(("share", "parts"), [(1e-9, 1), (0.25, PARTS // 4), (1.0, PARTS), (1.5, PARTS), (1e9, PARTS)])
def test_a_share_is_more_than_nothing_and_at_most_all(share: float, parts: int) -> None:
    assert reserved([claim(share)], WHOLE).shares == {TenantKey(GPU, "", A): parts}
    assert reserved([claim(share, "MIG-1")], QUARTER).shares == {TenantKey(GPU, "MIG-1", A): max(1, parts // 4)}


@pytest.mark.parametrize("share", [0.0, -0.5])
def test_a_tenant_with_a_claim_of_unknown_size_has_no_share(share: float) -> None:
    """What it holds besides is not all that it holds."""
    found = reserved([claim(0.5), claim(share)], WHOLE)
    assert found.shares == {}
    assert len(found.claims[TenantKey(GPU, "", A)]) == 2
    assert not found.are_sized


def test_a_container_has_no_more_than_the_whole_card() -> None:
    found = reserved([claim(0.75), claim(0.75)], WHOLE)
    assert found.shares == {TenantKey(GPU, "", A): PARTS}
    assert len(found.claims[TenantKey(GPU, "", A)]) == 2


@pytest.mark.parametrize(
    ("active", "parts", "activity"), [(0.5, 100, 50), (1.02, 100, 100), (None, 100, None), (0.5, None, None)]
)
def test_an_instance_is_active_for_no_more_than_its_part(
    active: float | None, parts: int | None, activity: int | None
) -> None:
    assert GpuInstance(migs=frozenset(), parts=parts, active=active, sm_active=None).activity == activity


def test_limits_add_up_and_no_limit_is_absent() -> None:
    found = reserved([claim(0.1, limit=5), claim(0.1, limit=7), claim(1.0, "MIG-1")], QUARTER)
    assert found.memory_limits == {TenantKey(GPU, "", A): 12}


def test_a_claim_on_an_instance_that_is_gone_reserves_nothing() -> None:
    found = reserved([claim(1.0, "MIG-gone")], QUARTER)
    assert (found.shares, found.claims) == ({}, {})


@given(st.lists(st.floats(min_value=-1.0, max_value=2.0), max_size=4))
def test_whoever_has_a_share_has_more_than_nothing(shares: list[float]) -> None:
    for device, mig in ((WHOLE, ""), (QUARTER, "MIG-1")):
        found = reserved([claim(share, mig) for share in shares], device)
        assert all(0 < parts <= PARTS for parts in found.shares.values())
        assert bool(found.shares) == (bool(shares) and all(share > 0 for share in shares))
