"""Replicas of a card: time-sliced, or served by MPS. The id counts, whatever the resource is called."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podgpu.model import Allocation, Claim, Device, Gpu, Instance, MigInstance, Pod, Process, Reading
from podgpu.sharing import replicas
from podgpu.sharing.inventory import Inventory

ONE, CUT, SLICE = "GPU-1", "GPU-2", "MIG-1"
GIB = 1 << 30
SHARED = "nvidia.com/gpu.shared"
TOTAL = (Reading("memory_total_bytes", 80.0 * GIB),)
PLAIN, CLIENT = ("compute",), ("compute", "mps")


def card(*kinds: tuple[str, ...], readings: tuple[Reading, ...] = TOTAL) -> Device:
    processes = tuple(Process(pid=pid, kinds=found) for pid, found in enumerate(kinds, 1))
    return Device(gpu=Gpu(uuid=ONE, index=0), readings=readings, processes=processes)


SLICED = card(PLAIN, PLAIN, PLAIN)
SERVED = card(CLIENT, CLIENT, PLAIN)
INSTANCE = Device(
    gpu=Gpu(uuid=CUT, index=1, mig_enabled=True),
    instances=(Instance(mig=MigInstance(uuid=SLICE, gpu_instance_id=3, compute_instance_id=0)),),
    processes=(Process(pid=70, kinds=CLIENT, gpu_instance_id=3, compute_instance_id=0),),
    readings=TOTAL,
)


def held(*ids: str, pod: str = "p", resource: str = SHARED) -> list[Allocation]:
    return [
        Allocation(namespace="ns", pod=pod, container="c", resource=resource, device_id=device_id) for device_id in ids
    ]


def offered(device: str = ONE, count: int = 4, resource: str = SHARED) -> list[tuple[str, str]]:
    return [(resource, f"{device}::{number}") for number in range(count)]


def found(
    allocations: Sequence[Allocation],
    allocatable: Sequence[tuple[str, str]] = (),
    device: Device = SLICED,
    pods: Sequence[Pod] = (),
) -> list[Claim]:
    return list(replicas.claims(Inventory([device, INSTANCE], allocations, allocatable, pods)))


def shares(allocations: Sequence[Allocation], allocatable: Sequence[tuple[str, str]] = ()) -> list[float]:
    return [claim.share for claim in found(allocations, allocatable)]


# --- shares ---


def test_a_share_is_what_is_held_of_all_replicas() -> None:
    claims = found(held(f"{ONE}::0", f"{ONE}::2"), offered())
    assert [(claim.gpu, claim.mig, claim.share) for claim in claims] == [(ONE, "", 0.25)] * 2
    assert {claim.system for claim in claims} == {"time-slicing"}


@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", SHARED, "example.com/gpu-quarter", "nvidia.com/mig-1g.18gb.shared"]
)
def test_any_resource_may_be_one_of_replicas(resource: str) -> None:
    (claim,) = found(held(f"{ONE}::1", resource=resource), offered(resource=resource))
    assert (claim.gpu, claim.share, claim.resource) == (ONE, 0.25, resource)


def test_an_instance_has_replicas_of_its_own() -> None:
    claims = found(held(f"{ONE}::0", f"{SLICE}::0"), [*offered(), *offered(SLICE, 2)])
    assert [(claim.gpu, claim.mig, claim.share) for claim in claims] == [(ONE, "", 0.25), (CUT, SLICE, 0.5)]


@pytest.mark.parametrize("device", [SLICED, SERVED], ids=["sliced", "served"])
def test_while_nothing_is_offered_a_share_is_not_known(device: Device) -> None:
    """A plugin that has not registered yet may have ten replicas of which two were given out."""
    claims = found(held(f"{ONE}::0") + held(f"{ONE}::1", pod="q"), device=device)
    assert [(claim.gpu, claim.share, claim.memory_limit_bytes) for claim in claims] == [(ONE, 0.0, None)] * 2


def test_a_replicas_number_tells_of_those_before_it() -> None:
    """The plugin may offer fewer than it gave out, and those are held all the same."""
    assert shares(held(f"{ONE}::7"), offered()) == [0.125]


def test_replicas_of_a_resource_that_was_renamed_are_of_the_same_card() -> None:
    """The pods of before keep theirs. Two may hold one number then, and yet there is but one card."""
    before = held(f"{ONE}::0", pod="old", resource="nvidia.com/gpu")
    assert shares(before + held(f"{ONE}::1"), offered()) == [0.25, 0.25]
    everybody = before + held(*(f"{ONE}::{number}" for number in range(4)))
    assert shares(everybody, offered()) == [0.2] * 5


def test_a_pod_that_has_ended_holds_nothing() -> None:
    ended = Pod(namespace="ns", name="p", uid="u", phase="Failed")
    assert found(held(f"{ONE}::1"), pods=[ended]) == []


@pytest.mark.parametrize(
    "device_id",
    [
        ONE,
        f"{ONE}::",
        f"{ONE}::x",
        f"{ONE}::-1",
        f"{ONE}::٣",
        f"{ONE}::0::1",
        f"{ONE}::0\n",
        "GPU-9::0",
        "::0",
    ],
)
def test_what_is_no_replica_of_a_device_here_stays_visible(device_id: str) -> None:
    (allocation,) = held(device_id)
    assert found([allocation]) == []
    assert not replicas.explains(allocation, Inventory([SLICED, INSTANCE], [allocation]))


IDS = st.text() | st.builds("{}::{}".format, st.sampled_from([ONE, SLICE, "GPU-9"]), st.text("0123x", max_size=3))


@given(st.lists(IDS), st.lists(IDS))
@example([f"{ONE}::" + "9" * 5000], [])
@example([f"{ONE}::0", f"{ONE}::00"], [])
def test_no_id_brings_more_than_there_is(ids: list[str], allocatable: list[str]) -> None:
    allocations = held(*ids)
    node = Inventory([SERVED, INSTANCE], allocations, [(SHARED, device_id) for device_id in allocatable])
    claims = list(replicas.claims(node))
    explained = [allocation.device_id for allocation in allocations if replicas.explains(allocation, node)]
    assert explained == [claim.device_id for claim in claims]
    for device in (ONE, SLICE):
        mine = [claim for claim in claims if device in (claim.gpu, claim.mig)]
        assert sum(claim.share for claim in mine) < 1 + 1e-9
        assert sum(claim.memory_limit_bytes or 0 for claim in mine) <= 80 * GIB


# --- MPS ---


def test_mps_keeps_a_client_to_its_part_of_memory_and_multiprocessors() -> None:
    (claim,) = found(held(f"{ONE}::1"), offered(), SERVED)
    assert (claim.system, claim.share) == ("mps", 0.25)
    assert (claim.memory_limit_bytes, claim.core_limit_ratio) == (20 * GIB, 0.25)


def test_time_slicing_limits_nothing() -> None:
    (claim,) = found(held(f"{ONE}::1"), offered())
    assert (claim.memory_limit_bytes, claim.core_limit_ratio) == (None, None)


def test_a_limit_of_a_memory_that_is_not_told_is_not_known() -> None:
    (claim,) = found(held(f"{ONE}::1"), offered(), card(CLIENT, readings=()))
    assert (claim.system, claim.memory_limit_bytes, claim.core_limit_ratio) == ("mps", None, 0.25)


def test_a_client_need_not_be_listed_as_compute_too() -> None:
    """Older drivers list it once."""
    (claim,) = found(held(f"{ONE}::1"), offered(), card(("mps",), PLAIN))
    assert claim.system == "mps"


def test_graphics_beside_mps_are_no_sign_against_it() -> None:
    (claim,) = found(held(f"{ONE}::1"), offered(), card(CLIENT, PLAIN, ("graphics",)))
    assert claim.system == "mps"


def test_a_tenants_own_mps_makes_no_limits_for_the_others() -> None:
    """The plugin's server has the card to itself: where others compute beside it, it is not the plugin's."""
    (claim,) = found(held(f"{ONE}::1"), offered(), card(CLIENT, PLAIN, PLAIN))
    assert (claim.system, claim.memory_limit_bytes) == ("time-slicing", None)


def test_on_an_instance_the_plugin_has_no_mps() -> None:
    (claim,) = found(held(f"{SLICE}::1"), offered(SLICE, 2))
    assert (claim.system, claim.memory_limit_bytes, claim.core_limit_ratio) == ("time-slicing", None, None)


def test_a_card_that_lets_one_process_in_is_served_by_mps_also_while_nobody_runs() -> None:
    idle = card(readings=(*TOTAL, Reading("compute_mode", 3.0)))
    (claim,) = found(held(f"{ONE}::0"), offered(), idle)
    assert (claim.system, claim.core_limit_ratio, claim.memory_limit_bytes) == ("mps", 0.25, 20 * GIB)


def test_a_card_open_to_all_without_clients_is_time_sliced() -> None:
    (claim,) = found(held(f"{ONE}::0"), offered(), card(readings=(*TOTAL, Reading("compute_mode", 0.0))))
    assert claim.system == "time-slicing"


def test_a_card_that_is_not_offered_since_it_is_unhealthy_is_cut_like_the_others() -> None:
    other = Device(gpu=Gpu(uuid="GPU-9", index=2))
    held_ = held(f"{ONE}::0")
    both = Inventory([SLICED, other], held_, [*offered(), *offered("GPU-9")])
    sick = Inventory([SLICED, other], held_, offered("GPU-9"))
    assert [claim.share for stock in (both, sick) for claim in replicas.claims(stock)] == [0.25, 0.25]


def test_a_tenants_own_mps_on_a_card_that_is_open_to_all_limits_nobody() -> None:
    open_to_all = card(CLIENT, PLAIN, readings=(*TOTAL, Reading("compute_mode", 0.0)))
    (claim,) = found(held(f"{ONE}::0"), offered(), open_to_all)
    assert (claim.system, claim.memory_limit_bytes) == ("time-slicing", None)


def test_mps_rounds_memory_down_to_mib_and_threads_to_per_cent() -> None:
    device = card(CLIENT, PLAIN, readings=(Reading("memory_total_bytes", 1000.0 * (1 << 20) + 7),))
    (claim,) = found(held(f"{ONE}::0"), offered(count=3), device)
    assert (claim.memory_limit_bytes, claim.core_limit_ratio) == (333 << 20, 0.33)


def test_on_wsl_a_replica_is_of_all_cards() -> None:
    claims = found(held("all::1"), [(SHARED, f"all::{number}") for number in range(4)])
    assert [(claim.gpu, claim.share) for claim in claims] == [(ONE, 0.25), (CUT, 0.25)]


def test_on_tegra_it_is_of_the_only_card() -> None:
    node = Inventory([SLICED], held("tegra::1"), [(SHARED, f"tegra::{number}") for number in range(2)])
    assert [(claim.gpu, claim.share) for claim in replicas.claims(node)] == [(ONE, 0.5)]
    assert found(held("tegra::1")) == []


def test_replicas_of_everything_are_nvidias() -> None:
    assert found(held("all::1", resource="example.com/gpu")) == []
