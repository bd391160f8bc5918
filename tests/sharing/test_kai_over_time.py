"""What a pod had of a card by KAI, it keeps, whatever is written on it later."""

import pytest

from podgpu.model import Claim, Pod, PodContainer
from podgpu.sharing import claims as all_claims
from podgpu.sharing.inventory import Inventory
from tests.sharing.test_kai import DEVICES, ZERO, holds, reservation, tenant

LATER = [
    tenant("g", gpu_fraction="0.01"),
    tenant("g", gpu_memory="1"),
    tenant("g"),
    tenant("nowhere", gpu_fraction="0.5"),
    tenant(gpu_fraction="0.5"),
    tenant("g", gpu_fraction="0.5", received_resource_type="Regular"),
]


def over_time(*moments: tuple[Pod, ...]) -> list[tuple[str, float]]:
    before: tuple[Claim, ...] = ()
    for pods in moments:
        node = Inventory(DEVICES, (holds(ZERO),), (), (reservation("g"), tenant(name="whole"), *pods))
        before = all_claims(node, before=before)
    return [(claim.gpu, claim.share) for claim in before]


@pytest.mark.parametrize("later", LATER)
def test_what_a_pod_had_it_has_whatever_its_author_writes_later(later: Pod) -> None:
    first = tenant("g", gpu_fraction="0.5")
    assert over_time((first,), (later,), (later,)) == [(ZERO, 0.5)]


def test_a_request_may_grow_and_goes_with_its_pod() -> None:
    small, large = tenant("g", gpu_fraction="0.25"), tenant("g", gpu_fraction="0.5")
    assert over_time((small,), (large,)) == [(ZERO, 0.5)]
    assert over_time((small,), ()) == []
    assert over_time((small,), (tenant("g", phase="Succeeded"),)) == []


def test_a_card_that_another_pod_was_given_as_a_whole_is_that_pods() -> None:
    """The reservation pod is gone, and with it what it held for others."""
    first = tenant("g", gpu_fraction="0.5")
    before = all_claims(Inventory(DEVICES, (holds(ZERO),), (), (reservation("g"), first)))
    other = Pod(namespace="ns", name="other", uid="o", phase="Running", containers=(PodContainer(name="c"),))
    node = Inventory(DEVICES, (holds(ZERO, "other", "ns"),), (), (first, other))
    claims = all_claims(node, before=before)
    assert [(claim.container.pod, claim.share) for claim in claims] == [("other", 1.0)]
