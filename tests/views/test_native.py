import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu import catalog
from podgpu.model import (
    Ability,
    Allocation,
    Balance,
    Booking,
    Card,
    Claim,
    ContainerRef,
    ErrorCount,
    Fault,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    Owner,
    PartStatus,
    Pod,
    Process,
    Reading,
    Rest,
    Snapshot,
    Tenant,
    VirtualGpu,
    Workload,
)
from podgpu.views.exposition import Format, render
from podgpu.views.native import families
from podgpu.views.series import Family, Key, Labels, SeriesFilter, count
from tests.conftest import Golden
from tests.views.quirks import BUSY, DROPPED, SNAPSHOT, STUCK
from tests.views.test_exposition import PARSERS

ALL = SeriesFilter(level="process", detail=True)
PROMTOOL = shutil.which("promtool")


def by_name(snapshot: Snapshot) -> dict[str, Family]:
    return {family.name: family for family in families(snapshot, {})}


def pairs(key: Key) -> dict[str, str]:
    return {name: value for labels in key for name, value in labels.pairs().items()}


def test_the_text_page(golden: Golden) -> None:
    golden("native.txt", render(families(SNAPSHOT, DROPPED), Format.TEXT))


def test_the_openmetrics_page(golden: Golden) -> None:
    golden("native.openmetrics.txt", render(families(SNAPSHOT, DROPPED), Format.OPENMETRICS))


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_finds_nothing_to_say() -> None:
    page = render(families(SNAPSHOT, DROPPED, choice=ALL), Format.TEXT)
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_series_are_counted_with_the_count_itself() -> None:
    page = families(SNAPSHOT, DROPPED)
    (series,) = (family for family in page if family.name == "podgpu_series")
    assert series.samples == {(Labels.of({"node": SNAPSHOT.node}),): count(page)}


def test_a_card_that_is_down_says_why_and_nothing_else() -> None:
    page = by_name(replace(SNAPSHOT, cards=(STUCK,)))
    about_it = [
        name for name, family in page.items() if any(pairs(key).get("uuid") == STUCK.gpu.uuid for key in family.samples)
    ]
    assert about_it == ["podgpu_gpu_up", "podgpu_gpu_info", "podgpu_gpu_problem"]
    assert list(page["podgpu_gpu_up"].samples.values()) == [0.0]
    (key,) = page["podgpu_gpu_problem"].samples
    assert pairs(key).items() >= {"reason": "timeout", "call": "nvmlDeviceGetPowerUsage"}.items()


def test_the_mode_is_on_the_page() -> None:
    for demo, word in ((True, "true"), (False, "false")):
        (key,) = by_name(replace(SNAPSHOT, demo=demo))["podgpu_build_info"].samples
        assert pairs(key)["demo"] == word


def test_a_reading_that_the_catalog_does_not_know_is_left_out() -> None:
    strange = (Reading("no_such_metric", 1.0), Reading("power_watts", 1.0, ("surplus label",)))
    page = by_name(replace(SNAPSHOT, cards=(replace(BUSY, readings=strange),)))
    assert not [name for name in page if name.endswith(("no_such_metric", "gpu_power_watts"))]


def test_an_instance_has_only_the_families_the_catalog_grants() -> None:
    readings = (Reading("sm_active_ratio", 0.5), Reading("power_watts", 100.0))
    instance = Instance(mig=MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0), readings=readings)
    page = by_name(replace(SNAPSHOT, cards=(replace(BUSY, readings=(), instances=(instance,)),)))
    assert [name for name in page if name.startswith("podgpu_mig_")] == ["podgpu_mig_sm_active_ratio"]


def test_names_stay_apart_in_openmetrics_too() -> None:
    """There, a counter `x_total` and a gauge `x` would be one family."""
    names = [name.removesuffix("_total").removesuffix("_info") for name in catalog.families()]
    assert len(names) == len(set(names))


# A few words and a few tricks: a tree of freely invented ones takes too long to grow.
NAMES = st.sampled_from(["", "a", "b", "GPU-1", "a/b", "<b>", '"\\\n', "\x00\x1b[31m\x9b", "\ud800ü💥", "x" * 300])
# No document takes a larger one; what makes no sense is no number.
VALUES = st.floats(-1e24, 1e24) | st.sampled_from([float("nan"), float("inf"), -float("inf")])
# Strategies are made once: one that is made anew for each example costs more than the example itself.
READING = {
    row.name: st.builds(Reading, st.just(row.name), VALUES, st.tuples(*(NAMES for _ in row.label_names)))
    for row in catalog.device_rows()
}
READINGS = st.lists(st.sampled_from(list(READING)).flatmap(READING.__getitem__), max_size=6).map(tuple)
MIGS = st.builds(
    MigInstance, uuid=NAMES, gpu_instance_id=st.integers(0, 2), compute_instance_id=st.just(0), profile=NAMES
)
PIDS = st.integers(1, 5)
UUIDS = st.sampled_from(["GPU-1", "GPU-2", "\x1b"])
MAYBE = st.none() | st.integers(0, 2**50)
AMOUNTS = st.integers(0, 2**50)
RATIOS = st.none() | st.floats(0, 1)
REFS = st.builds(ContainerRef, NAMES, NAMES, NAMES, NAMES)
WORKLOADS = st.none() | st.builds(Workload, kind=NAMES, name=NAMES)


def several(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=2).map(tuple)


HOLDERS = st.builds(
    Holder,
    pid=PIDS,
    kind=st.sampled_from(["pod", "host", "container", "unknown"]),
    container=st.none() | REFS,
    owner=st.none() | st.builds(Owner, pod_uid=st.none() | NAMES),
    cgroup=NAMES,
    title=NAMES,
    reason=NAMES,
    serves=st.booleans(),
)
PROCESSES = several(
    st.builds(
        Process,
        pid=PIDS,
        kinds=st.sampled_from([(), ("compute",), ("compute", "mps")]),
        memory_bytes=MAYBE,
        sm_ratio=RATIOS,
        mig=NAMES,
        holder=st.none() | HOLDERS,
    )
)
BOOKINGS = st.builds(
    Booking,
    method=NAMES,
    processes=st.none() | st.integers(0, 3),
    memory_bytes=MAYBE,
    memory_limit_bytes=MAYBE,
    sm_ratio=RATIOS,
    power_watts=RATIOS,
    allocated_ratio=RATIOS,
    busy_us=AMOUNTS,
    energy_mj=AMOUNTS,
    last_active_at=st.none() | st.floats(0, 1e11),
)
TENANTS = several(
    st.builds(
        Tenant,
        container=REFS,
        mig=NAMES,
        workload=WORKLOADS,
        claims=several(st.builds(Claim, gpu=UUIDS, container=REFS, mig=NAMES, share=st.floats(0, 1))),
        processes=PROCESSES,
        booking=BOOKINGS,
        idle=st.none() | st.booleans(),
        vgpu=st.none() | st.builds(VirtualGpu, pod_uid=NAMES, container=NAMES, gpu=UUIDS),
    )
)
CARDS = st.builds(
    Card,
    gpu=st.builds(Gpu, uuid=UUIDS, index=st.integers(0, 2), model=NAMES),
    fault=st.none() | st.builds(Fault, reason=NAMES, call=NAMES),
    ability=st.builds(
        Ability,
        sees_all=st.booleans(),
        knows_owners=st.booleans(),
        counts_busy=st.booleans(),
        counts_energy=st.booleans(),
    ),
    readings=READINGS,
    instances=st.lists(st.builds(Instance, mig=MIGS, readings=READINGS), max_size=2).map(tuple),
    tenants=TENANTS,
    ended=TENANTS,
    rest=several(st.builds(Rest, reason=NAMES, memory_bytes=MAYBE, busy_us=AMOUNTS, processes=PROCESSES)),
    balance=st.none() | st.builds(Balance, memory_bytes=MAYBE),
)
SNAPSHOTS = st.builds(
    Snapshot,
    node=NAMES,
    taken_at=st.just(1.0),
    interval_seconds=st.just(5.0),
    version=NAMES,
    cards=st.lists(CARDS, max_size=3).map(tuple),
    pods=several(
        st.builds(
            Pod,
            namespace=NAMES,
            name=NAMES,
            uid=NAMES,
            labels=st.dictionaries(NAMES, NAMES, max_size=3),
            workload=WORKLOADS,
        )
    ),
    unclaimed=several(
        st.builds(Allocation, namespace=NAMES, pod=NAMES, container=NAMES, resource=NAMES, device_id=NAMES)
    ),
    parts=st.lists(st.builds(PartStatus, name=NAMES, up=st.booleans()), max_size=2).map(tuple),
    errors=st.lists(st.builds(ErrorCount, source=NAMES, reason=NAMES, count=st.integers(0, 2**63 - 1)), max_size=2).map(
        tuple
    ),
)


@given(SNAPSHOTS)
def test_no_snapshot_makes_a_series_twice(snapshot: Snapshot) -> None:
    page = families(snapshot, {}, choice=ALL)
    parsed = PARSERS[Format.TEXT](render(page, Format.TEXT).decode())
    series = [(sample.name, frozenset(sample.labels.items())) for family in parsed for sample in family.samples]
    assert len(series) == len(set(series)) == count(page)
