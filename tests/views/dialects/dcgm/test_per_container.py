"""The pages of dcgm-exporter where a shared card is split among its containers."""

from math import isfinite
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.model import Booking, ContainerRef, Reading, Snapshot, Tenant
from podgpu.views.dialects import dcgm, dcgm_4_9
from tests.catalog.dcgm import RENAMED_IN_4_9
from tests.views.dialects.dcgm_node import BATCH, CHAT, EXCLUSIVE, NODE, SHARED, STRANGER
from tests.views.dialects.test_dcgm import DEFAULT, PER_CONTAINER, Row, page, rows


def pods(found: list[Row]) -> dict[str, float]:
    return {labels.get("pod", ""): value for labels, value in found}


def test_a_shared_card_is_split_by_what_was_measured() -> None:
    assert pods(rows("DCGM_FI_DEV_GPU_UTIL", 2, config=PER_CONTAINER)) == {
        "chat": 50, "stranger": 20, "": 10,
    }  # fmt: skip
    assert pods(rows("DCGM_FI_DEV_FB_USED", 2, config=PER_CONTAINER)) == {
        "chat": 20480, "stranger": 2048, "": 8191,
    }  # fmt: skip
    assert pods(rows("DCGM_FI_DEV_POWER_USAGE", 2, config=PER_CONTAINER)) == {
        "chat": 300.25, "batch": 50, "": 220.25,
    }  # fmt: skip
    assert pods(rows("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 2, config=PER_CONTAINER)) == {
        "chat": 0.504, "stranger": 0.2, "": 0.096,
    }  # fmt: skip


def test_what_cannot_be_split_is_repeated_for_everybody() -> None:
    for name, value in (("DCGM_FI_DEV_GPU_TEMP", 56), ("DCGM_FI_DEV_FB_FREE", 113152)):
        found = pods(rows(name, 2, config=PER_CONTAINER))
        assert found == {"chat": value, "batch": value, "stranger": value}


# What KEDA, OpenCost and the rules of prometheus-adapter ask for.
def test_a_pod_on_a_shared_card_has_a_row_in_every_family() -> None:
    shared_card = replace(NODE, cards=(SHARED,))
    for family in dcgm.families(shared_card, PER_CONTAINER):
        assert any(labels.get("pod") == "chat" for labels, _ in rows(family.name, 2, config=PER_CONTAINER))


def test_the_used_part_of_the_memory_can_be_computed_for_a_pod() -> None:
    used, free = (
        {labels["pod"]: (labels, value) for labels, value in found if labels.get("pod")}
        for found in (rows(f"DCGM_FI_DEV_FB_{part}", 2, config=PER_CONTAINER) for part in ("USED", "FREE"))
    )
    assert used["chat"][0] == free["chat"][0]  # Prometheus joins rows with the same labels
    assert used["chat"][1] / (used["chat"][1] + free["chat"][1]) == pytest.approx(0.153, abs=1e-3)


SPLIT = ("DEV_GPU_UTIL", "DEV_FB_USED", "DEV_POWER_USAGE", "PROF_GR_ENGINE_ACTIVE")


@pytest.mark.parametrize("dialect", [dcgm, dcgm_4_9])
def test_splitting_changes_no_sum_and_repeating_no_maximum(dialect: ModuleType) -> None:
    node = replace(NODE, cards=(EXCLUSIVE, SHARED))
    names = {f"DCGM_FI_{name}" for name in SPLIT}
    names |= {RENAMED_IN_4_9[name] for name in names}
    for shared_family, other in zip(
        dialect.families(node, DEFAULT), dialect.families(node, PER_CONTAINER), strict=True
    ):
        whole, split = shared_family.samples.values(), other.samples.values()
        if shared_family.name in names:
            assert sum(split) == pytest.approx(sum(whole))
        else:
            assert (max(split), len(split)) == (max(whole), len(whole) + 2)


@pytest.mark.parametrize(
    ("ratios", "shown"),
    [((0.8, 0.7), [52, 45, 0]), ((0.97, 0.97), [48, 49, 0]), ((1.0, 0.0), [97, 0, 0])],
)
def test_parts_that_exceed_the_card_are_all_cut_by_the_same_ratio(
    ratios: tuple[float, float], shown: list[float]
) -> None:
    tenants = tuple(
        Tenant(container=ref, booking=Booking(sm_ratio=ratio)) for ref, ratio in zip((CHAT, BATCH), ratios, strict=True)
    )
    busy = replace(NODE, cards=(replace(EXCLUSIVE, tenants=tenants),))
    found = rows("DCGM_FI_DEV_GPU_UTIL", 0, config=PER_CONTAINER, snapshot=busy)
    assert [value for _, value in found] == shown


NUMBERS = st.none() | st.floats()
BOOKINGS = st.builds(Booking, memory_bytes=st.none() | st.integers(0, 2**64), sm_ratio=NUMBERS, power_watts=NUMBERS)
Booked = dict[ContainerRef, Booking]
# A container of the same name as one with a claim is the same pod, made again.
SPLITS = st.dictionaries(
    st.sampled_from([CHAT, BATCH, STRANGER, replace(CHAT, pod_uid="new"), replace(STRANGER, pod_uid="new")]),
    BOOKINGS,
)


def shared(booked: Booked) -> Snapshot:
    """The shared card with its claims, and these bookings alone."""
    claims = {tenant.container: tenant.claims for tenant in SHARED.tenants if tenant.claims}
    tenants = tuple(
        Tenant(container=ref, claims=claims.get(ref, ()), booking=booked.get(ref, Booking()))
        for ref in {**claims, **booked}
    )
    return replace(NODE, cards=(replace(SHARED, tenants=tenants),))


@given(SPLITS)
def test_no_booking_breaks_a_page(booked: Booked) -> None:
    for dialect in (dcgm, dcgm_4_9):
        for family in dialect.families(shared(booked), PER_CONTAINER):
            assert all(isfinite(value) for value in family.samples.values())


@given(SPLITS.map(lambda found: {ref: booking for ref, booking in found.items() if _is_sound(booking)}))
def test_however_a_card_is_used_its_rows_add_up(booked: Booked) -> None:
    node = shared(booked)
    for name in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE"):
        ((_, whole),) = rows(name, 2, snapshot=node)
        found = [value for _, value in rows(name, 2, config=PER_CONTAINER, snapshot=node)]
        assert sum(found) == pytest.approx(whole, abs=1e-6)
        assert min(found) >= 0


def _is_sound(booking: Booking) -> bool:
    return all(value is None or value >= 0 for value in (booking.sm_ratio, booking.power_watts))


def test_a_value_too_large_for_a_number_is_left_out() -> None:
    huge = replace(EXCLUSIVE, readings=(Reading("utilization_ratio", 1e308), Reading("power_watts", 1.0)))
    assert rows("DCGM_FI_DEV_GPU_UTIL", 0, snapshot=replace(NODE, cards=(huge,))) == []


def test_a_card_of_one_container_is_not_split() -> None:
    alone = replace(NODE, cards=(EXCLUSIVE,))
    assert page(dcgm, PER_CONTAINER, alone) == page(dcgm, DEFAULT, alone)


def test_only_the_memory_of_a_shared_gpu_instance_is_split() -> None:
    config = PER_CONTAINER
    found = [row for row in rows("DCGM_FI_DEV_FB_USED", 3, config=config) if row[0]["GPU_I_ID"] == "5"]
    assert pods(found) == {"chat": 5120, "batch": 2048, "": 1024}
    # Its power is the card's, and its activity cannot be divided: both containers have all of it.
    assert [value for _, value in rows("DCGM_FI_DEV_POWER_USAGE", 3, config=config)] == [390.5] * 4
    assert [value for _, value in rows("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 3, config=config)] == [0.25] * 4


def test_what_was_not_measured_is_nobodys() -> None:
    blind = shared({})
    for name in (f"DCGM_FI_{field}" for field in SPLIT):
        assert rows(name, 2, config=PER_CONTAINER, snapshot=blind) == rows(name, 2, snapshot=blind)


def test_where_nothing_can_be_measured_everybody_has_the_cards_value() -> None:
    """As on a node whose numbers come from a page, which lists no processes."""
    blind = shared({})
    (card,) = blind.cards
    paged = replace(blind, cards=(replace(card, ability=replace(card.ability, sees_processes=False)),))
    found = rows("DCGM_FI_DEV_GPU_UTIL", 2, config=PER_CONTAINER, snapshot=paged)
    assert pods(found) == {"chat": 80, "batch": 80}
