"""The evidence chain names every link, and says what is wrong with it."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from podgpu.model import Booking, ContainerRef, Fault, Holder, Owner, PartStatus, Pod, Process, Snapshot
from podgpu.views.why import pod_names, why
from tests.conftest import Golden
from tests.views.quirks import BUSY, HOLDERS, IDLER, LLAMA, NOTEBOOK, SLICE, SNAPSHOT, SPLIT
from tests.views.test_native import SNAPSHOTS


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


def test_every_link_of_the_chain_is_named() -> None:
    text = told("ml", "llama-0")
    for link in (
        "StatefulSet llama",
        f"{BUSY.gpu.uuid}::1, resource nvidia.com/gpu.shared",
        "time-slicing, told by podresources",
        "50% of the GPU, at most 70.0 GiB",
        "pid 424, compute, 20.0 GiB, SM 80%, started 424000 ticks after boot",
        "0::/kubepods.slice/kubepods-burstable.slice",
        "busy 0.100000 s, 0.100 J, allocated 1800.000001 s",
        "measured. Busy time and active energy are divided by the SM time",
        "The books balance.",
    ):
        assert link in text


def test_use_without_a_claim_and_a_claim_without_use_are_told() -> None:
    assert "without having been given it" in told(NOTEBOOK.namespace, NOTEBOOK.pod)
    idle = told(IDLER.namespace, IDLER.pod)
    assert "It holds this and has no process there." in idle
    assert "Last active 2025-10-09 06:06:40 UTC." in idle
    assert "without having been given it" not in told("ml", "llama-0")
    assert "no process there" not in told("ml", "llama-0")


def test_a_device_id_that_nobody_understood_is_told() -> None:
    assert "was given slot-7 of example.com/gpu: no sharing system knows this id" in told("team-c", "dev-0")


def test_a_process_in_an_unknown_container_is_told_with_the_reason() -> None:
    text = told("ml", SLICE.pod)
    assert "Unknown container Process pid 78, compute not fully known: no container id" in text


def test_a_static_pod_is_known_by_its_hash() -> None:
    pod = Pod(namespace="kube-system", name="static-n1", uid="mirror", static_hash="cafe" * 8)
    holder = Holder(pid=424, kind="pod", owner=Owner(pod_uid="cafe" * 8))
    snapshot = replace(SNAPSHOT, pods=(pod,), holders=(holder,))
    assert "pid 424" in told("kube-system", "static-n1", snapshot)


def test_a_pod_of_the_same_name_in_another_namespace_lends_no_evidence() -> None:
    twin = replace(SNAPSHOT.pods[0], namespace="team-b", uid="twin")
    text = told("team-b", "llama-0", replace(SNAPSHOT, pods=(*SNAPSHOT.pods, twin)))
    assert "It holds no GPU" in text
    assert "424" not in text


def test_a_claim_of_unseen_processes_says_so() -> None:
    booking = Booking(gpu=BUSY.gpu.uuid, container=LLAMA, method="exclusive")
    alone = replace(SNAPSHOT, bookings=(booking,), holders=(), devices=(replace(BUSY, processes=()),))
    blind = replace(alone, parts=(PartStatus(name="procfs", up=False, fault=Fault(reason="no_host_pid")),))
    assert "No process can be seen" in told("ml", "llama-0", blind)
    assert "has no process there" in told("ml", "llama-0", alone)


def test_books_that_do_not_balance_are_not_passed_off_as_balanced() -> None:
    wrong = tuple(replace(one, energy_mj=one.energy_mj + 1) for one in SNAPSHOT.balances)
    assert "do NOT balance" in told("ml", "llama-0", replace(SNAPSHOT, balances=wrong))


def test_a_card_the_driver_does_not_list_and_one_that_is_down_are_told() -> None:
    assert "GPU-gone, which the driver does not list" in told("team-c", "dev-0")
    claim = replace(SNAPSHOT.claims[0], gpu=SNAPSHOT.devices[2].gpu.uuid)
    down = told("ml", "llama-0", replace(SNAPSHOT, claims=(claim,)))
    assert "timeout in nvmlDeviceGetPowerUsage" in down


def test_a_process_on_two_cards_is_told_on_both() -> None:
    both = replace(SPLIT, processes=(Process(pid=424, kinds=("compute",)),))
    text = told("ml", "llama-0", replace(SNAPSHOT, devices=(BUSY, both), holders=HOLDERS))
    assert text.count("pid 424") == 2


@given(SNAPSHOTS)
def test_every_pod_that_is_named_has_a_report_without_codes_for_the_terminal(snapshot: Snapshot) -> None:
    names = {(pod.namespace, pod.name) for pod in snapshot.pods}
    booked = {(one.container.namespace, one.container.pod) for one in snapshot.bookings}
    names |= booked - {("", "")}
    assert {f"{namespace}/{pod}" for namespace, pod in names} <= set(pod_names(snapshot))
    for namespace, pod in names:
        text = why(snapshot, namespace, pod, 80)
        assert text is not None
        assert not {"\x1b", "\x07", "\x9b"} & set(text)
