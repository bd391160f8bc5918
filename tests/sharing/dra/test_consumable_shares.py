"""Cards that several claims share, as NVIDIA's driver and the real scheduler of Kubernetes 1.36 recorded them."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from podgpu.agent.attribution import Attributed, Attribution
from podgpu.kube.api import ApiServer
from podgpu.kube.kubelet.podresources import PodResources
from podgpu.kube.object_watch import PodWatch
from podgpu.kube.resource_claims import ResourceClaims
from podgpu.model import ClaimedDevice, Device, Gpu, Instance, MigInstance, PoolDevice, ResourceClaim, Tenant
from podgpu.supervise import Supervisor
from tests.fakeapi.recorded import dynamic_resources, listed
from tests.fakeapi.server import FakeApi, Seen
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import given_dynamically
from tests.patience import PATIENCE
from tests.sharing.dra.test_capacity import capacity
from tests.sharing.dra.test_dra import DRIVER, POOL, container, held, pod, row

CLUSTER, NODE = "kubernetes-1.36.4-consumable-shares", "gpu-node-2"
MIG_1G = "MIG-00000002-7c44-5d55-9e66-00000000000d"


def uuid(letter: str) -> str:
    return f"GPU-0000000{letter}-4a11-4b22-8c33-00000000000{letter}"


def cards(at: float) -> tuple[Device, ...]:
    """The cards of the recorded slices. The last is divided into instances, of which the smallest is held."""
    mig = MigInstance(
        uuid=MIG_1G, gpu_instance_id=9, compute_instance_id=0, profile="1g.18gb", multiprocessors=16, start=6
    )
    return tuple(
        Device(
            gpu=Gpu(uuid=uuid(letter), index=number, minor=number, multiprocessors=132),
            at=at,
            instances=(Instance(mig=mig),) if letter == "d" else (),
        )
        for number, letter in enumerate("abcd")
    )


def users() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The pods that the claims are reserved for, each with its claim."""
    for claim in listed(CLUSTER, "api-resourceclaims.json")["items"]:
        for user in claim["status"].get("reservedFor", ()):
            yield user, claim


def pods() -> list[dict[str, Any]]:
    return [
        {
            "metadata": {
                "namespace": claim["metadata"]["namespace"],
                "name": user["name"],
                "uid": user["uid"],
                "resourceVersion": "1",
            },
            "spec": {
                "nodeName": NODE,
                "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}],
            },
            "status": {"phase": "Running"},
        }
        for user, claim in users()
    ]


def kubelet_list() -> bytes:
    """What the kubelet lists: the driver passes no share id to it."""
    return b"".join(
        given_dynamically(
            *((result["driver"].encode(), result["pool"].encode(), result["device"].encode()) for result in results),
            claim=claim["metadata"]["name"].encode(),
            pod=user["name"].encode(),
            namespace=claim["metadata"]["namespace"].encode(),
            container=b"main",
        )
        for user, claim in users()
        for results in [claim["status"]["allocation"]["devices"]["results"]]
    )


async def attributed(done: Callable[[Attributed], bool], *unreadable: str) -> Attributed:
    """Attribute until that is so. Of `unreadable` kinds the API server gives nothing."""

    def is_refused(seen: Seen) -> bool:
        return any(kind in seen.path for kind in unreadable)

    with kubelet_root() as root:
        async with (
            FakeKubelet(root) as kubelet,
            FakeApi(pods=pods(), objects=dynamic_resources(cluster=CLUSTER)) as server,
        ):
            server.refuse(403, times=1_000_000, wanted=is_refused)
            kubelet.replies = {
                "/v1.PodResourcesLister/List": Reply(kubelet_list()),
                "/v1.PodResourcesLister/GetAllocatableResources": Reply(b""),
            }
            api, allocations = ApiServer(server.url), PodResources(root, deadline=PATIENCE)
            attribution = Attribution(
                interval=0.5,
                allocations=allocations,
                dynamics=ResourceClaims(api, NODE),
                pod_sources=[PodWatch(api, NODE)],
                to_close=[allocations, api],
            )
            running = asyncio.create_task(attribution.run(Supervisor()))
            try:
                for cycle in range(int(PATIENCE / 0.02)):
                    found = await attribution.attribute(cards(float(cycle)), float(cycle))
                    if done(found):
                        return found
                    await asyncio.sleep(0.02)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                await attribution.close()
    raise AssertionError(f"{found}")


def tenants(found: Attributed) -> dict[tuple[str, str], Tenant]:
    """By the pod, without what its ReplicaSet added to its name, and the card or instance."""
    return {
        (tenant.container.pod.removeprefix("four-7cf94564d-"), tenant.mig or card.gpu.uuid): tenant
        for card in found.cards
        for tenant in card.tenants
    }


def are_up(*names: str) -> Callable[[Attributed], bool]:
    def check(found: Attributed) -> bool:
        up = {part.name for part in found.parts if part.up}
        return up >= {"podresources", *names}

    return check


async def test_a_pod_holds_the_greatest_part_that_it_consumes() -> None:
    found = tenants(await attributed(are_up("apiserver", "resource-claims")))
    shares = {place: tenant.claims[0].share for place, tenant in found.items()}
    assert shares == {
        ("4hjq2", uuid("a")): 0.25,
        ("nmzmz", uuid("a")): 0.25,
        ("z58pz", uuid("a")): 0.25,
        ("three", uuid("b")): 0.75,
        ("onemem", uuid("b")): 0.25,  # of the memory it has less
        ("s1", uuid("c")): 0.25,  # two pods have one claim on two shares
        ("s2", uuid("c")): 0.25,
        ("mig1", MIG_1G): 1.0,  # it has all multiprocessors of the instance
    }
    assert {tenant.booking.memory_limit_bytes for tenant in found.values()} == {None}
    of_instance = found["mig1", MIG_1G].booking.allocated_ratio
    assert of_instance == pytest.approx(16 / 132, abs=1e-6)


@pytest.mark.parametrize("unreadable", [("resourceclaims",), ("resourceclaims", "resourceslices")])
async def test_no_share_is_known_before_the_claims_are(unreadable: tuple[str, ...]) -> None:
    """The kubelet lists every card of a claim, also for a pod that only looks after them."""
    found = tenants(await attributed(are_up("apiserver"), *unreadable))
    assert {"4hjq2", "three", "onemem", "s1"} <= {pod for pod, _ in found}
    assert {tenant.booking.allocated_ratio for tenant in found.values()} == {None}
    assert {tenant.booking.allocated_us for tenant in found.values()} == {0}


def of(consumed: dict[str, str], *names: str, claim: str = "c") -> ResourceClaim:
    """A claim on GPU-5 of pods of these names."""
    device = ClaimedDevice(
        request="r", driver=DRIVER, pool=POOL, device="gpu-5", share_id=f"id-{claim}", consumed=consumed
    )
    return ResourceClaim(namespace="ns", name=claim, devices=(device,), pod_uids=names)


def shares_of(claims: list[ResourceClaim], offered: PoolDevice) -> dict[str, float]:
    """What each pod holds of GPU-5."""
    all_pods = [
        pod(container("main", "own"), uid=name, name=name, claims=claim.name)
        for claim in claims
        for name in claim.pod_uids
    ]
    rows = [row("gpu-5", pod=name, claim=claim.name) for claim in claims for name in claim.pod_uids]
    found = held(*rows, pods=all_pods, claims=claims, pools=[offered])
    return {each.container.pod: round(each.share, 6) for each in found}


def test_claims_that_consume_nothing_have_equal_parts() -> None:
    """As with the driver's unlimited shares."""
    offered = capacity(memory="140Gi")
    claims = [of({"memory": "0"}, name, claim=name) for name in "abc"]
    assert shares_of(claims, offered) == dict.fromkeys("abc", 0.333333)
    claims = [of({"memory": "0"}, "a", "b", claim="ab"), of({"memory": "0"}, "c", claim="c")]
    assert shares_of(claims, offered) == {"a": 0.25, "b": 0.25, "c": 0.5}


@pytest.mark.parametrize(
    ("memory", "of_the_other"),
    [("35Gi", 0.5), ("105Gi", 0.25), ("140Gi", 0.0)],
    ids=["half", "what is left", "nothing is left, so that it is not known"],
)
def test_what_consumes_nothing_has_no_more_than_the_others_leave(memory: str, of_the_other: float) -> None:
    claims = [of({"memory": memory}, "a", claim="a"), of({"memory": "0"}, "b", claim="b")]
    assert shares_of(claims, capacity(memory="140Gi"))["b"] == of_the_other


def test_a_capacity_that_is_not_known_leaves_the_share_unknown() -> None:
    """The part of it may be the greatest."""
    assert shares_of([of({"memory": "10Gi", "shares": "1"}, "a")], capacity(memory="140Gi")) == {"a": 0.0}


def test_as_long_as_one_claim_is_not_read_nobody_knows_how_many_equal_parts_there_are() -> None:
    pods = [pod(container("main", "own"), uid=name, name=name, claims=name) for name in "ab"]
    rows = [row("gpu-5", pod=name, claim=name) for name in "ab"]
    found = held(*rows, pods=pods, claims=[of({"memory": "0"}, "a", claim="a")], pools=[capacity(memory="140Gi")])
    assert {each.share for each in found} == {0.0}


AMOUNTS = st.fixed_dictionaries({"memory": st.integers(0, 40), "shares": st.integers(0, 3)})


@examples(st.lists(AMOUNTS, min_size=1, max_size=5), st.integers(1, 2))
def test_whoever_holds_a_device_holds_more_than_nothing_and_all_hold_no_more_than_it(
    amounts: list[dict[str, int]], pods_of_each: int
) -> None:
    """The scheduler admits no more than there is, and always leaves something to those who consume nothing here."""
    claims = [
        of(
            {"memory": f"{amount['memory']}Gi", "shares": str(amount["shares"])},
            *(f"p-{number}-{user}" for user in range(pods_of_each)),
            claim=f"c-{number}",
        )
        for number, amount in enumerate(amounts)
    ]
    shares = shares_of(claims, capacity(memory="250Gi", shares="16"))
    assert len(shares) == len(amounts) * pods_of_each
    assert all(share > 0 for share in shares.values())
    assert sum(shares.values()) <= 1.00001
