"""Into how many parts a device is cut, by what is offered, given out, and known of the node."""

import pytest

from podgpu.model import Allocation
from podgpu.model.kube import KubeNode
from podgpu.sharing.inventory import Inventory

SHARED = "nvidia.com/gpu.shared"


def part(resource: str, device_id: str) -> tuple[str, int] | None:
    """Ids are such as GPU-0::3; any other resource is not divided."""
    device, _, number = device_id.partition("::")
    return (device, int(number)) if resource == SHARED else None


def given(device_id: str, resource: str = SHARED) -> Allocation:
    return Allocation(namespace="ml", pod=f"p-{device_id}", container="c", resource=resource, device_id=device_id)


def offer(**devices: int) -> list[tuple[str, str]]:
    return [
        (SHARED, f"{name.replace('_', '-')}::{number}") for name, count in devices.items() for number in range(count)
    ]


def test_a_device_has_as_many_parts_as_are_offered() -> None:
    inventory = Inventory((), [given("GPU-0::1")], [*offer(GPU_0=4, GPU_1=4), ("nvidia.com/gpu", "GPU-2")])
    assert inventory.parts(part) == {"GPU-0": 4, "GPU-1": 4}


@pytest.mark.parametrize(("number", "parts"), [(0, 4), (3, 4), (6, 7)])
def test_one_that_is_not_offered_has_the_parts_of_the_others_and_more_than_its_highest_number(
    number: int, parts: int
) -> None:
    inventory = Inventory((), [given(f"GPU-1::{number}")], offer(GPU_0=4))
    assert inventory.parts(part) == {"GPU-0": 4, "GPU-1": parts}


def test_a_device_that_lost_its_highest_part_after_an_xid_has_as_many_as_the_others() -> None:
    """The plugin marks one replica as unhealthy, whichever it is."""
    inventory = Inventory((), [given("GPU-0::0")], offer(GPU_0=3, GPU_1=4))
    assert inventory.parts(part) == {"GPU-0": 4, "GPU-1": 4}


@pytest.mark.parametrize(("before", "after"), [(4, 4), (5, 3), (3, 3), (2, 3)])
def test_a_device_still_has_the_one_part_that_is_gone_since_it_was_counted(before: int, after: int) -> None:
    """More than one less is another configuration."""
    first = Inventory((), [given("GPU-0::0")], offer(GPU_0=before))
    first.parts(part)
    second = Inventory((), [given("GPU-0::0")], offer(GPU_0=3), counted=first.counted)
    assert second.parts(part) == {"GPU-0": after}
    third = Inventory((), [given("GPU-0::0")], offer(GPU_0=3), counted=second.counted)
    assert third.parts(part) == {"GPU-0": after}


def test_devices_of_another_resource_may_have_one_part_less() -> None:
    def of_any(_: str, device_id: str) -> tuple[str, int]:
        device, _, number = device_id.partition("::")
        return device, int(number)

    mig = [("nvidia.com/mig-1g.18gb.shared", f"MIG-0::{number}") for number in range(3)]
    inventory = Inventory((), [given("GPU-0::0")], [*offer(GPU_0=4), *mig])
    assert inventory.parts(of_any) == {"GPU-0": 4, "MIG-0": 3}


def test_while_nothing_is_offered_nothing_is_known() -> None:
    assert Inventory((), [given("GPU-0::1")]).parts(part) == {}


def test_the_only_part_of_a_device_that_is_given_out_is_number_0() -> None:
    node = KubeNode(name="n", capacity={SHARED: "1"})
    assert Inventory((), [given("GPU-0::0")], node=node).parts(part) == {"GPU-0": 1}


@pytest.mark.parametrize(
    ("node", "parts"),
    [
        (KubeNode(name="n", labels={f"{SHARED}.replicas": "4"}), 4),
        (KubeNode(name="n", labels={f"{SHARED}.replicas": "2"}), 0),
        (KubeNode(name="n", capacity={SHARED: "6"}), 3),
        (KubeNode(name="n", capacity={SHARED: "16"}), 0),
        (KubeNode(name="n"), 0),
    ],
    ids=["by the label", "a label that is too small", "by the capacity", "4 or 8 fit", "nothing is known"],
)
def test_on_a_node_without_an_agent_the_label_or_the_capacity_says_it(node: KubeNode, parts: int) -> None:
    """Three parts at least, on two devices."""
    allocations = [given("GPU-0::2"), given("GPU-0::0"), given("GPU-1::0"), given("GPU-2", "nvidia.com/gpu")]
    assert Inventory((), allocations, node=node).parts(part) == {"GPU-0": parts, "GPU-1": parts}
