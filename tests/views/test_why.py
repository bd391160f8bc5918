"""The evidence chain names every link, and says what is wrong with it."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from podgpu.model import (
    UNKNOWN,
    Booking,
    Card,
    ContainerRef,
    Holder,
    Owner,
    PartStatus,
    Pod,
    Process,
    Rest,
    Snapshot,
    Tenant,
)
from podgpu.views.text import width_of
from podgpu.views.why_evidence import pod_names
from tests.conftest import Golden
from tests.tree import held
from tests.views.concluded import why
from tests.views.quirks import BUSY, IDLER, LLAMA, NOTEBOOK, SLICE, SNAPSHOT, SPLIT, STUCK, band
from tests.views.test_native import SNAPSHOTS


def node(*cards: Card) -> Snapshot:
    return replace(SNAPSHOT, cards=cards)


def with_first(card: Card = BUSY, **facts: object) -> Card:
    """The card with the first tenant of the first card alone, changed."""
    tenant: Tenant = replace(BUSY.tenants[0], **facts)
    return replace(card, tenants=(tenant,))


def told(namespace: str, pod: str, snapshot: Snapshot = SNAPSHOT) -> str:
    """The report as one line, so that a sentence is found wherever it was wrapped."""
    text = why(snapshot, namespace, pod, 80)
    assert text is not None
    return " ".join(text.split())


@pytest.mark.parametrize("container", [LLAMA, NOTEBOOK, SLICE, IDLER])
def test_the_report(golden: Golden, container: ContainerRef) -> None:
    text = why(SNAPSHOT, container.namespace, container.pod, 80)
    assert text is not None
    assert max(map(len, text.splitlines())) <= 80
    golden(f"why-{container.pod}.txt", text)


def test_a_pod_that_is_not_there_has_no_report() -> None:
    assert why(SNAPSHOT, "ml", "llama-1", 80) is None
    assert why(SNAPSHOT, "team-b", "llama-0", 80) is None


@pytest.mark.parametrize(
    ("method", "range_", "how"),
    [
        (
            "measured",
            (0.23, 0.12, 0.34),
            "23% (~12–34) of the GPU's time, 1.2 W, in the last full minute, estimated by samples Proven between",
        ),
        (
            "weighted",
            (0.23, 0.0, 0.6),
            "23% (~0–60) of the GPU's time, 1.2 W, in the last full minute, estimated by claims",
        ),
        ("exclusive", (0.23,), "Busy 80% of the GPU's time, 512 W, since the previous reading, exact Booked"),
    ],
)
def test_how_sure_a_number_is(method: str, range_: tuple[float, ...], how: str) -> None:
    booking = replace(BUSY.tenants[0].booking, method=method, band=band(*range_))
    assert how in told("ml", "llama-0", node(with_first(booking=booking)))


def test_of_an_instance_of_unknown_size_it_says_why_nothing_is_booked() -> None:
    unsized = Booking(bookable=False, instance_ratio=0.5)
    text = told("ml", "llama-0", node(with_first(booking=unsized, mig="MIG-1")))
    assert "Now SM 50% of its instance" in text
    assert "Booked nothing: the size of its MIG instance is not known" in text
    assert "charged" not in text


def test_of_a_share_of_unknown_size_it_says_neither_0_nor_mig() -> None:
    """As while a device plugin has not registered again."""
    claim = replace(BUSY.tenants[0].claims[0], share=0.0)
    text = told("ml", "llama-0", node(with_first(claims=(claim,), booking=Booking(bookable=False))))
    assert "Given a share of unknown size of the GPU" in text
    assert "Booked nothing: the size of its share is not known" in text
    assert "Given 0%" not in text
    assert "MIG" not in text


def test_without_an_agent_it_does_not_blame_mig() -> None:
    card = replace(with_first(booking=Booking(bookable=False)), balance=None)
    text = told("ml", "llama-0", node(card))
    assert "Booked nothing: no agent has reported what it uses of this GPU" in text
    assert "MIG instance" not in text


def test_since_when_it_is_held_is_said() -> None:
    assert "Its pod has held this since 2025-10-08 05:06:40 UTC." in told("team-c", "dev-0")


def test_every_link_of_the_chain_is_named() -> None:
    text = told("ml", "llama-0")
    for link in (
        "StatefulSet llama",
        f"{BUSY.gpu.uuid}::1, resource nvidia.com/gpu.shared",
        "time-slicing, reported by podresources",
        "50% of the GPU, at most 70.0 GiB",
        "pid 424, compute, 20.0 GiB, SM 80%, started 2025-10-08 05:13:44 UTC",
        "0::/kubepods.slice/kubepods-burstable.slice",
        "busy 0.100000 s, 0.100 J, allocated 1800.000001 s",
        "78% (~61–90) of the GPU's time, 3.9 W, in the last full minute, estimated by samples",
        "measured. Busy time and active energy are divided by samples.",
        "The books balance.",
    ):
        assert link in text


def test_use_without_a_claim_and_a_claim_without_use_are_told() -> None:
    assert "the kubelet has not listed what was allocated" in told(NOTEBOOK.namespace, NOTEBOOK.pod)
    listed = replace(SNAPSHOT, parts=(PartStatus(name="podresources", up=True),))
    assert "without an allocation to its pod" in told(NOTEBOOK.namespace, NOTEBOOK.pod, listed)
    idle = with_first(processes=(), booking=Booking(last_active_at=1759990000.0), idle=True)
    text = told("ml", "llama-0", node(idle))
    assert "Idle since 2025-10-09 06:06:40 UTC: it has no process on the card." in text
    assert "Last active 2025-10-09 06:06:40 UTC." in text
    assert "without an allocation" not in told("ml", "llama-0")
    assert "no process on the card" not in told("ml", "llama-0")


def test_a_device_id_that_nobody_understood_is_told() -> None:
    assert "was given slot-7 of example.com/gpu: no sharing system knows this id" in told("team-c", "dev-0")


def test_a_process_in_an_unknown_container_is_told_with_the_reason() -> None:
    text = told("ml", SLICE.pod)
    assert "Unknown container Process pid 78, compute not fully known: no container id" in text


def test_a_static_pod_is_known_by_its_hash() -> None:
    pod = Pod(namespace="kube-system", name="static-n1", uid="mirror", static_hash="cafe" * 8)
    process = held(Process(pid=424, kinds=("compute",)), Holder(pid=424, kind="pod", owner=Owner(pod_uid="cafe" * 8)))
    card = replace(BUSY, tenants=(), rest=(Rest(reason="unknown", processes=(process,)),))
    assert "pid 424" in told("kube-system", "static-n1", replace(node(card), pods=(pod,)))


def test_an_mps_server_is_evidence_although_it_is_booked_as_overhead() -> None:
    server = ContainerRef("mps", "control-daemon", "mps", "uid-mps")
    holder = Holder(pid=99, kind="pod", container=server, serves=True)
    rest = Rest(reason="overhead", processes=(held(Process(pid=99, kinds=("mps",)), holder),))
    text = told("mps", "control-daemon", node(replace(BUSY, rest=(rest,))))
    assert "pid 99" in text
    assert "It is the MPS server." in text


def test_a_pod_of_the_same_name_in_another_namespace_lends_no_evidence() -> None:
    twin = replace(SNAPSHOT.pods[0], namespace="team-b", uid="twin")
    text = told("team-b", "llama-0", replace(SNAPSHOT, pods=(*SNAPSHOT.pods, twin)))
    assert "It holds no GPU" in text
    assert "424" not in text


def test_a_claim_of_unseen_processes_says_so() -> None:
    held_only = with_first(processes=(), booking=Booking(method="exclusive"), idle=True)
    (tenant,) = held_only.tenants
    blind = replace(
        held_only,
        tenants=(replace(tenant, idle=None),),
        ability=replace(BUSY.ability, knows_owners=False),
    )
    text = told("ml", "llama-0", node(blind))
    assert "No process can be seen, so the holder of the claim is assumed to be the user." in text
    assert "has no process on the card" not in text
    assert "Not known whether it uses this: whether it has a process on the card is not known." in text


def test_a_claim_that_may_be_in_use_says_so() -> None:
    text = told(IDLER.namespace, IDLER.pod)
    assert "Not known whether it uses this: whether it has a process on the card is not known." in text
    assert "has no process" not in text


def test_books_that_do_not_balance_are_not_passed_off_as_balanced() -> None:
    assert BUSY.balance is not None
    wrong = replace(BUSY, balance=replace(BUSY.balance, energy_mj=BUSY.balance.energy_mj + 1))
    assert "do NOT balance" in told("ml", "llama-0", node(wrong))


def test_a_card_that_has_no_known_number_is_not_minus_one() -> None:
    """Kubernetes knows that the pod holds a GPU, and not which one."""
    text = told("ml", "llama-0", node(replace(BUSY, gpu=replace(BUSY.gpu, index=UNKNOWN))))
    assert "GPU ? NVIDIA H200" in text
    assert "GPU -1" not in text


def test_a_card_that_is_down_is_told() -> None:
    claimed = with_first(STUCK, processes=(), booking=Booking(busy_us=77_000_000), idle=None)
    text = told("ml", "llama-0", node(claimed))
    assert "timeout in nvmlDeviceGetPowerUsage" in text
    assert "50% of the GPU" in text and "busy 77.000000 s" in text
    assert "The GPU does not answer, so its use now is unknown." in text
    assert "Method" not in text


def test_a_process_on_two_cards_is_told_on_both() -> None:
    text = told("ml", "llama-0", node(BUSY, with_first(SPLIT)))
    assert text.count("pid 424") == 2


@given(SNAPSHOTS)
def test_every_pod_that_is_named_has_a_report_without_codes_for_the_terminal(snapshot: Snapshot) -> None:
    names = {(pod.namespace, pod.name) for pod in snapshot.pods}
    tenants = [tenant for card in snapshot.cards for tenant in (*card.tenants, *card.ended)]
    booked = {(tenant.container.namespace, tenant.container.pod) for tenant in tenants}
    names |= booked - {("", "")}
    assert {f"{namespace}/{pod}" for namespace, pod in names} <= set(pod_names(snapshot))
    for namespace, pod in names:
        text = why(snapshot, namespace, pod, 80)
        assert text is not None
        assert not {"\x1b", "\x07", "\x9b"} & set(text)


def test_60_columns_hold_every_line_and_no_name_of_the_books_is_cut() -> None:
    for container in (LLAMA, NOTEBOOK, SLICE, IDLER):
        text = why(SNAPSHOT, container.namespace, container.pod, 60) or ""
        assert max(map(width_of, text.splitlines())) <= 60
        assert f" {container.namespace}/{container.pod}/{container.container}" in text


def test_on_a_wide_terminal_numbers_stay_near_their_names() -> None:
    report = why(SNAPSHOT, "ml", "llama-0", 200) or ""
    assert max(len(row) for row in report.splitlines() if row.startswith(("  sum", "  no pod"))) <= 110


@pytest.mark.parametrize(("idle", "processes"), [(False, 2), (True, 0), (None, None)])
def test_a_store_is_not_blamed_for_what_it_cannot_hold(idle: bool | None, processes: int | None) -> None:
    """It has numbers. That there is no process in it says nothing about the node."""
    booking = replace(BUSY.tenants[0].booking, processes=processes)
    card = with_first(processes=(), idle=idle, booking=booking)
    text = told(LLAMA.namespace, LLAMA.pod, replace(node(card), stored=True))
    assert "This is read from a store. It keeps numbers, and no processes, claims or other evidence." in text
    assert f"`podgpu why {LLAMA.namespace}/{LLAMA.pod} --url http://{SNAPSHOT.node}:19400`" in text
    assert ("2 processes" in text) == (processes == 2)
    for denial in ("no process on", "No process", "has no process", "No use is booked", "Device id"):
        assert denial not in text or (denial == "No use is booked" and idle)
