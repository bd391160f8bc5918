"""Claims that consume a part of a card's capacity."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from podgpu.model import Claim, ClaimedDevice, PoolDevice, ResourceClaim
from tests.sharing.dra.test_dra import DRIVER, POOL, container, held, pod, row, shown

MIB = 1 << 20
HAMI = "hami-core-gpu.project-hami.io"


def share(share_id: str, consumed: dict[str, str], request: str = "r", driver: str = DRIVER) -> ClaimedDevice:
    device = "hami-gpu-5" if driver == HAMI else "gpu-5"
    return ClaimedDevice(request=request, driver=driver, pool=POOL, device=device, share_id=share_id, consumed=consumed)


def shared(*devices: ClaimedDevice, name: str = "c", uid: str = "u") -> ResourceClaim:
    return ResourceClaim(namespace="ns", name=name, devices=devices, pod_uids=(uid,))


def capacity(driver: str = DRIVER, device: str = "gpu-5", **capacity: str) -> PoolDevice:
    return PoolDevice(driver=driver, pool=POOL, device=device, attributes={"uuid": "GPU-5"}, capacity=capacity)


def parts(claims: Iterable[Claim]) -> dict[str, tuple[float, int | None, float | None]]:
    return {
        f"{claim.container.pod}/{claim.container.container}": (
            round(claim.share, 6),
            claim.memory_limit_bytes,
            claim.core_limit_ratio,
        )
        for claim in claims
    }


def test_claims_have_of_a_card_what_they_consume() -> None:
    pods = pod(container("main", "own")), pod(container("main", "own"), uid="v", name="q", claims="d")
    claims = (
        shared(share("1", {"memory": "100Mi"})),
        shared(share("2", {"memory": "700Mi"}), name="d", uid="v"),
    )
    rows = row("gpu-5"), row("gpu-5", pod="q", claim="d")
    found = held(*rows, pods=pods, claims=claims, pools=[capacity(memory="1000Mi")])
    assert parts(found) == {"p/main": (0.1, None, None), "q/main": (0.7, None, None)}


def test_two_parts_of_a_card_in_one_claim_are_for_two_requests() -> None:
    two = pod(container("a", "own/x"), container("b", "own/y"))
    claim = shared(share("1", {"memory": "100Mi"}, "x"), share("2", {"memory": "200Mi"}, "y"))
    rows = row("gpu-5", "a"), row("gpu-5", "b")
    claims = held(*rows, pods=[two], claims=[claim], pools=[capacity(memory="1000Mi")])
    assert parts(claims) == {"p/a": (0.1, None, None), "p/b": (0.2, None, None)}


@pytest.mark.parametrize(
    ("listed", "shares"), [(("1", "2"), [0.1, 0.2]), (("2",), [0.2]), (("3",), []), (("",), [0.1, 0.2])]
)
def test_only_parts_that_the_kubelet_lists_are_held(listed: tuple[str, ...], shares: list[float]) -> None:
    """Older kubelets list a device without its parts."""
    claim = shared(share("1", {"memory": "100Mi"}), share("2", {"memory": "200Mi"}))
    rows = [replace(row("gpu-5"), share_id=share_id) for share_id in listed]
    node = pod(container("main", "own"))
    claims = held(*rows, pods=[node], claims=[claim], pools=[capacity(memory="1000Mi")])
    assert [round(claim.share, 6) for claim in claims] == shares


def test_a_part_whose_claim_cannot_be_read_is_of_unknown_size() -> None:
    """The kubelet may name it, but does not say how large it is."""
    for share_id in ("1", ""):
        part = held(replace(row("gpu-5"), share_id=share_id), pods=[pod(container("main", "own"))], claims=[])
        assert parts(part) == {"p/main": (0.0, None, None)}


def test_a_claim_that_names_no_parts_is_read_all_the_same() -> None:
    claim = shared(share("", {"memory": "100Mi"}))
    claims = held(
        replace(row("gpu-5"), share_id="1"),
        pods=[pod(container("main", "own"))],
        claims=[claim],
        pools=[capacity(memory="1000Mi")],
    )
    assert parts(claims) == {"p/main": (0.1, None, None)}


def test_containers_of_one_part_share_it_and_each_has_the_limit_that_a_library_enforces() -> None:
    two = pod(container("a", "own"), container("b", "own"))
    rows = row("hami-gpu-5", "a", driver=HAMI), row("hami-gpu-5", "b", driver=HAMI)
    claim = shared(share("1", {"memory": "100Mi"}, driver=HAMI))
    claims = held(*rows, pods=[two], claims=[claim], pools=[capacity(HAMI, "hami-gpu-5", memory="1000Mi")])
    assert parts(claims) == {"p/a": (0.05, 100 * MIB, None), "p/b": (0.05, 100 * MIB, None)}


@pytest.mark.parametrize(
    ("consumed", "part"),
    [
        ({"cores": "30", "memory": "100Mi"}, (0.3, 100 * MIB, 0.3)),
        ({"cores": "0", "memory": "100Mi"}, (0.1, 100 * MIB, None)),  # no limit
        ({"memory": str(100 * MIB + 7)}, (0.1, 100 * MIB, None)),  # the library counts in MiB
        ({}, (1.0, None, None)),  # nobody else can have it
        ({"bandwidth": "30"}, (0.0, None, None)),  # says nothing of a share
        ({"memory": "many"}, (0.0, None, None)),
    ],
)
@pytest.mark.parametrize("has_slices", [True, False])
def test_hamis_driver(
    consumed: dict[str, str], part: tuple[float, int | None, float | None], *, has_slices: bool
) -> None:
    """Without slices its devices have the number in /dev in their names, but no capacity."""
    pools = [capacity(HAMI, "hami-gpu-5", cores="100", memory="1000Mi")] if has_slices else []
    claims = held(
        row("hami-gpu-5", driver=HAMI),
        pods=[pod(container("main", "own"))],
        claims=[shared(share("1", consumed, driver=HAMI))],
        pools=pools,
    )
    (claim,) = claims
    assert (claim.gpu, claim.memory_limit_bytes) == ("GPU-5", part[1])
    if has_slices:
        assert parts(claims) == {"p/main": part}


def test_a_status_that_names_what_the_claim_does_not_have_is_passed_over() -> None:
    told = [("claim:own/r", f"{DRIVER}/{POOL}/gpu-5/00000000-0000-4000-8000-000000000001")]
    claim = shared(share("1", {"memory": "100Mi"}))
    rows, pools = [row("gpu-5")], [capacity(memory="1000Mi")]
    claims = held(*rows, pods=[pod(container("main", "own", told=told))], claims=[claim], pools=pools)
    assert parts(claims) == {"p/main": (0.1, None, None)}


def test_a_claim_of_a_group_of_pods_is_theirs_who_name_it() -> None:
    claim = ResourceClaim(
        namespace="ns",
        name="c",
        devices=(ClaimedDevice(request="r", driver=DRIVER, pool=POOL, device="gpu-5"),),
    )
    pods = pod(container("main", "own")), pod(container("main", "own"), uid="v", name="q")
    claims = held(row("gpu-5"), row("gpu-5", pod="q"), pods=pods, claims=[claim])
    assert shown(claims) == {("p", "main", "GPU-5", 0.5), ("q", "main", "GPU-5", 0.5)}
