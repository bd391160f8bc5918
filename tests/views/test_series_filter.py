import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu import catalog
from podgpu.catalog.row import Kind, Worth
from podgpu.cluster.report.counters import FAMILIES, RANGE_FAMILIES
from podgpu.model import Booking, ContainerRef, Reading, Tenant
from podgpu.views.native import families
from podgpu.views.series import BILLED, EVERYTHING, Family, Labels, SeriesFilter, count, fit
from tests.views.quirks import BUSY, SNAPSHOT


def family(name: str, worth: Worth, size: int) -> Family:
    return Family(name, Kind.GAUGE, "", worth, {(Labels(("i",), (str(i),)),): 1.0 for i in range(size)})


def names(families: list[Family]) -> list[str]:
    return [family.name for family in families]


def test_a_page_within_its_budget_is_left_alone() -> None:
    page = [family("a", Worth.DETAIL, 3), family("b", Worth.VITAL, 2)]
    assert fit(page, 5) == (page, {})


def test_the_least_valuable_goes_first_and_the_order_stays() -> None:
    page = [
        family("vital", Worth.VITAL, 5),
        family("detail", Worth.DETAIL, 2),
        family("core", Worth.CORE, 5),
        family("useful", Worth.USEFUL, 4),
    ]
    kept, dropped = fit(page, 12)
    assert names(kept) == ["vital", "core"]
    assert dropped == {"detail": 2, "useful": 4}


def test_the_largest_of_equal_worth_goes_first() -> None:
    page = [
        family("small", Worth.USEFUL, 2),
        family("large", Worth.USEFUL, 6),
        family("middle", Worth.USEFUL, 4),
    ]
    kept, dropped = fit(page, 7)
    assert names(kept) == ["small", "middle"]
    assert dropped == {"large": 6}


def test_a_family_is_cut_whole_even_if_less_would_do() -> None:
    kept, dropped = fit([family("one", Worth.VITAL, 10)], 9)
    assert kept == []
    assert dropped == {"one": 10}


PAGES = st.lists(st.tuples(st.sampled_from(Worth), st.integers(0, 9)), max_size=12).map(
    lambda shapes: [family(f"f{i}", worth, size) for i, (worth, size) in enumerate(shapes)]
)


@given(PAGES, st.integers(0, 60))
def test_the_budget_is_never_exceeded_and_nothing_is_lost_uncounted(page: list[Family], limit: int) -> None:
    kept, dropped = fit(page, limit)
    assert count(kept) <= limit
    assert count(kept) + sum(dropped.values()) == count(page)
    worth = {family.name: family.worth.value for family in page}
    lowest_kept = min((family.worth.value for family in kept if family.samples), default=Worth.VITAL.value)
    assert all(worth[name] <= lowest_kept for name in dropped)


def page(choice: SeriesFilter) -> dict[str, Family]:
    return {family.name: family for family in families(SNAPSHOT, {}, choice=choice)}


def with_readings(*readings: Reading) -> dict[str, Family]:
    card = replace(BUSY, readings=(*BUSY.readings, *readings))
    found = families(replace(SNAPSHOT, cards=(card,)), {}, choice=SeriesFilter())
    return {family.name: family for family in found}


def test_details_are_left_out_unless_they_are_asked_for() -> None:
    assert all(row.is_detail for row in catalog.families()["podgpu_gpu_compute_mode"])
    card = replace(BUSY, readings=(*BUSY.readings, Reading("compute_mode", 0.0)))
    snapshot = replace(SNAPSHOT, cards=(card,))
    names = [
        {family.name for family in families(snapshot, {}, choice=choice)} for choice in (EVERYTHING, SeriesFilter())
    ]
    assert names[0] - names[1] == {"podgpu_gpu_compute_mode"}


def test_of_a_family_those_series_stay_that_alerts_are_about() -> None:
    reasons = ("thermal", "hardware_power_brake", "sync_boost", "low_utilization")
    found = with_readings(*(Reading("throttle_seconds_total", 0.0, (reason,)) for reason in reasons))
    labels = {key[1].values for key in found["podgpu_gpu_throttle_seconds_total"].samples}
    assert {("thermal",), ("hardware_power_brake",)} <= labels
    assert not {("sync_boost",), ("low_utilization",)} & labels


def test_an_error_counter_is_there_before_the_first_error() -> None:
    """Else increase() would not see that one."""
    quiet = replace(
        BUSY,
        readings=tuple(reading for reading in BUSY.readings if not reading.metric.startswith("xid")),
        ability=replace(BUSY.ability, hears_xids=True),
    )
    found = {family.name: family for family in families(replace(SNAPSHOT, cards=(quiet,)), {}, choice=SeriesFilter())}
    assert list(found["podgpu_gpu_xids_total"].samples.values()) == [0.0]
    deaf = replace(quiet, ability=replace(quiet.ability, hears_xids=False))
    found = {family.name: family for family in families(replace(SNAPSHOT, cards=(deaf,)), {}, choice=SeriesFilter())}
    assert "podgpu_gpu_xids_total" not in found
    twice = (Reading("xid_errors_total", 2.0, ("79",)), Reading("xid_errors_total", 1.0, ("13",)))
    raised = replace(SNAPSHOT, cards=(replace(quiet, readings=twice),))
    found = {family.name: family for family in families(raised, {}, choice=SeriesFilter())}
    assert list(found["podgpu_gpu_xids_total"].samples.values()) == [3.0]


@pytest.mark.parametrize(
    ("level", "parts"),
    [
        ("node", set()),
        ("pod", {"container", "pod"}),
        ("container", {"container", "pod"}),
        ("process", {"container", "pod", "process"}),
    ],
)
def test_a_level_says_how_far_down_series_go(level: str, parts: set[str]) -> None:
    found = {name.split("_")[1] for name in page(SeriesFilter(level=level))}
    assert found & {"container", "pod", "process"} == parts
    assert "gpu" in found


def test_a_pod_s_containers_are_one_on_the_level_of_pods() -> None:
    """Nothing is lost: the sums are those of the containers."""
    refs = [ContainerRef("ml", "train", name, "u") for name in ("a", "b")]
    tenants = tuple(
        Tenant(container=ref, booking=Booking(processes=1, memory_bytes=10 * size, sm_ratio=0.25), idle=False)
        for size, ref in enumerate(refs, 1)
    )
    snapshot = replace(SNAPSHOT, cards=(replace(BUSY, tenants=tenants, ended=()),))
    found = {family.name: family for family in families(snapshot, {}, choice=SeriesFilter(level="pod"))}
    [(labels, memory)] = found["podgpu_container_memory_used_bytes"].samples.items()
    assert (labels[0].pairs()["pod"], labels[0].pairs()["container"], memory) == ("train", "", 30.0)
    assert list(found["podgpu_container_sm_utilization_ratio"].samples.values()) == [0.5]


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        (SeriesFilter(), ["a_bytes", "a_total", "b_total"]),
        (SeriesFilter(allow=("a_*",)), ["a_bytes", "a_total"]),
        (SeriesFilter(allow=("b_total", "a_bytes")), ["a_bytes", "b_total"]),
        (SeriesFilter(deny=("*_total",)), ["a_bytes"]),
        (SeriesFilter(allow=("a_*",), deny=("a_total", "b_*")), ["a_bytes"]),
    ],
    ids=["all", "allowed", "either", "denied", "both"],
)
def test_either_list_of_names_can_stand_alone_and_what_is_denied_goes(choice: SeriesFilter, left: list[str]) -> None:
    made = [family(name, Worth.CORE, 1) for name in ("a_bytes", "a_total", "b_total")]
    assert names(choice.apply(made)) == left


def test_names_are_allowed_and_denied() -> None:
    chosen = page(SeriesFilter(allow=("podgpu_gpu_memory_*", "podgpu_up"), deny=("*_free_bytes",)))
    assert {"podgpu_up", "podgpu_gpu_memory_used_bytes"} <= chosen.keys()
    assert "podgpu_gpu_memory_free_bytes" not in chosen
    assert all(name.startswith(("podgpu_gpu_memory_", "podgpu_up")) for name in chosen)


def test_the_page_counts_what_it_has() -> None:
    for choice in (SeriesFilter(), EVERYTHING, SeriesFilter(level="node", deny=("podgpu_gpu_*",))):
        found = page(choice)
        [written] = found["podgpu_series"].samples.values()
        assert written == sum(len(family.samples) for family in found.values())


def test_every_family_is_in_a_group() -> None:
    groups = {name: catalog.group_of(rows[0]) for name, rows in catalog.families().items()}
    assert set(groups.values()) == set(catalog.GROUPS)
    assert groups["podgpu_mig_memory_used_bytes"] == groups["podgpu_gpu_memory_used_bytes"] == "memory"


def test_the_billing_level_has_every_counter_of_a_report_and_little_else() -> None:
    counters = {family.metric for family in (*FAMILIES, *RANGE_FAMILIES)}
    facts = {
        "podgpu_build_info",
        "podgpu_up",
        "podgpu_series_dropped_total",
        "podgpu_pod_info",
        "podgpu_gpu_info",
        "podgpu_unplaced_seconds_total",
    }
    assert counters | facts == BILLED <= catalog.families().keys()
    found = names(families(SNAPSHOT, {}, choice=SeriesFilter(level="billing")))
    assert set(found) == BILLED & set(names(families(SNAPSHOT, {})))
