"""What cards, and groups of tenants on them, add up to."""

from msgspec.structs import replace

from podgpu.insight.sums import added, of_cards, of_placements
from podgpu.insight.tenants import NodeCard, placements
from podgpu.model import (
    Balance,
    Booking,
    Card,
    CardUse,
    Claim,
    ContainerRef,
    Fault,
    FreeInstances,
    Gpu,
    Holding,
    Instance,
    MigInstance,
    Reading,
    Snapshot,
    Sums,
    Tenant,
    Use,
)

NOW, HOUR = 1_800_000_000.0, 3600.0
FULL, USED, LIMIT = (
    Reading("memory_total_bytes", 80.0),
    Reading("memory_used_bytes", 30.0),
    Reading("power_limit_watts", 700.0),
)
FREE = Card(gpu=Gpu(uuid="GPU-0", index=0), readings=(FULL, USED, LIMIT))


def tenant(
    pod: str, share: float | None = 1.0, *, mig: str = "", state: str = "used", price: float | None = None
) -> Tenant:
    """A pod with a claim; one that is idle has been so for two hours."""
    ref = ContainerRef("ml", pod, "main", f"uid-{pod}")
    since = NOW - 2 * HOUR if state == "idle" else None
    return Tenant(
        container=ref,
        mig=mig,
        claims=(Claim(gpu="GPU-0", container=ref, mig=mig, share=share or 0.0),),
        booking=Booking(allocated_ratio=share),
        holding=Holding(state=state, evidence="", since=since, cost_per_hour=price),
    )


def instance(number: int, profile: str) -> Instance:
    mig = MigInstance(uuid=f"MIG-{number}", gpu_instance_id=number, compute_instance_id=0, profile=profile)
    return Instance(mig=mig, readings=(Reading("memory_total_bytes", 10.0),))


def on(card: Card, *, is_fresh: bool = True) -> NodeCard:
    snapshot = Snapshot(node="alpha", taken_at=NOW, interval_seconds=1.0, version="", cards=(card,))
    return NodeCard(snapshot, card, is_fresh)


def held(*tenants: Tenant) -> Card:
    return replace(FREE, tenants=tenants)


def group(card: Card, *, is_fresh: bool = True) -> Sums:
    return of_placements(list(placements([on(card, is_fresh=is_fresh)])))


def test_only_a_card_without_tenants_and_instances_is_free_as_a_whole() -> None:
    cut = replace(FREE, instances=(instance(1, "1g.10gb"),))
    sums = of_cards([on(FREE), on(cut), on(held(tenant("a", 0.25)))])
    assert (sums.gpus, sums.free_whole_gpus, sums.free_gpus, sums.fragmented_gpus) == (3, 1, 2.75, 0.75)


def test_a_card_in_mig_mode_without_instances_is_not_free() -> None:
    sums = of_cards([on(FREE), on(replace(FREE, gpu=Gpu(uuid="GPU-1", index=1, mig_enabled=True)))])
    assert (sums.gpus, sums.free_gpus, sums.free_whole_gpus, sums.fragmented_gpus) == (2, 1.0, 1, 0.0)


def test_instances_without_a_tenant_are_free_and_counted_by_profile() -> None:
    instances = (instance(1, "1g.10gb"), instance(2, "1g.10gb"), instance(3, "2g.20gb"))
    cut = replace(FREE, instances=instances, tenants=(tenant("a", 0.125, mig="MIG-1"),))
    assert of_cards([on(cut)]).free_instances == (FreeInstances("1g.10gb", 1), FreeInstances("2g.20gb", 1))


def test_memory_in_use_is_what_was_booked_or_what_the_card_says() -> None:
    assert of_cards([on(FREE)]).memory_used_bytes == 30
    assert of_cards([on(replace(FREE, balance=Balance(memory_bytes=0)))]).memory_used_bytes == 0
    silent = replace(FREE, readings=())
    sums = of_cards([on(FREE), on(silent)])
    assert (sums.memory_used_bytes, sums.unknown_memory, sums.memory_total_bytes) == (30, 1, 80)
    assert of_cards([on(silent)]).memory_used_bytes is None


def test_a_group_may_have_its_limit_or_all_of_its_instance_or_card() -> None:
    own = tenant("a")
    limited = replace(own, booking=replace(own.booking, memory_limit_bytes=20))
    cut = replace(FREE, instances=(instance(1, "1g.10gb"),), tenants=(tenant("b", mig="MIG-1"),))
    assert [group(card).memory_total_bytes for card in (held(limited), cut, held(own))] == [20, 10, 80]


def test_memory_of_a_tenant_that_idles_is_not_missing() -> None:
    own = tenant("a")
    assert group(held(own)).unknown_memory == 1
    assert group(held(replace(own, idle=True))).unknown_memory == 0


def test_a_share_that_is_not_known_is_counted_and_not_added() -> None:
    sums = group(held(tenant("a", 0.5), tenant("b", None)))
    assert (sums.allocated_gpus, sums.unknown_shares, sums.pods) == (0.5, 1, 2)


def test_busy_time_and_power_are_those_of_the_known_and_the_others_are_counted() -> None:
    busy = replace(tenant("a", 0.5), use=Use(ratio=0.25, watts=100.0))
    sums = group(held(busy, tenant("b", 0.5)))
    assert (sums.busy_gpus, sums.unknown_busy, sums.power_watts, sums.unknown_power) == (0.25, 1, 100.0, 1)
    sums = group(held(tenant("b")))
    assert (sums.busy_gpus, sums.power_watts) == (None, None)


def test_of_a_card_that_is_lost_or_not_fresh_only_who_holds_it_counts() -> None:
    idle = replace(held(tenant("a", state="idle")), use=CardUse(period="minute", ratio=0.5, watts=90.0))
    for card, is_fresh, lost in ((idle, False, 0), (replace(idle, fault=Fault(reason="gone")), True, 1)):
        sums = of_cards([on(card, is_fresh=is_fresh)])
        assert (sums.gpus, sums.lost_gpus, sums.allocated_gpus) == (1, lost, 1.0)
        assert (sums.busy_gpus, sums.power_watts, sums.memory_used_bytes) == (None, None, None)
        assert group(card, is_fresh=is_fresh).lost_gpus == lost
    assert of_cards([on(idle, is_fresh=False)]).unused_gpus is None, "it is known of none, and no 0"
    assert of_cards([on(idle, is_fresh=False)]).unknown_pods == 1


def test_what_is_held_and_not_used_costs_by_the_hour_and_since_it_is_idle() -> None:
    sums = group(held(tenant("a", 0.5, state="idle", price=2.0), tenant("b", 0.25, price=1.0), tenant("c", 0.25)))
    assert (sums.unused_gpus, sums.unused_pods) == (0.5, 1)
    assert (sums.cost_per_hour, sums.unused_cost_per_hour, sums.unused_cost) == (3.0, 2.0, 4.0)


def test_nothing_idle_costs_nothing_and_without_prices_no_cost_is_known() -> None:
    sums = group(held(tenant("a", price=2.0)))
    assert (sums.cost_per_hour, sums.unused_cost_per_hour, sums.unused_cost) == (2.0, 0.0, 0.0)
    sums = group(held(tenant("a", state="idle")))
    assert (sums.cost_per_hour, sums.unused_cost_per_hour, sums.unused_cost) == (None, None, None)


def test_the_sums_of_nodes_add_up_and_what_none_knows_stays_unknown() -> None:
    first = of_cards([on(FREE)])
    second = of_cards([on(replace(FREE, readings=(), instances=(instance(1, "1g.10gb"),)))])
    sums = added([first, second, second])
    assert (sums.gpus, sums.free_whole_gpus, sums.memory_used_bytes, sums.unknown_memory) == (3, 1, 30, 2)
    assert (sums.power_limit_watts, sums.power_watts) == (700.0, None)
    assert sums.free_instances == (FreeInstances("1g.10gb", 2),)
    assert added([]) == of_cards(())
