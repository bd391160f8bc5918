"""Dynamic resources: which of a claim's devices a container may use, and which card or instance that is."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.model import (
    Allocation,
    Claim,
    ClaimedDevice,
    ClaimUse,
    Device,
    DynamicAllocation,
    ExtendedUse,
    Gpu,
    Instance,
    MigInstance,
    Pod,
    PodContainer,
    PoolDevice,
    ResourceClaim,
)
from podgpu.sharing import dra
from podgpu.sharing.inventory import Inventory

DRIVER, POOL = "gpu.nvidia.com", "node-1"
LEFT, RIGHT = "gpu-7-mig-1g18gb-19-0", "gpu-7-mig-1g18gb-19-1"
UNKNOWN = 0.0  # the share of a device whose claim was not read


def mig(uuid: str, start: int | None, profile: str = "1g.18gb") -> Instance:
    return Instance(mig=MigInstance(uuid=uuid, gpu_instance_id=1, compute_instance_id=0, profile=profile, start=start))


def node(*instances: Instance) -> tuple[Device, ...]:
    """Cards whose numbers in /dev are not their places in the list."""
    return (
        Device(gpu=Gpu(uuid="GPU-5", index=0, minor=5)),
        Device(gpu=Gpu(uuid="GPU-0", index=1, minor=0)),
        Device(gpu=Gpu(uuid="GPU-7", index=2, minor=7), instances=instances),
    )


DEVICES = node(mig("MIG-left", 0), mig("MIG-right", 1))


def row(
    device: str, container: str = "main", *, pod: str = "p", claim: str = "c", driver: str = DRIVER
) -> DynamicAllocation:
    return DynamicAllocation(
        namespace="ns",
        pod=pod,
        container=container,
        claim_namespace="ns",
        claim_name=claim,
        driver=driver,
        pool=POOL,
        device=device,
    )


def claimed(*devices: tuple[str, str], name: str = "c", uids: Iterable[str] = ("u",)) -> ResourceClaim:
    """A claim with a device for each request."""
    given = tuple(
        ClaimedDevice(request=request, driver=DRIVER, pool=POOL, device=device) for request, device in devices
    )
    return ResourceClaim(namespace="ns", name=name, devices=given, pod_uids=tuple(uids))


def container(name: str = "main", *uses: str, told: Iterable[tuple[str, str]] = ()) -> PodContainer:
    """Uses are CLAIM or CLAIM/REQUEST, by the pod's own name for it."""
    parts = [use.partition("/") for use in uses]
    return PodContainer(
        name=name, uses=tuple(ClaimUse(claim, request) for claim, _, request in parts), devices=tuple(told)
    )


def pod(*containers: PodContainer, uid: str = "u", name: str = "p", claims: str = "c") -> Pod:
    """A pod that calls its claim `own`."""
    names = {"own": claims} if claims else {}
    return Pod(namespace="ns", name=name, uid=uid, phase="Running", containers=containers, resource_claims=names)


def offered(device: str, **attributes: str) -> PoolDevice:
    return PoolDevice(driver=DRIVER, pool=POOL, device=device, attributes=attributes)


def held(
    *rows: DynamicAllocation,
    pods: Iterable[Pod] = (),
    claims: Iterable[ResourceClaim] | None = None,
    pools: Iterable[PoolDevice] = (),
    devices: Iterable[Device] = DEVICES,
) -> list[Claim]:
    """What pods hold. Unless other claims are known, they are as the kubelet lists them."""
    known = [_listed(row) for row in rows] if claims is None else claims
    inventory = Inventory(devices, pods=pods, dynamic=rows, resource_claims=known, pool_devices=pools)
    return list(dra.claims(inventory))


def _listed(row: DynamicAllocation) -> ResourceClaim:
    device = ClaimedDevice(request="any", driver=row.driver, pool=row.pool, device=row.device)
    return ResourceClaim(namespace=row.claim_namespace, name=row.claim_name, devices=(device,))


def shown(claims: Iterable[Claim]) -> set[tuple[str, str, str, float]]:
    return {
        (claim.container.pod, claim.container.container, claim.mig or claim.gpu, round(claim.share, 3))
        for claim in claims
    }


TWO = [container("a", "own/left"), container("b", "own/right")]
TWO_ROWS = [row(device, name) for name in ("a", "b") for device in (LEFT, RIGHT)]
TWO_CLAIM = claimed(("left", LEFT), ("right", RIGHT))
EACH_ITS_OWN = {("p", "a", "MIG-left", 1.0), ("p", "b", "MIG-right", 1.0)}


def test_a_card_by_the_number_in_its_name() -> None:
    (claim,) = held(row("gpu-5"))
    assert (claim.gpu, claim.mig, claim.share) == ("GPU-5", "", 1.0)
    assert (claim.system, claim.source) == ("dra", "podresources")
    assert (claim.resource, claim.device_id) == (DRIVER, "node-1/gpu-5")
    assert (claim.container.container, claim.container.pod_uid) == ("main", "")


def test_an_instance_knows_its_card_and_its_pod() -> None:
    (claim,) = held(row(LEFT), pods=[pod(container("main", "own"))])
    assert (claim.gpu, claim.mig, claim.container.pod_uid) == ("GPU-7", "MIG-left", "u")


def test_the_uuid_that_the_driver_tells_is_better_than_a_name() -> None:
    assert shown(held(row("gpu-5"), pools=[offered("gpu-5", uuid="GPU-0")])) == {("p", "main", "GPU-0", 1.0)}
    assert shown(held(row("some-mig"), pools=[offered("some-mig", uuid="MIG-left")])) == {
        ("p", "main", "MIG-left", 1.0)
    }
    assert held(row("gpu-5"), pools=[offered("gpu-5", uuid="GPU-elsewhere")]) == []


def test_another_driver_is_understood_by_the_uuid_it_tells_alone() -> None:
    other = "gpu.example.com"
    told = PoolDevice(driver=other, pool=POOL, device="gpu-5", attributes={"uuid": "GPU-0"})
    assert held(row("gpu-5", driver=other)) == []
    assert shown(held(row("gpu-5", driver=other), pools=[told])) == {("p", "main", "GPU-0", 1.0)}


@pytest.mark.parametrize(
    ("name", "instances", "found"),
    [
        (LEFT, [mig("MIG-a", 0), mig("MIG-b", 1)], "MIG-a"),
        (RIGHT, [mig("MIG-a", 0), mig("MIG-b", 1)], "MIG-b"),
        ("gpu-7-mig-1g18gb-19-2", [mig("MIG-a", 0), mig("MIG-b", 1)], None),
        ("gpu-7-mig-2g35gb-14-0", [mig("MIG-a", 0), mig("MIG-b", 0, "2g.35gb")], "MIG-b"),
        ("gpu-7-mig-1g18gb-me-20-0", [mig("MIG-a", 0), mig("MIG-b", 0, "1g.18gb+me")], "MIG-b"),
        # where the instances start is not known: the only one of the profile
        (RIGHT, [mig("MIG-a", None), mig("MIG-b", None, "2g.35gb")], "MIG-a"),
        (RIGHT, [mig("MIG-a", None), mig("MIG-b", None)], None),
        (RIGHT, [mig("MIG-a", 0), mig("MIG-b", None)], None),
        # two compute instances in one GPU instance
        (LEFT, [mig("MIG-a", 0), mig("MIG-b", 0)], None),
        # another card, no card, no name of the driver's
        ("gpu-5-mig-1g18gb-19-0", [mig("MIG-a", 0)], None),
        ("gpu-9-mig-1g18gb-19-0", [mig("MIG-a", 0)], None),
        ("gpu-9", [], None),
        ("gpu-vfio-5", [], None),
        ("gpu-5-", [], None),
        ("gpu-\u0665", [], None),  # a digit elsewhere
        ("gpu-7-mig-19-0-1", [mig("MIG-a", 0)], None),
    ],
)
def test_an_instance_by_its_profile_and_where_it_starts_or_nothing(
    name: str, instances: list[Instance], found: str | None
) -> None:
    devices = node(*instances)
    assert [claim.mig for claim in held(row(name), devices=devices)] == ([found] if found else [])
    told = Allocation(namespace="ns", pod="p", container="c", resource=DRIVER, device_id=f"{POOL}/{name}")
    assert dra.explains(told, Inventory(devices)) is bool(found)


def test_a_name_and_a_parent_that_contradict_each_other_are_nothing() -> None:
    assert held(row(LEFT), pools=[offered(LEFT, parentUUID="GPU-5")]) == []
    assert len(held(row(LEFT), pools=[offered(LEFT, parentUUID="GPU-7")])) == 1


def test_a_channel_between_nodes_is_understood_and_no_gpu() -> None:
    told = Allocation(namespace="ns", pod="p", container="c", resource=dra.NO_GPU, device_id="node-1/channel-0")
    assert dra.explains(told, Inventory(DEVICES))
    assert held(row("channel-0", driver=dra.NO_GPU)) == []


def test_the_kubelet_lists_too_much_and_the_claim_says_what_is_for_whom() -> None:
    assert shown(held(*TWO_ROWS, pods=[pod(*TWO)], claims=[TWO_CLAIM])) == EACH_ITS_OWN


def test_without_the_claim_the_kubelets_list_is_taken_as_it_is_and_no_share_is_known() -> None:
    """The claim may have a part of the device, or look after it. The kubelet lists both in the same way."""
    places = {("p", name, device, UNKNOWN) for name in "ab" for device in ("MIG-left", "MIG-right")}
    assert shown(held(*TWO_ROWS, pods=[pod(*TWO)], claims=[])) == places


def test_a_claim_that_is_reserved_for_others_is_older_than_the_pod() -> None:
    stale = claimed(("left", "gpu-5"), ("right", "gpu-0"), uids=["before"])
    shares = {claim.share for claim in held(*TWO_ROWS, pods=[pod(*TWO)], claims=[stale])}
    assert shares == {UNKNOWN}, "its own claim is not read yet"
    assert held(pods=[pod(*TWO)], claims=[stale]) == []


def test_a_use_without_a_request_means_all_of_the_claim() -> None:
    rows = [row("gpu-5"), row("gpu-0")]
    claim = claimed(("a", "gpu-5"), ("b", "gpu-0"))
    assert len(held(*rows, pods=[pod(container("main", "own"))], claims=[claim])) == 2


def test_an_alternative_belongs_to_its_request() -> None:
    claim = claimed(("left/small", LEFT), ("leftover", RIGHT))
    assert shown(held(row(LEFT), row(RIGHT), pods=[pod(container("main", "own/left"))], claims=[claim])) == {
        ("p", "main", "MIG-left", 1.0)
    }


@pytest.mark.parametrize("own", ["c", ""])
def test_the_status_of_the_pod_tells_exactly(own: str) -> None:
    """Also where only the claim has its name, as with the kubelet's Pods API."""
    told = pod(
        container("a", "own/left", told=[("claim:own/left", f"{DRIVER}/{POOL}/{LEFT}")]),
        container("b", "own/right", told=[("claim:own/right", f"{DRIVER}/{POOL}/{RIGHT}")]),
        claims=own,
    )
    found = held(*TWO_ROWS, pods=[told], claims=[replace(TWO_CLAIM, pod_name="own")])
    assert shown(found) == EACH_ITS_OWN
    assert {claim.source for claim in found} == {"pod status"}
    assert {claim.device_id for claim in found} == {f"{POOL}/{LEFT}", f"{POOL}/{RIGHT}"}


def test_a_status_that_lists_too_much_is_cut_down_too() -> None:
    """As that of the first kubelets that wrote it."""
    everything = [f"{DRIVER}/{POOL}/{device}" for device in (LEFT, RIGHT)]
    told = pod(
        container("a", "own/left", told=[("claim:own/left", device_id) for device_id in everything]),
        container("b", "own/right", told=[("claim:own/right", device_id) for device_id in everything]),
    )
    assert shown(held(pods=[told], claims=[TWO_CLAIM])) == EACH_ITS_OWN


@pytest.mark.parametrize(
    "device_id", [f"k8s.gpu.nvidia.com/claim=0a1b-{LEFT}", f"{DRIVER}/{LEFT}", LEFT, "a/b/", "//", "a/b=c/d"]
)
def test_a_status_that_names_no_device_is_passed_over_for_the_kubelets_list(device_id: str) -> None:
    told = [container(plain.name, told=[("claim:own", device_id)]) for plain in TWO]
    both = [
        PodContainer(name=each.name, uses=each.uses, devices=other.devices)
        for each, other in zip(TWO, told, strict=True)
    ]
    assert shown(held(*TWO_ROWS, pods=[pod(*both)], claims=[TWO_CLAIM])) == EACH_ITS_OWN


def test_a_pool_may_have_slashes() -> None:
    told = container("main", "own", told=[("claim:own", f"{DRIVER}/rack/{POOL}/gpu-5")])
    device = ClaimedDevice(request="gpu", driver=DRIVER, pool=f"rack/{POOL}", device="gpu-5")
    (claim,) = held(pods=[pod(told)], claims=[ResourceClaim(namespace="ns", name="c", devices=(device,))])
    assert (claim.gpu, claim.device_id) == ("GPU-5", "rack/node-1/gpu-5")


def test_the_status_of_one_claim_leaves_the_others_to_the_kubelet() -> None:
    both = container("main", "own", "second", told=[("claim:own", f"{DRIVER}/{POOL}/gpu-5")])
    holder = Pod(
        namespace="ns",
        name="p",
        uid="u",
        containers=(both,),
        resource_claims={"own": "c", "second": "d"},
    )
    rows = [row("gpu-5"), row("gpu-0", claim="d")]
    found = held(*rows, pods=[holder], claims=[claimed(("r", "gpu-5")), claimed(("r", "gpu-0"), name="d")])
    assert shown(found) == {("p", "main", "GPU-5", 1.0), ("p", "main", "GPU-0", 1.0)}


def test_a_container_keeps_the_devices_of_two_claims_that_the_pod_does_not_name() -> None:
    status = [("claim:own", f"{DRIVER}/{POOL}/gpu-5"), ("claim:second", f"{DRIVER}/{POOL}/gpu-0")]
    both = pod(container("main", "own", "second", told=status), claims="")
    rows = [row("gpu-5", claim="c-1"), row("gpu-0", claim="c-2")]
    assert shown(held(*rows, pods=[both])) == {("p", "main", "GPU-5", UNKNOWN), ("p", "main", "GPU-0", UNKNOWN)}


def test_where_the_kubelet_lists_nothing_the_reserved_claim_tells() -> None:
    claims = held(pods=[pod(*TWO)], claims=[TWO_CLAIM])
    assert shown(claims) == EACH_ITS_OWN
    assert {claim.source for claim in claims} == {"resourceclaim"}


def test_a_claim_that_nobody_reserved_gives_nothing_by_itself() -> None:
    assert held(pods=[pod(*TWO)], claims=[claimed(("left", LEFT), uids=())]) == []


def test_an_init_container_that_is_over_holds_nothing() -> None:
    before = PodContainer(name="warm", is_init=True, uses=(ClaimUse("own"),))
    beside = PodContainer(name="side", is_init=True, running=True, uses=(ClaimUse("own"),))
    claim = claimed(("gpu", "gpu-5"))
    assert shown(held(pods=[pod(before, container("main", "own"))], claims=[claim])) == {("p", "main", "GPU-5", 1.0)}
    assert shown(held(pods=[pod(beside, container("main", "own"))], claims=[claim])) == {
        ("p", "side", "GPU-5", 0.5),
        ("p", "main", "GPU-5", 0.5),
    }


def test_a_pod_that_has_ended_holds_nothing() -> None:
    ended = Pod(
        namespace="ns",
        name="p",
        uid="u",
        phase="Succeeded",
        containers=(container("main", "own", told=[("claim:own", f"{DRIVER}/{POOL}/gpu-5")]),),
        resource_claims={"own": "c"},
    )
    assert held(row("gpu-5"), pods=[ended], claims=[claimed(("gpu", "gpu-5"))]) == []


def test_pods_that_share_a_claim_share_the_device() -> None:
    pods = [pod(container("main", "own"), uid=uid, name=uid) for uid in ("u", "v", "w")]
    claim = claimed(("gpu", "gpu-5"), uids=["u", "v", "w"])
    rows = [row("gpu-5", pod=name) for name in ("u", "v")]  # the third has just come
    assert shown(held(*rows, pods=pods, claims=[claim])) == {(name, "main", "GPU-5", 0.333) for name in ("u", "v", "w")}


def test_one_container_holds_a_device_once_however_often_it_is_told() -> None:
    """Two claims may be given parts of one device."""
    rows = [row("gpu-5"), row("gpu-5", claim="d")]
    assert shown(held(*rows)) == {("p", "main", "GPU-5", 1.0)}


def test_extended_resources_by_the_mappings_of_the_special_claim() -> None:
    special = Pod(
        namespace="ns",
        name="p",
        uid="u",
        containers=(container("a"), container("b")),
        extended_claim="c",
        extended=(
            ExtendedUse(container="a", resource="nvidia.com/gpu", request="container-0-request-0"),
            ExtendedUse(container="b", resource="nvidia.com/gpu", request="container-1-request-0"),
        ),
    )
    claim = claimed(("container-0-request-0", "gpu-5"), ("container-1-request-0", "gpu-0"))
    expected = {("p", "a", "GPU-5", 1.0), ("p", "b", "GPU-0", 1.0)}
    rows = [row(device, name) for name in "ab" for device in ("gpu-5", "gpu-0")]
    assert shown(held(*rows, pods=[special], claims=[claim])) == expected
    assert shown(held(pods=[special], claims=[claim])) == expected


def test_of_two_pods_of_one_name_the_kubelet_means_neither() -> None:
    told = container("main", "own", told=[("claim:own", f"{DRIVER}/{POOL}/gpu-5")])
    both = [pod(container("main", "own"), uid="old"), pod(told, uid="new")]
    (by_status,) = held(row("gpu-5"), pods=both)
    assert by_status.container.pod_uid == "new"
    (by_name,) = held(row("gpu-5"), pods=[pod(uid="old"), pod(uid="new")])
    assert by_name.container.pod_uid == ""


WORDS = st.text(alphabet="gpu-mi17/=: .x", max_size=24)


@given(st.lists(st.tuples(WORDS, WORDS), max_size=6), st.lists(WORDS, max_size=4))
def test_whatever_a_status_or_a_name_says_shares_stay_whole_and_devices_are_ours(
    told: list[tuple[str, str]], names: list[str]
) -> None:
    """What the claim does not have is of unknown size."""
    holder = pod(container("main", "own", told=[(f"claim:{name}", device) for name, device in told]))
    rows = *(row(name, "b") for name in names), row("gpu-5")
    claims = held(*rows, pods=[holder], claims=[claimed(("r", "gpu-5"))])
    for device in {claim.mig or claim.gpu for claim in claims}:
        assert device in ("GPU-5", "GPU-0", "GPU-7", "MIG-left", "MIG-right")
        shares = sum(claim.share for claim in claims if (claim.mig or claim.gpu) == device)
        assert shares == pytest.approx(1.0) or (shares == UNKNOWN and device != "GPU-5")


def test_a_claim_made_from_a_template_names_itself_where_the_pod_does_not() -> None:
    """The kubelet's list has every device of it under each container, also one with admin access."""
    made = ResourceClaim(
        namespace="ns",
        name="p-gpus-x7k2p",
        pod_name="gpus",
        devices=claimed(("big", "gpu-5"), ("small", "gpu-0")).devices,
        pod_uids=("u",),
    )
    containers = (container("a", "gpus/big"), container("b", "gpus/small"))
    pod = Pod(namespace="ns", name="p", uid="u", phase="Running", containers=containers)
    rows = [row(device, name, claim=made.name) for name in ("a", "b") for device in ("gpu-5", "gpu-0", "gpu-7")]
    stock = Inventory(DEVICES, (), (), [pod], dynamic=rows, resource_claims=[made])
    assert {(claim.container.container, claim.gpu, claim.share) for claim in dra.claims(stock)} == {
        ("a", "GPU-5", 1.0),
        ("b", "GPU-0", 1.0),
    }
