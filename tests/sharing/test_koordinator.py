"""Koordinator's notes: written by a scheduler, or by anybody."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podgpu.model import Allocation, Claim, Device, Gpu, Instance, MigInstance, Pod, PodContainer
from podgpu.sharing import koordinator
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.kube_cards import MOST_BYTES

ZERO, ONE = "GPU-minor-0", "GPU-minor-1"
DEVICES = (
    Device(
        gpu=Gpu(uuid=ONE, index=0, minor=1),
        instances=(Instance(mig=MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0)),),
    ),
    Device(gpu=Gpu(uuid=ZERO, index=1, minor=0)),
    Device(gpu=Gpu(uuid="GPU-nameless", index=2)),
)
GIB = 1 << 30
HALF = {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "8Gi"}


def note(*entries: Any) -> str:
    return json.dumps({"gpu": entries, "rdma": [{"minor": 0, "id": "0000:09:00.0", "extension": None}]})


def noted(
    text: str,
    *containers: str,
    init: Sequence[str] = (),
    phase: str = "Running",
    uid: str = "u",
    limits: dict[str, dict[str, str]] | None = None,
) -> Pod:
    return Pod(
        namespace="ns",
        name="p",
        uid=uid,
        phase=phase,
        annotations={koordinator.ANNOTATION: text},
        containers=tuple(
            PodContainer(
                name=name,
                is_init=name in init,
                is_ephemeral=name == "debug",
                limits=(limits or {}).get(name, {}),
            )
            for name in (*init, *(containers or ("main",)))
        ),
    )


def listed(device_id: str, resource: str, container: str = "main") -> Allocation:
    return Allocation(namespace="ns", pod="p", container=container, resource=resource, device_id=device_id)


def found(pod: Pod, *allocations: Allocation) -> list[Claim]:
    return list(koordinator.claims(Inventory(DEVICES, allocations, (), [pod])))


def test_a_part_of_a_card_by_its_minor() -> None:
    (claim,) = found(noted(note({"minor": 1, "resources": HALF})))
    assert (claim.gpu, claim.mig, claim.share, claim.memory_limit_bytes) == (ONE, "", 0.5, 8 * GIB)
    assert (claim.container.container, claim.container.pod_uid) == ("main", "u")
    assert (claim.system, claim.source) == ("koordinator", "annotation")
    assert (claim.resource, claim.device_id) == ("koordinator.sh/gpu-core", "minor 1")


def test_several_cards() -> None:
    claims = found(noted(note({"minor": 1, "resources": HALF}, {"minor": 0, "resources": HALF})))
    assert [claim.gpu for claim in claims] == [ONE, ZERO]


@pytest.mark.parametrize(
    ("entry", "gpu"),
    [
        ({"minor": 1, "id": ONE}, ONE),
        ({"id": ZERO}, ZERO),
        ({"minor": 7, "id": ZERO}, ZERO),
        ({"minor": 1, "id": "0"}, ONE),
        ({"minor": 1, "id": ZERO}, None),
        ({"minor": 1, "id": "GPU-elsewhere"}, None),
        ({"minor": 7}, None),
        ({"id": "MIG-1"}, None),
        ({}, None),
    ],
)
def test_a_uuid_is_believed_unless_the_minor_says_otherwise(entry: dict[str, Any], gpu: str | None) -> None:
    assert [claim.gpu for claim in found(noted(note({**entry, "resources": HALF})))] == ([gpu] if gpu else [])


@pytest.mark.parametrize(
    ("resources", "share"),
    [
        ({"gpu-core": "50", "gpu-memory-ratio": "25"}, 0.5),
        ({"gpu-memory-ratio": "25"}, 0.25),
        ({"gpu-core": "0", "gpu-memory-ratio": "25"}, 0.25),
        ({"gpu-core": 50}, 0.5),
        ({"gpu-core": "500m"}, 0.005),
        ({"gpu-core": "900"}, 1.0),
        ({"gpu-core": 10**18}, 1.0),
        ({"gpu-core": "-50"}, None),
        ({"gpu-core": -50}, None),
        ({"gpu-core": "half"}, None),
        ({"gpu-core": "nan"}, None),
        ({"gpu-core": "\u0665"}, None),  # a digit, but no ASCII one
        ({"gpu-memory": "8Gi"}, None),
        ({}, None),
    ],
)
def test_the_share_is_of_the_cores_else_of_the_memory(resources: dict[str, Any], share: float | None) -> None:
    named = {f"koordinator.sh/{name}": value for name, value in resources.items()}
    claims = found(noted(note({"minor": 1, "resources": named})))
    assert [claim.share for claim in claims] == ([] if share is None else [share])


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8Gi", 8 * GIB),
        ("11520Mi", 11520 << 20),
        ("83201216Ki", 83201216 << 10),
        ("85197848576", 85197848576),
        ("1.5Gi", 3 * GIB // 2),
        ("16G", 16 * 10**9),
        ("16e9", 16 * 10**9),
        ("16E9", 16 * 10**9),
        (8 * GIB, 8 * GIB),
        ("8E", None),
        ("8Ei", None),
        ("1m", None),
        ("0", None),
        ("8 Gi", None),
        ("8gib", None),
        ("8xx", None),
        ("1e99", None),
        ("", None),
    ],
)
def test_a_limit_is_a_quantity_that_a_card_can_have(text: str | int, size: int | None) -> None:
    (claim,) = found(noted(note({"minor": 1, "resources": {**HALF, "koordinator.sh/gpu-memory": text}})))
    assert claim.memory_limit_bytes == size


def test_the_only_container_beside_init_containers_has_it() -> None:
    (claim,) = found(noted(note({"minor": 1, "resources": HALF}), "work", init=["fetch"]))
    assert claim.container.container == "work"


@pytest.mark.parametrize("resource", ["koordinator.sh/gpu-core", "nvidia.com/gpu"])
def test_of_several_containers_the_one_that_the_kubelet_lists_has_it(resource: str) -> None:
    pod = noted(note({"minor": 1, "resources": HALF}), "log", "work")
    (claim,) = found(pod, listed("1", resource, "work"), listed("mlx5_0", "rdma/hca", "log"))
    assert claim.container.container == "work"


@pytest.mark.parametrize(
    ("limits", "container"),
    [
        ({"work": {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}}, "work"),
        ({"work": {"koordinator.sh/gpu": "50"}, "log": {"koordinator.sh/rdma": "1"}}, "work"),
        ({"work": {"nvidia.com/gpu": "1"}, "log": {"nvidia.com/gpu": "0"}}, "work"),
        ({"work": {"nvidia.com/gpu": "1"}, "fetch": {"nvidia.com/gpu": "1"}}, "work"),
        ({"fetch": {"nvidia.com/gpu": "1"}}, "fetch"),
        ({"work": {"nvidia.com/gpu": "1"}, "log": {"nvidia.com/gpu": "1"}}, ""),
        ({"work": {"nvidia.com/gpu": "lots"}}, ""),
    ],
)
def test_of_several_containers_the_one_that_asks_has_it(limits: dict[str, dict[str, str]], container: str) -> None:
    pod = noted(note({"minor": 1, "resources": HALF}), "log", "work", init=["fetch"], limits=limits)
    (claim,) = found(pod)
    assert claim.container.container == container


def test_what_the_kubelet_lists_comes_before_what_was_asked_for() -> None:
    pod = noted(note({"minor": 1, "resources": HALF}), "log", "work", limits={"log": {"nvidia.com/gpu": "1"}})
    (claim,) = found(pod, listed("1", "nvidia.com/gpu", "work"))
    assert claim.container.container == "work"


def test_a_container_for_debugging_is_not_counted() -> None:
    (claim,) = found(noted(note({"minor": 1, "resources": HALF}), "work", "debug"))
    assert claim.container.container == "work"


def test_of_several_containers_none_is_picked_by_chance() -> None:
    pod = noted(note({"minor": 1, "resources": HALF}), "log", "work")
    both = [listed("1", "nvidia.com/gpu", name) for name in ("log", "work")]
    assert [claim.container.container for claim in (*found(pod), *found(pod, *both))] == ["", ""]


def test_two_pods_of_one_name_have_each_their_own() -> None:
    """The kubelet tells no UID, so its list is neither's."""
    first = noted(note({"minor": 1, "resources": HALF}), "log", "work", uid="a")
    second = noted(note({"minor": 0, "resources": HALF}), "only", uid="b")
    node = Inventory(DEVICES, [listed("1", "nvidia.com/gpu", "work")], (), [first, second])
    claims = [(claim.gpu, claim.container.pod_uid, claim.container.container) for claim in koordinator.claims(node)]
    assert claims == [(ONE, "a", ""), (ZERO, "b", "only")]


@pytest.mark.parametrize("device_id", [ZERO, f"{ZERO}::1", "MIG-1"])
def test_what_the_kubelet_says_of_a_card_beats_a_note(device_id: str) -> None:
    assert found(noted(note({"minor": 1, "resources": HALF})), listed(device_id, "nvidia.com/gpu")) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_holds_nothing(phase: str) -> None:
    assert found(noted(note({"minor": 1, "resources": HALF}), phase=phase)) == []


def test_a_card_that_is_named_twice_is_not_claimed() -> None:
    entry = {"minor": 1, "resources": HALF}
    assert found(noted(note(entry, {**entry, "id": ONE}))) == []


def test_a_listed_id_is_explained_by_a_note_that_can_be_read() -> None:
    ours = listed("7", "koordinator.sh/gpu-core")
    foreign = listed("7", "nvidia.com/gpu")
    good, bad = (noted(note({"minor": minor, "resources": HALF})) for minor in (1, 9))
    explained = [
        koordinator.explains(allocation, Inventory(DEVICES, [ours, foreign], (), pods))
        for allocation, pods in [(ours, [good]), (ours, [bad]), (ours, []), (foreign, [good])]
    ]
    assert explained == [True, False, False, False]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "minor": st.integers(-1, 3) | JSON,
        "id": st.sampled_from([ZERO, ONE, "GPU-9", ""]) | JSON,
        "resources": st.dictionaries(
            st.sampled_from([koordinator.CORE, koordinator.MEMORY, koordinator.MEMORY_RATIO]),
            st.from_regex(r"-?[0-9]{0,20}(\.[0-9]{0,3})?[a-zA-Z]{0,2}", fullmatch=True) | st.integers() | JSON,
        )
        | JSON,
    },
)


@given(st.text() | JSON.map(json.dumps) | st.lists(ENTRIES, max_size=4).map(lambda entries: note(*entries)))
@example("\ud800")
@example('{"gpu":' + "[" * 60_000)
@example('{"x":' + "[" * 60_000)
@example('{"gpu":[{"minor":' + "9" * 60_000 + "}]}")
@example('{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":' + "9" * 60_000 + "}}]}")
@example('{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"' + "9" * 60_000 + '"}}]}')
@example('{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":' + "9" * 400 + "}}]}")
@example('{"gpu":null}')
@example('{"gpu":[null]}')
def test_no_note_raises_or_claims_what_is_not_here(text: str) -> None:
    pod = noted(text)
    claims = found(pod)
    assert len({claim.gpu for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.gpu in (ZERO, ONE)
        assert 0 <= claim.share <= 1
        assert claim.memory_limit_bytes is None or 1 <= claim.memory_limit_bytes <= MOST_BYTES
        assert (claim.container.namespace, claim.container.pod, claim.container.pod_uid) == ("ns", "p", "u")


def test_less_than_one_per_cent_is_noted_as_none_and_has_its_bytes() -> None:
    resources = {"koordinator.sh/gpu-memory": "700Mi", "koordinator.sh/gpu-memory-ratio": "0"}
    (claim,) = found(noted(note({"minor": 1, "resources": resources})))
    assert (claim.share, claim.memory_limit_bytes) == (0.0, 700 << 20)


@pytest.mark.parametrize(("labels", "limit"), [({}, None), ({koordinator.ISOLATION: "HAMi-core"}, 0.5)])
def test_cores_are_limited_where_a_library_does_it(labels: dict[str, str], limit: float | None) -> None:
    pod = msgspec.structs.replace(noted(note({"minor": 1, "resources": HALF})), labels=labels)
    assert [claim.core_limit_ratio for claim in found(pod)] == [limit]
