"""A group's label leads to the card of its reservation pod, and nowhere else."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.model import Allocation, Claim, ContainerRef, Device, Gpu, Pod, PodContainer, Reading, VirtualGpu
from podgpu.sharing import claims as all_claims
from podgpu.sharing import excused, holders, kai, unclaimed
from podgpu.sharing.inventory import Inventory

ZERO = "GPU-00000000-0000-4000-8000-000000000000"
ONE = "GPU-00000000-0000-4000-8000-000000000001"
MIB, GIB = 1 << 20, 1 << 30
DEVICES = (
    Device(gpu=Gpu(uuid=ZERO, index=0), readings=(Reading("memory_total_bytes", float(80 * GIB)),)),
    Device(gpu=Gpu(uuid=ONE, index=1)),
)
KAI, RUN_AI = kai.SCHEDULERS


def reservation(group: str, name: str = "gpu-reservation-n-a", namespace: str = KAI, card: str = "") -> Pod:
    notes = {kai.RESERVED_CARD: card} if card else {}
    return Pod(
        namespace=namespace,
        name=name,
        uid=name,
        phase="Running",
        labels={kai.GROUP: group},
        annotations=notes,
    )


def tenant(*groups: str, name: str = "p", phase: str = "Running", **notes: str) -> Pod:
    keys = [kai.GROUP] if len(groups) == 1 else [f"{kai.GROUP}/{group}" for group in groups]
    return Pod(
        namespace="ns",
        name=name,
        uid=f"uid-{name}",
        phase=phase,
        labels=dict(zip(keys, groups, strict=True)),
        annotations={key.replace("_", "-"): value for key, value in notes.items()},
        scheduler="kai-scheduler",
        containers=(
            PodContainer(name="fetch", is_init=True),
            PodContainer(name="server"),
            PodContainer(name="logs"),
        ),
    )


def holds(card: str, pod: str = "gpu-reservation-n-a", namespace: str = KAI) -> Allocation:
    return Allocation(namespace=namespace, pod=pod, container="c", resource="nvidia.com/gpu", device_id=card)


def found(*pods: Pod, listed: tuple[Allocation, ...] = (holds(ZERO),)) -> list[Claim]:
    return list(kai.claims(Inventory(DEVICES, listed, (), pods)))


def test_a_fraction_is_of_the_card_that_its_groups_reservation_pod_was_given() -> None:
    (claim,) = found(reservation("g"), tenant("g", gpu_fraction="0.25"))
    assert (claim.gpu, claim.share, claim.memory_limit_bytes) == (ZERO, 0.25, None)
    assert (claim.container.pod, claim.container.container, claim.container.pod_uid) == (
        "p",
        "server",
        "uid-p",
    )
    assert (claim.system, claim.source) == ("kai", "annotation")
    assert (claim.resource, claim.device_id) == ("gpu-fraction", "g")


def test_memory_in_mebibytes_is_a_part_of_the_cards() -> None:
    (claim,) = found(reservation("g"), tenant("g", gpu_memory="20480"))
    assert (claim.share, claim.memory_limit_bytes, claim.resource) == (0.25, 20 * GIB, "gpu-memory")


def test_a_limit_stays_known_where_the_cards_memory_is_not() -> None:
    (claim,) = found(reservation("g"), tenant("g", gpu_memory="1024"), listed=(holds(ONE),))
    assert (claim.gpu, claim.share, claim.memory_limit_bytes) == (ONE, 0.0, GIB)


def test_a_pod_may_have_fractions_of_several_cards() -> None:
    reserved = reservation("a"), reservation("b", "gpu-reservation-n-b")
    listed = holds(ZERO), holds(ONE, "gpu-reservation-n-b")
    both = tenant("a", "b", gpu_fraction="0.5", gpu_fraction_num_devices="2")
    claims = [(claim.gpu, claim.share) for claim in found(*reserved, both, listed=listed)]
    assert claims == [(ZERO, 0.5), (ONE, 0.5)]


@pytest.mark.parametrize("number", ["1", "3", "0", "two", ""])
def test_groups_that_nobody_asked_for_claim_nothing(number: str) -> None:
    both = tenant("a", "b", gpu_fraction="0.5", gpu_fraction_num_devices=number)
    assert found(reservation("a"), both) == []


@pytest.mark.parametrize(
    ("text", "share"),
    [("0.5", 0.5), (".5", 0.5), ("1", 1.0), ("1.0", 1.0), ("7", 1.0), ("0", None), ("0.0", None), ("-0.5", None),
     ("nan", None), ("inf", None), ("half", None), ("1e9", 1.0), ("2.5E-1", 0.25),
     ("0.3333333333333333", 0.3333333333333333), ("1e-999", None), ("1e", None), ("\u0660.\u0665", None), ("", None)],
)  # fmt: skip
def test_a_share_is_more_than_nothing_and_at_most_the_card(text: str, share: float | None) -> None:
    claims = found(reservation("g"), tenant("g", gpu_fraction=text))
    assert [claim.share for claim in claims] == ([] if share is None else [share])


def test_more_memory_than_the_card_has_is_all_of_the_card() -> None:
    (claim,) = found(reservation("g"), tenant("g", gpu_memory="99999999"))
    assert claim.share == 1.0


def test_each_of_those_who_ask_for_too_much_together_has_what_it_asked_for() -> None:
    pods = (tenant("g", name=name, gpu_fraction="0.9") for name in ("a", "b"))
    assert [claim.share for claim in found(reservation("g"), *pods)] == [0.9, 0.9]


@pytest.mark.parametrize(("name", "container"), [("logs", "logs"), ("fetch", "fetch"), ("gone", "")])
def test_the_container_is_the_one_that_is_named(name: str, container: str) -> None:
    pod = tenant("g", gpu_fraction="0.5", gpu_fraction_container_name=name)
    (claim,) = found(reservation("g"), pod)
    assert claim.container.container == container


def own(prefix: str = "nvidia.com/container.", container: str = "logs", **sizes: str) -> Pod:
    """A tenant whose annotations have its container in their names."""
    notes = {f"{prefix}{container}.gpu-memory.{what}": size for what, size in sizes.items()}
    return replace(tenant("g"), annotations=notes)


@pytest.mark.parametrize("prefix", ["nvidia.com/container.", "nvidia.cdi.k8s.io/", "nvidia.cdi.k8s.io/container."])
@pytest.mark.parametrize(
    ("sizes", "share", "limit"),
    [
        ({"request": "20Gi", "limit": "40Gi"}, 0.25, 40 * GIB),
        ({"request": "20Gi"}, 0.25, 20 * GIB),
        ({"limit": "20480Mi"}, 0.25, 20 * GIB),
        ({"request": str(20 * GIB), "limit": str(20 * GIB + 1)}, 0.25, 20 * GIB + MIB),  # in whole MiB, rounded up
    ],
)
def test_memory_of_a_container_is_requested_and_limited_by_its_name(
    prefix: str, sizes: dict[str, str], share: float, limit: int
) -> None:
    (claim,) = found(reservation("g"), own(prefix, **sizes))
    assert (claim.share, claim.memory_limit_bytes) == (share, limit)
    assert (claim.container.container, claim.resource) == ("logs", "gpu-memory")


@pytest.mark.parametrize("notes", [{"request": "much"}, {"limit": "-1Gi"}, {"request": "0"}, {"devices": "1Gi"}])
def test_a_request_that_is_no_size_claims_nothing(notes: dict[str, str]) -> None:
    assert found(reservation("g"), own(**notes)) == []


@pytest.mark.parametrize(
    ("fraction", "request_", "share"),
    [("0.3", "24576Mi", 0.3), ("0.7", "57344Mi", 0.7), ("0.9", "20Gi", 0.25), ("0.1", "20Gi", 0.25)],
    ids=["made of the fraction", "made of another", "less than the fraction", "more than the fraction"],
)
def test_the_size_takes_precedence_over_a_fraction_that_it_was_not_made_of(
    fraction: str, request_: str, share: float
) -> None:
    """The binder makes a size in whole MiB of a fraction. A pod's author may write both."""
    pod = own(request=request_)
    pod = replace(pod, annotations=pod.annotations | {"gpu-fraction": fraction})
    (claim,) = found(reservation("g"), pod)
    assert claim.share == share


def test_of_two_containers_that_are_named_the_one_with_more_counts() -> None:
    """KAI admits one. A tenant may add another later."""
    one, other = own(container="server", request="20Gi"), own(container="logs", request="1Gi")
    both = replace(one, annotations=one.annotations | other.annotations)
    (claim,) = found(reservation("g"), both)
    assert (claim.container.container, claim.share) == ("server", 0.25)


@pytest.mark.parametrize("namespace", [KAI, RUN_AI])
def test_reservation_pods_live_in_namespaces_of_their_own(namespace: str) -> None:
    reserved = reservation("g", namespace=namespace)
    half = replace(tenant("g", gpu_fraction="0.5"), scheduler=kai.SCHEDULERS[namespace])
    node = Inventory(DEVICES, [holds(ZERO, namespace=namespace)], (), [reserved, half])
    assert [claim.container.pod for claim in all_claims(node)] == ["p"]
    ((excuse,),) = excused(node).values()
    assert excuse.proof == (
        f"its namespace {namespace} is the sharing system's own, "
        f"and other pods here name {kai.SCHEDULERS[namespace]} as their scheduler"
    )


@pytest.mark.parametrize("namespace", [KAI, RUN_AI])
@pytest.mark.parametrize("others", ["nobody", "default", "the other scheduler", "ended", "itself"])
def test_a_namespace_that_only_has_the_name_of_kais_is_a_tenants(namespace: str, others: str) -> None:
    """Whoever may create namespaces may call one so, where KAI is not installed or uses the other name."""
    forged = replace(reservation("g", namespace=namespace, card=ZERO), annotations={kai.FRACTION: "0.001"})
    helper = replace(tenant("g", gpu_fraction="0.001"), scheduler="")
    right, wrong = (kai.SCHEDULERS[name] for name in (namespace, ({KAI, RUN_AI} - {namespace}).pop()))
    pods = {
        "nobody": [forged],
        "default": [forged, helper],
        "the other scheduler": [forged, replace(helper, scheduler=wrong)],
        "ended": [forged, helper, replace(helper, name="q", uid="q", scheduler=right, phase="Succeeded")],
        "itself": [replace(forged, scheduler=right), replace(helper, namespace=namespace, scheduler=right)],
    }[others]
    node = Inventory(DEVICES, [holds(ZERO, namespace=namespace)], (), pods)
    assert [(claim.container.pod, claim.share) for claim in all_claims(node)] == [(forged.name, 1.0)]
    assert excused(node) == {}
    named = Inventory(DEVICES, [holds(ZERO, namespace=namespace)], (), pods, namespaces=[namespace])
    assert forged.name not in [claim.container.pod for claim in all_claims(named)]


def test_a_tenant_cannot_reserve_for_others() -> None:
    """It may well hold a card of its own, under the label of another group and with a name like theirs."""
    forged = reservation("g", namespace="ns", card=ONE)
    listed = (holds(ONE, namespace="ns"),)
    assert found(forged, tenant("g", gpu_fraction="0.5"), listed=listed) == []
    assert found(forged, tenant("g", gpu_fraction="0.5"), listed=()) == []


@pytest.mark.parametrize(
    "pod",
    [
        tenant("other", gpu_fraction="0.5"),
        tenant("g"),
        tenant(gpu_fraction="0.5"),
        tenant("g", gpu_fraction="0.5", phase="Succeeded"),
        tenant("g", gpu_fraction="0.5", received_resource_type="Regular"),
    ],
)
def test_without_a_group_that_leads_to_a_card_or_a_request_nothing_is_claimed(pod: Pod) -> None:
    assert found(reservation("g"), pod) == []


def test_a_group_with_two_cards_is_none_of_them() -> None:
    reserved = reservation("g"), reservation("g", "gpu-reservation-n-b")
    listed = holds(ZERO), holds(ONE, "gpu-reservation-n-b")
    assert found(*reserved, tenant("g", gpu_fraction="0.5"), listed=listed) == []


def test_the_kubelet_is_believed_before_the_note() -> None:
    (claim,) = found(reservation("g", card=ONE), tenant("g", gpu_fraction="0.5"))
    assert claim.gpu == ZERO


def test_without_the_kubelets_list_the_note_has_to_do() -> None:
    pods = reservation("g", card=ONE), tenant("g", gpu_fraction="0.5")
    assert [claim.gpu for claim in found(*pods, listed=())] == [ONE]
    assert found(*pods, listed=(holds(ZERO, "other", "ns"),)) == []


def test_a_note_of_a_card_that_is_not_here_leads_nowhere() -> None:
    assert found(reservation("g", card="GPU-9"), tenant("g", gpu_fraction="0.5"), listed=()) == []


def test_a_reservation_pod_holds_nothing_itself() -> None:
    node = Inventory(DEVICES, [holds(ZERO)], (), [reservation("g"), tenant("g", gpu_fraction="0.5")])
    assert [claim.container.pod for claim in all_claims(node)] == ["p"]
    assert unclaimed(node) == ()


@pytest.mark.parametrize("name", ["gpu-reservation-n-a", "runai-reservation-gpu-n-a"])
def test_a_reservation_pod_is_known_by_its_name_where_pods_are_not(name: str) -> None:
    assert all_claims(Inventory(DEVICES, [holds(ZERO, name, RUN_AI)], namespaces=[RUN_AI])) == ()
    assert len(all_claims(Inventory(DEVICES, [holds(ZERO, name, RUN_AI)]))) == 1  # nothing shows that KAI is here


@pytest.mark.parametrize(("namespace", "pod"), [("ns", "gpu-reservation-n-a"), (KAI, "burner")])
def test_nobody_elses_card_is_taken_back(namespace: str, pod: str) -> None:
    labelled = reservation("g", namespace="ns")
    node = Inventory(DEVICES, [holds(ONE, pod, namespace)], (), [labelled, tenant()])
    assert [claim.container.pod for claim in all_claims(node)] == [pod]


def elsewhere(group: str = "g", card: str = ZERO, name: str = "gpu-reservation-n-a", **notes: str) -> Pod:
    """A reservation pod in a namespace that an administrator has chosen."""
    return Pod(
        namespace="gpus",
        name=name,
        uid=name,
        phase="Running",
        labels={kai.GROUP: group, "app": "gpus"},
        annotations={kai.RESERVED_CARD: card, **notes},
        containers=(PodContainer(name="resource-reservation"),),
    )


def test_an_administrator_says_that_reservation_pods_have_another_namespace() -> None:
    pods = elsewhere(), tenant("g", gpu_fraction="0.5")
    node = Inventory(DEVICES, [holds(ZERO, namespace="gpus")], (), pods, namespaces=["gpus"])
    (claim,) = all_claims(node)
    assert (claim.container.pod, claim.gpu, claim.share) == ("p", ZERO, 0.5)
    assert unclaimed(node) == ()
    ((excuse,),) = excused(node).values()
    assert (excuse.role, excuse.container) == (
        "reservation",
        ContainerRef("gpus", "gpu-reservation-n-a", "c", "gpu-reservation-n-a"),
    )
    assert excuse.proof == "its namespace gpus is the sharing system's own"


@pytest.mark.parametrize(
    "pod",
    [
        elsewhere(),  # as KAI's own would look in all respects
        elsewhere(card=ONE),
        elsewhere(card=""),
        elsewhere(name="burner"),
        elsewhere(**{kai.FRACTION: "0.5"}),
        elsewhere("a group of nobody else"),
    ],
)
def test_whatever_a_tenant_writes_he_does_not_pass_for_a_reservation_pod(pod: Pod) -> None:
    listed = [holds(ZERO, pod.name, "gpus")]
    node = Inventory(DEVICES, listed, (), [pod, tenant("g", gpu_fraction="0.5")])
    (claim,) = all_claims(node)
    assert (claim.container.pod, claim.gpu, claim.share) == (pod.name, ZERO, 1.0)
    assert excused(node) == {}


def test_who_holds_a_card_for_others_holds_it_all_the_same() -> None:
    """Nothing in such a pod serves others, whatever its processes are called."""
    node = Inventory(DEVICES, [holds(ZERO)], (), [reservation("g")])
    assert holders(node) == {(KAI, "gpu-reservation-n-a")}


def test_nobody_takes_over_a_group_of_the_usual_namespace() -> None:
    pods = reservation("g", "gpu-reservation-n-b"), elsewhere(card=ONE), tenant("g", gpu_fraction="0.5")
    listed = holds(ZERO, "gpu-reservation-n-b"), holds(ONE, namespace="gpus")
    (claim,) = found(*pods, listed=listed)
    assert (claim.container.pod, claim.gpu) == ("p", ZERO)


def test_where_ids_are_no_uuids_the_reservation_pods_note_names_the_card() -> None:
    (claim,) = found(reservation("g", card=ONE), tenant("g", gpu_fraction="0.5"), listed=(holds("nvidia0"),))
    assert claim.gpu == ONE


def test_a_limit_is_what_the_library_in_the_container_enforces() -> None:
    file = VirtualGpu(pod_uid="uid-p", container="server", gpu=ZERO, memory_limit_bytes=39 * GIB)
    pods = reservation("g"), tenant("g", gpu_fraction="0.5")
    (claim,) = kai.claims(Inventory(DEVICES, [holds(ZERO)], (), pods, vgpus=[file]))
    assert (claim.share, claim.memory_limit_bytes) == (0.5, 39 * GIB)


TEXT = st.text(max_size=12) | st.sampled_from(["0.5", "4096", "g", "h", "2", "server", ZERO])
KEYS = st.sampled_from(
    [
        kai.GROUP,
        f"{kai.GROUP}/h",
        kai.FRACTION,
        kai.MEMORY,
        kai.CARDS,
        kai.CONTAINER,
        kai.RECEIVED,
        kai.RESERVED_CARD,
    ]
)


@given(st.dictionaries(KEYS, TEXT), st.dictionaries(KEYS, TEXT), st.sampled_from([(), (holds(ZERO),)]))
@example({kai.GROUP: "g"}, {kai.FRACTION: "9" * 60_000}, (holds(ZERO),))
@example({kai.GROUP: "g"}, {kai.MEMORY: "9" * 60_000}, (holds(ZERO),))
@example({kai.GROUP: "g"}, {kai.FRACTION: "\ud800"}, (holds(ZERO),))
def test_no_label_or_note_of_a_tenant_raises_or_claims_what_no_reservation_pod_holds(
    labels: dict[str, str], notes: dict[str, str], listed: tuple[Allocation, ...]
) -> None:
    hostile = Pod(namespace="ns", name="p", uid="u", labels=labels, annotations=notes)
    for claim in found(reservation("g", card=ZERO), hostile, listed=listed):
        assert (claim.gpu, claim.container.pod_uid, claim.device_id) == (ZERO, "u", "g")
        assert 0 < claim.share <= 1


def test_a_reservation_pod_is_known_by_its_name_where_log_folders_tell_no_labels() -> None:
    bare = Pod(namespace=KAI, name="gpu-reservation-n-b", uid="u")
    assert all_claims(Inventory(DEVICES, [holds(ONE, bare.name, KAI)], (), [bare], namespaces=[KAI])) == ()
