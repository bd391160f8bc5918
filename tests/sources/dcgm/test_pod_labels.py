"""A pod's own labels appear on its rows under any name. They must not move, hide or divide a card."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.sources.dcgm.reading import PageCard, PageContents, read
from tests.sources.dcgm.found import names, values

HONEST = {"container": "c", "namespace": "ns", "pod": "honest"}
MALLORY = {"container": "c", "namespace": "ns", "pod": "mallory"}
VICTIM = {"container": "app", "namespace": "prod", "pod": "victim"}
Pairs = list[tuple[str, str]]
Form = Callable[[Pairs, dict[str, str], dict[str, str]], Pairs]


def card(number: int, *, uuid: str = "UUID", host: str = "Hostname", instance: str = "") -> Pairs:
    """The exporter's labels of a card, in its order."""
    mig = [("GPU_I_PROFILE", "1g.10gb"), ("GPU_I_ID", instance)] if instance else []
    named = [(host, "n")] if host else []
    start = [
        ("gpu", f"{number}"),
        (uuid, f"GPU-{number}"),
        ("pci_bus_id", "0"),
        ("device", f"nvidia{number}"),
    ]
    return [*start, ("modelName", "T4"), *mig, *named]


def between(head: Pairs, given: dict[str, str], pod: dict[str, str]) -> Pairs:
    """Put a pod's own labels before the exporter's labels of the pod, even if they have the same names."""
    return [*head, *sorted(given.items()), *sorted(pod.items())]


def among(head: Pairs, given: dict[str, str], pod: dict[str, str]) -> Pairs:
    """Put a pod's own labels among the exporter's labels of the pod, which win."""
    return [*head, *sorted((given | pod).items())]


def page(*rows: Pairs) -> PageContents:
    lines = [
        f"DCGM_FI_DEV_POWER_USAGE{{{','.join(f'{name}={chr(34)}{text}{chr(34)}' for name, text in row)}}} 250"
        for row in rows
    ]
    return read("\n".join(lines).encode())


def told(found: PageCard) -> tuple[str, int, bool, tuple[str, ...], tuple[str, ...]]:
    gpu = found.device.gpu
    assert values(found) == {("power_watts",): 250.0}
    return gpu.uuid, gpu.index, gpu.mig_enabled, names(found.allocations), devices(found)


def devices(found: PageCard) -> tuple[str, ...]:
    return tuple(allocation.device_id for allocation in found.allocations)


def moved(names: dict[str, str], form: str) -> dict[str, str]:
    return {form.format(name): text for name, text in names.items()}


TRICKS: list[dict[str, str]] = [
    moved(VICTIM, "exported_{}"),
    moved(VICTIM, "exported_{}") | {"job": "dcgm", "instance": "a"},
    {"job": "dcgm", "instance": "a"},
    {"nvlink": "1"},
    {"GPU_I_PROFILE": "x"},
    {"GPU_I_ID": "3"},
    {"GPU_I_ID": "3", "GPU_I_PROFILE": "1g.10gb"},
    {"dra_mig_profile": "1g.10gb"},
    {"dra_mig_device_uuid": "MIG-1"},
    {"vgpu": "999"},
    {"uuid": "GPU-0", "UUID": "GPU-0"},
    {"gpu": "0", "device": "nvidia0", "modelName": "H200", "DCGM_FI_DEV_MINOR_NUMBER": "0"},
    {"Hostname": "x", "hostname": "y", "GPU_I_ID": "3", "GPU_I_PROFILE": "x"},
    {"pod_name": "victim", "pod_namespace": "prod", "container_name": "app"},
    VICTIM,
]


@pytest.mark.parametrize("trick", TRICKS, ids=",".join)
@pytest.mark.parametrize("form", [between, among])
@pytest.mark.parametrize("host", ["Hostname", "hostname", ""])
def test_a_pod_s_own_labels_change_nothing(trick: dict[str, str], form: Form, host: str) -> None:
    honest, other = page(form(card(0, host=host), {}, HONEST), form(card(1, host=host), trick, MALLORY)).cards
    assert told(honest) == ("GPU-0", 0, False, ("ns/honest/c",), ("GPU-0",))
    assert told(other) == ("GPU-1", 1, False, ("ns/mallory/c",), ("GPU-1",))
    assert other.device.gpu.minor is None
    assert other.device.gpu.model == "T4"


@pytest.mark.parametrize("form", [between, among])
@pytest.mark.parametrize("host", ["Hostname", ""])
def test_a_pod_s_own_labels_change_nothing_in_the_old_spelling_either(form: Form, host: str) -> None:
    old = {"container_name": "c", "pod_namespace": "ns", "pod_name": "mallory"}
    [found] = page(form(card(1, uuid="uuid", host=host), VICTIM | {"UUID": "GPU-0"}, old)).cards
    assert told(found) == ("GPU-1", 1, False, ("ns/mallory/c",), ("GPU-1",))


@pytest.mark.parametrize("form", [between, among])
@pytest.mark.parametrize("host", ["Hostname", ""])
def test_a_pod_on_an_instance_stays_on_it(form: Form, host: str) -> None:
    row = form(card(0, host=host, instance="5"), {"GPU_I_ID": "3", "GPU_I_PROFILE": "x"}, MALLORY)
    [found] = page(row).cards
    assert devices(found) == ("MIG-GPU-0/5/0",)
    assert [instance.mig.profile for instance in found.device.instances] == ["1g.10gb"]


def test_one_of_two_pods_on_a_card_cannot_claim_to_be_a_replica() -> None:
    row = between(card(0), {"vgpu": "7", "dra_mig_profile": "x"}, MALLORY)
    [found] = page(row, between(card(0), {}, HONEST)).cards
    assert (names(found.allocations), devices(found)) == (("ns/mallory/c", "ns/honest/c"), ("GPU-0", "GPU-0"))


NAMES = sorted({name for trick in TRICKS for name in trick})


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", "0", "1", "3", "GPU-0", "prod", "victim"])),
    st.sampled_from([between, among]),
    st.sampled_from(["Hostname", "hostname", ""]),
)
def test_no_label_changes_what_a_pod_holds(given: dict[str, str], form: Form, host: str) -> None:
    [_, found] = page(form(card(0, host=host), {}, HONEST), form(card(1, host=host), given, MALLORY)).cards
    assert told(found) == ("GPU-1", 1, False, ("ns/mallory/c",), ("GPU-1",))
