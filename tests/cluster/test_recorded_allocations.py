"""The pods of a recorded Kubernetes 1.36 with no agent: every pod on its GPU, by the API server alone."""

from podgpu.cluster.allocations import ClusterAllocations, allocate
from podgpu.model import Card, Workload
from tests.fakeapi.recorded import NODE
from tests.fakeapi.whole import objects_of, reading, recorded_cluster
from tests.patience import until

Places = dict[str, set[tuple[str, str]]]


def uuid(number: int) -> str:
    return f"GPU-7f3c9a1{number}-52d4-4b8e-9c60-1a2b3c4d5e6{number}"


def mig(number: int) -> str:
    return f"MIG-0a1b2c3d-1111-5111-8111-{number:012}"


async def allocated(cluster: str) -> ClusterAllocations:
    return allocate(await objects_of(recorded_cluster(cluster)))


def cards_of(found: ClusterAllocations) -> tuple[Card, ...]:
    snapshot = found.nodes[NODE].snapshot
    assert snapshot is not None
    return snapshot.cards


def places(found: ClusterAllocations) -> Places:
    """Each container's cards and instances."""
    seen: Places = {}
    for card in cards_of(found):
        for tenant in card.tenants:
            who = tenant.container
            name = f"{who.namespace}/{who.pod.partition('-')[0]}/{who.container}"
            seen.setdefault(name if "dra" not in who.pod else f"{who.pod}/{who.container}", set()).add(
                (card.gpu.uuid, tenant.mig)
            )
    return seen


PLUGIN = {
    "team-b/finetune/tune": {(uuid(0), "")},
    "team-b/nightly/tune": {("", mig(1)), ("", mig(2))},
    "team-b/share/app": {(uuid(4), "")},
    "team-a/chat/server": {(uuid(3), "")},
}


async def test_every_pod_of_a_device_plugin_is_on_its_gpu() -> None:
    found = await allocated("kubernetes-1.36.4")
    assert places(found) == {**PLUGIN, "team-a/rank/ps": {(uuid(2), "")}}


async def test_every_pod_of_a_dra_driver_is_on_its_gpu_or_instance() -> None:
    """The second instance has no UUID, as those that the driver makes on demand: it has the driver's name for it."""
    found = await allocated("kubernetes-1.36.4-dra")
    assert places(found) == {
        **PLUGIN,
        "dra-own/a": {(uuid(6), "")},
        "dra-own/b": {(uuid(6), "")},
        "dra-shared-1/a": {(uuid(5), "")},
        "dra-shared-2/a": {(uuid(5), "")},
        "dra-mig/left": {(uuid(7), "MIG-0a1b2c3d-7777-5111-8111-000000000070")},
        "dra-mig/right": {(uuid(7), "gpu-7-mig-1g18gb-19-1")},
    }


async def test_what_is_not_known_stays_unknown() -> None:
    """One of three whole cards is free, and nobody names it. MIG instances do not name their card."""
    found = await allocated("kubernetes-1.36.4")
    by_uuid = {card.gpu.uuid: card for card in cards_of(found) if card.gpu.uuid}
    nameless = [card for card in cards_of(found) if not card.gpu.uuid]
    assert sorted(by_uuid) == [uuid(0), uuid(2), uuid(3), uuid(4)]
    assert {uuid: card.gpu.index for uuid, card in by_uuid.items()} == {
        uuid(0): -1,
        uuid(2): -1,
        uuid(3): -1,
        uuid(4): 4,  # by the scheduler's note
    }
    assert [(card.gpu.mig_enabled, len(card.tenants)) for card in nameless] == [(True, 2), (False, 0)]
    assert not any(tenant.processes or tenant.booking.busy_us for card in cards_of(found) for tenant in card.tenants)


async def test_shares_and_limits_are_those_of_the_claims() -> None:
    found = await allocated("kubernetes-1.36.4")
    claims = {
        claim.container.pod: (claim.system, claim.share, claim.memory_limit_bytes)
        for card in cards_of(found)
        for tenant in card.tenants
        for claim in tenant.claims
    }
    assert claims["share-1"] == ("gpushare", 4 / 11, 4 << 30)
    assert claims["chat-584ddf76fc-chpsw"] == ("time-slicing", 1 / 4, None)
    assert claims["rank-0"] == ("exclusive", 1.0, None)


async def test_a_share_that_could_be_two_sizes_is_not_guessed() -> None:
    """With only replica 1 in use, the four replicas may be of one card or of two."""
    found = await allocated("kubernetes-1.36.4-dra")
    (card,) = (card for card in cards_of(found) if card.gpu.uuid == uuid(3))
    assert card.tenants[0].claims[0].share == 0.0
    assert card.tenants[0].booking.allocated_ratio is None


async def test_a_node_says_what_it_offers_and_that_nobody_reads_it() -> None:
    node = (await allocated("kubernetes-1.36.4")).nodes[NODE]
    assert (node.state, node.origin, node.reason, node.ready) == ("allocation", "api", "no_agent", True)
    assert node.allocatable["nvidia.com/gpu"] == "3"
    assert "cpu" not in node.allocatable


async def test_workloads_are_named() -> None:
    async with reading(recorded_cluster()) as reader:
        await until(lambda: reader.objects().workloads)
        found = allocate(reader.objects())
    made_for = {tenant.workload for card in cards_of(found) for tenant in card.tenants}
    assert Workload(kind="Deployment", name="chat") in made_for
