"""Admin access: to look at a device that others hold. Only the claim itself says that it is no more."""

from msgspec.structs import replace

from podgpu.sharing import dra
from podgpu.sharing.inventory import Inventory
from tests.sharing.dra.test_dra import DEVICES, LEFT, TWO, TWO_ROWS, claimed, container, held, pod, row


def test_a_claim_that_is_not_read_is_a_named_doubt() -> None:
    stock = Inventory(DEVICES, pods=[pod(*TWO)], dynamic=TWO_ROWS)
    assert {claim.share for claim in dra.claims(stock)} == {0.0}, "which is of unknown size"
    (doubt,) = dra.doubts(stock)
    assert "2 containers" in doubt
    assert list(dra.excused(stock)) == []


def test_who_has_admin_access_is_a_monitor_of_the_devices_of_its_requests() -> None:
    claim = replace(claimed(("left", LEFT)), devices=(), monitored=claimed(("left", LEFT), ("right", "gpu-5")).devices)
    stock = Inventory(DEVICES, pods=[pod(*TWO)], dynamic=TWO_ROWS, resource_claims=[claim])
    assert list(dra.claims(stock)) == []
    assert list(dra.doubts(stock)) == []
    found = {(card, who.role, who.container and who.container.container) for card, who in dra.excused(stock)}
    assert found == {("GPU-7", "monitor", "a"), ("GPU-5", "monitor", "b")}


def test_a_device_that_the_claim_only_lets_one_look_after_is_not_held() -> None:
    """Such devices are left out of the claim."""
    assert held(row("gpu-5"), pods=[pod(container("main", "own"))], claims=[claimed()]) == []
