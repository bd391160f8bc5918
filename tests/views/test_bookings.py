"""The books on the page: exact, without doubles, and nothing that is unknown."""

import re
from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.catalog import families as catalog_families
from podgpu.catalog.row import Kind, Scope
from podgpu.model import UNATTRIBUTED, Booking, Card, Claim, ContainerRef, Fault, Pod, Rest, Snapshot, Tenant
from podgpu.views.exposition import Format, render
from podgpu.views.native import families
from podgpu.views.series import SeriesFilter
from tests.tree import balanced
from tests.views.quirks import BUSY, EVIL, HOSTILE, LLAMA, SLICE, SNAPSHOT, SPLIT
from tests.views.test_exposition import PARSERS

SUMS = (
    ("container_memory_used_bytes", "unattributed_memory_bytes", "gpu_booked_memory_bytes"),
    ("container_busy_seconds_total", "unattributed_busy_seconds_total", "gpu_booked_busy_seconds_total"),
    ("container_energy_joules_total", "unattributed_energy_joules_total", "gpu_booked_energy_joules_total"),
)


def series(snapshot: Snapshot, *, processes: bool = False) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """Family → labels → value, as another program reads the page."""
    page = render(
        families(snapshot, {}, choice=SeriesFilter(level="process" if processes else "container", detail=True)),
        Format.TEXT,
    ).decode()
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in PARSERS[Format.TEXT](page):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


def of(snapshot: Snapshot, family: str, *facts: tuple[str, str], processes: bool = False) -> list[float]:
    samples = series(snapshot, processes=processes).get(f"podgpu_{family}", {})
    return [value for labels, value in samples.items() if labels.issuperset(facts)]


def node(*cards: Card) -> Snapshot:
    return replace(SNAPSHOT, cards=cards)


def alone(*tenants: Tenant, ended: Sequence[Tenant] = (), rest: Sequence[Rest] = (), card: Card = BUSY) -> Card:
    """The card with these on it and nobody else, its books balanced."""
    balance = balanced([tenant.booking for tenant in (*tenants, *ended)], rest)
    return replace(card, tenants=tenants, ended=tuple(ended), rest=tuple(rest), balance=balance)


def decimals(page: str, family: str, uuid: str) -> list[Decimal]:
    return [
        Decimal(number) for number in re.findall(rf'^podgpu_{family}{{.*?uuid="{uuid}".*}} (\S+)$', page, re.MULTILINE)
    ]


def assert_balanced(snapshot: Snapshot, uuid: str) -> None:
    page = render(families(snapshot, {}), Format.TEXT).decode()
    for containers, unattributed, booked in SUMS:
        ended = unattributed.replace("unattributed", "ended")
        parts = (containers, unattributed, ended)
        total = sum(number for family in parts for number in decimals(page, family, uuid))
        assert decimals(page, booked, uuid) == [total]


def test_the_books_on_the_page_balance() -> None:
    assert_balanced(SNAPSHOT, BUSY.gpu.uuid)
    assert_balanced(SNAPSHOT, SPLIT.gpu.uuid)


AMOUNTS = st.integers(0, 10**13)  # of µs, a third of a year; of mJ, half a year of a busy card
FEW = st.sampled_from(["a", "b"])
TENANTS = st.builds(
    Tenant,
    container=st.builds(ContainerRef, FEW, FEW, FEW, FEW),
    mig=st.sampled_from(["", "MIG-1"]),
    booking=st.builds(Booking, processes=st.integers(0, 3), busy_us=AMOUNTS, energy_mj=AMOUNTS, allocated_us=AMOUNTS),
)


@given(
    st.lists(TENANTS, max_size=12, unique_by=lambda tenant: (tenant.mig, tenant.container)),
    st.integers(0, 12),
    st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), min_size=len(UNATTRIBUTED), max_size=len(UNATTRIBUTED)),
)
def test_decimals_add_up_exactly(tenants: list[Tenant], live: int, amounts: list[tuple[int, int, int]]) -> None:
    rest = [
        Rest(reason=reason, memory_bytes=size, busy_us=busy, energy_mj=energy)
        for reason, (size, busy, energy) in zip(UNATTRIBUTED, amounts, strict=True)
    ]
    books = node(alone(*tenants[:live], ended=tenants[live:], rest=rest))
    assert_balanced(books, BUSY.gpu.uuid)


def test_a_tenth_of_a_second_and_two_are_three() -> None:
    third = Tenant(container=LLAMA, booking=Booking(busy_us=300_000, energy_mj=300))
    page = render(families(node(alone(third)), {}), Format.TEXT).decode()
    assert decimals(page, "container_busy_seconds_total", BUSY.gpu.uuid) == [Decimal("0.3")]
    assert decimals(page, "container_energy_joules_total", BUSY.gpu.uuid) == [Decimal("0.3")]


def test_every_container_series_carries_the_same_labels() -> None:
    names = {"node", "gpu", "uuid", "mig", "namespace", "pod", "container"}
    own = {
        "podgpu_container_info": {"method", "certainty", "pod_uid"},
        "podgpu_container_busy_likely_seconds_total": {"end"},
        "podgpu_container_energy_likely_joules_total": {"end"},
        "podgpu_container_busy_bound_seconds_total": {"bound"},
        "podgpu_container_state": {"state"},
        "podgpu_container_energy_bound_joules_total": {"bound"},
    }
    for family, samples in series(SNAPSHOT, processes=True).items():
        if family.startswith("podgpu_container_"):
            extra = own.get(family, {"pid"} if "_process_" in family else set())
            assert {frozenset(name for name, _ in labels) for labels in samples} == {frozenset(names | extra)}


def test_an_instance_is_named_and_a_whole_card_has_an_empty_one() -> None:
    migs = {dict(labels)["pod"]: dict(labels)["mig"] for labels in series(SNAPSHOT)["podgpu_container_processes"]}
    assert migs[LLAMA.pod] == ""
    assert migs[SLICE.pod] == SPLIT.instances[0].mig.uuid


def test_a_pod_that_ended_leaves_its_counters_and_nothing_else() -> None:
    cards = [alone(ended=(*card.tenants, *card.ended), card=card) for card in SNAPSHOT.cards]
    found = {name for name in series(node(*cards)) if name.startswith("podgpu_container_")}
    assert found == {
        "podgpu_container_busy_seconds_total",
        "podgpu_container_energy_joules_total",
        "podgpu_container_busy_bound_seconds_total",
        "podgpu_container_energy_bound_joules_total",
        "podgpu_container_busy_likely_seconds_total",
        "podgpu_container_energy_likely_joules_total",
        "podgpu_container_allocated_seconds_total",
        "podgpu_container_unknown_use_seconds_total",
        "podgpu_container_busy_settled_seconds_total",
    }


def test_a_pod_made_again_under_its_name_adds_to_its_series() -> None:
    assert of(SNAPSHOT, "container_busy_seconds_total", ("pod", "llama-0")) == [0.100007]
    assert of(SNAPSHOT, "container_memory_used_bytes", ("pod", "llama-0")) == [20 * 2**30]


def test_the_method_is_on_the_info_and_on_no_counter() -> None:
    facts = (("pod", "llama-0"), ("method", "measured"), ("certainty", "estimated"), ("pod_uid", LLAMA.pod_uid))
    assert of(SNAPSHOT, "container_info", *facts) == [1.0]
    for name, rows in catalog_families().items():
        if rows[0].scope is Scope.CONTAINER and rows[0].kind is Kind.COUNTER:
            assert set(rows[0].label_names) <= {"bound", "end"}, name


def test_who_cannot_be_booked_has_no_counters() -> None:
    """The size of its MIG instance is not known: 0 would be a lie."""
    unsized = Tenant(container=LLAMA, mig="MIG-1", booking=Booking(bookable=False, processes=1))
    found = {name for name in series(node(alone(unsized))) if name.startswith("podgpu_container_")}
    assert found == {"podgpu_container_info", "podgpu_container_processes"}


def test_what_was_never_booked_has_no_counters() -> None:
    holder = replace(alone(Tenant(container=LLAMA), rest=[Rest(reason="unknown")]), balance=None)
    names = {name for name in series(node(holder)) if "container_" in name or "unattributed_" in name}
    assert names == {"podgpu_container_info", "podgpu_unattributed_processes"}


@pytest.mark.parametrize(
    ("family", "reasons"),
    [
        ("processes", {"overhead", "host", "container", "unknown"}),
        ("busy_seconds_total", {"host", "container", "unknown"}),
        ("energy_joules_total", {"idle", "host", "container", "unknown"}),
        ("sm_utilization_ratio", {"host"}),
        ("power_watts", {"idle", "host"}),
    ],
)
def test_what_can_mean_nothing_for_a_reason_is_not_there(family: str, reasons: set[str]) -> None:
    found = series(node(BUSY))[f"podgpu_unattributed_{family}"]
    assert {dict(labels)["reason"] for labels in found} == reasons


def test_since_when_it_is_held_and_how_busy_the_card_is() -> None:
    assert of(SNAPSHOT, "container_held_since_timestamp_seconds", ("pod", "dev-0")) == [1759900000.0]
    assert of(SNAPSHOT, "container_held_since_timestamp_seconds", ("pod", "llama-0")) == []
    assert of(SNAPSHOT, "gpu_busy_ratio", ("gpu", "0")) == [0.97]
    slices = ("container_sm_utilization_ratio", "container_instance_utilization_ratio")
    assert [of(SNAPSHOT, name, ("pod", SLICE.pod)) for name in slices] == [[0.2], [0.5]]


def test_what_is_unknown_is_absent() -> None:
    unseen = (("pod", "dev-0"), ("gpu", "1"))
    assert of(SNAPSHOT, "container_memory_used_bytes", *unseen) == []
    assert of(SNAPSHOT, "container_sm_utilization_ratio", *unseen) == []
    assert of(SNAPSHOT, "container_processes", *unseen) == []
    assert of(SNAPSHOT, "container_processes", ("namespace", "<b>")) == [0.0]
    assert of(SNAPSHOT, "container_allocated_ratio", ("namespace", "team-b")) == []


def test_a_card_without_an_energy_counter_has_no_energy_to_book() -> None:
    books = node(HOSTILE)
    assert of(books, "container_allocated_seconds_total") == [0.0]
    assert of(books, "container_energy_joules_total") == []
    assert of(books, "gpu_booked_energy_joules_total") == []


def test_a_card_that_tells_no_activity_has_no_busy_time_to_book() -> None:
    """As before Hopper with MIG: that nothing is booked does not mean that nothing ran."""
    silent = replace(BUSY, ability=replace(BUSY.ability, counts_busy=False))
    tenant = Tenant(container=LLAMA, booking=Booking(energy_mj=1))
    books = node(alone(tenant, rest=(Rest(reason="unknown", energy_mj=1),), card=silent))
    assert of(books, "container_energy_joules_total") == [0.001]
    for family in ("container", "unattributed", "gpu_booked"):
        assert of(books, f"{family}_busy_seconds_total") == []


def test_processes_that_cannot_be_seen_are_not_counted() -> None:
    unseen = [replace(tenant, booking=replace(tenant.booking, processes=None), idle=None) for tenant in BUSY.tenants]
    ability = replace(BUSY.ability, knows_owners=False)
    blind = node(replace(BUSY, tenants=tuple(unseen), ability=ability))
    assert of(SNAPSHOT, "container_processes") != []
    assert of(SNAPSHOT, "unattributed_processes") != []
    assert of(blind, "container_processes") == []
    assert of(blind, "unattributed_processes") == []


def test_of_a_silent_card_claims_and_counters_are_left() -> None:
    silent = node(replace(BUSY, fault=Fault(reason="lost"), readings=()))
    assert len(of(silent, "container_info")) == len(BUSY.tenants)
    assert of(silent, "container_allocated_ratio") == of(node(BUSY), "container_allocated_ratio") != []
    assert of(silent, "container_power_watts") == of(silent, "container_sm_utilization_ratio") == []
    assert of(silent, "unattributed_processes") == []
    assert of(silent, "container_memory_used_bytes") == []
    assert of(silent, "unattributed_busy_seconds_total") != []


def test_a_name_with_a_claim_under_one_uid_and_processes_under_another_has_both() -> None:
    """Two log folders of one name: the kubelet does not say which of the two holds the card."""
    right = Booking(processes=0, allocated_ratio=0.5, memory_limit_bytes=9)
    claim = Tenant(container=replace(LLAMA, pod_uid=""), booking=right)
    user = Tenant(container=LLAMA, booking=Booking(processes=1, memory_bytes=7, sm_ratio=0.25))
    both = node(alone(claim, user))
    gauges = (
        "memory_used_bytes",
        "memory_limit_bytes",
        "sm_utilization_ratio",
        "allocated_ratio",
        "processes",
    )
    assert [of(both, f"container_{gauge}") for gauge in gauges] == [[7.0], [9.0], [0.25], [0.5], [1.0]]
    vague = Tenant(container=replace(LLAMA, pod_uid="other"), booking=Booking(processes=1, sm_ratio=0.25))
    assert of(node(alone(vague, user)), "container_memory_used_bytes") == []


def test_processes_only_when_asked_for() -> None:
    family = "process_memory_used_bytes"
    assert of(SNAPSHOT, family) == []
    assert of(SNAPSHOT, family, ("pid", "424"), ("pod", "llama-0"), processes=True) == [20 * 2**30]
    assert of(SNAPSHOT, family, ("pid", "1000"), ("pod", ""), processes=True) == [2**30 // 100]


def labels_of(*pods: Pod) -> list[dict[str, str]]:
    return [dict(labels) for labels in series(replace(SNAPSHOT, pods=pods))["podgpu_pod_info"]]


def test_a_pods_details_are_on_its_info() -> None:
    (found,) = labels_of(replace(SNAPSHOT.pods[0], labels={"app": "llama"}))
    assert found == {
        "node": "gpu-node-1",
        "namespace": "ml",
        "pod": "llama-0",
        "pod_uid": LLAMA.pod_uid,
        "workload_kind": "StatefulSet",
        "workload_name": "llama",
        "phase": "Running",
        "label_app": "llama",
    }


def test_labels_that_become_one_name_are_told_apart() -> None:
    keys = {"a.b": "1", "a/b": "2", "a-b": "3", "a_b_conflict1": "4"}
    (found,) = labels_of(Pod(namespace="n", name="p", uid="u", labels=keys))
    told = {name: value for name, value in found.items() if name.startswith("label_")}
    assert told == {
        "label_a_b": "3",
        "label_a_b_conflict1": "1",
        "label_a_b_conflict2": "2",
        "label_a_b_conflict1_conflict1": "4",
    }


def test_all_pods_carry_the_same_label_names() -> None:
    first, second = labels_of(
        Pod(namespace="n", name="p", uid="1", labels={"a": "x"}),
        Pod(namespace="n", name="p", uid="2", labels={"b": "y"}),
    )
    assert first.keys() == second.keys()
    assert (first["label_b"], second["label_a"]) == ("", "")


def test_a_hostile_name_is_text_and_nothing_more() -> None:
    (found,) = [labels for labels in labels_of(*SNAPSHOT.pods) if labels["pod_uid"] == EVIL.pod_uid]
    assert found["namespace"] == "<b>"
    assert found["pod"] == '"\\\n\ufffd[31m\ufffd'
    assert found["label_____"] == '"\\\n\ufffd'


@pytest.mark.parametrize(("allocated_us", "seconds"), [(0, []), (3_000_000, [3.0])])
def test_of_a_share_of_unknown_size_no_allocated_time_is_0_and_the_unknown_time_stands_beside_it(
    allocated_us: int, seconds: list[float]
) -> None:
    ref = ContainerRef("ns", "part", "main", "u")
    booking = Booking(busy_us=1_000_000, allocated_us=allocated_us, unsized_us=60_000_000)
    held = Tenant(container=ref, claims=(Claim(gpu=BUSY.gpu.uuid, container=ref, share=0.0),), booking=booking)
    snapshot = node(alone(held))
    assert of(snapshot, "container_allocated_seconds_total") == seconds
    assert of(snapshot, "container_unknown_share_seconds_total") == [60.0]
    assert of(snapshot, "container_allocated_ratio") == []
