import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu import catalog
from podgpu.model import (
    Allocation,
    Balance,
    Booking,
    Claim,
    ContainerRef,
    Device,
    ErrorCount,
    Fault,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    PartStatus,
    Pod,
    Process,
    Reading,
    Remainder,
    Snapshot,
    Workload,
)
from podgpu.views.exposition import Format, render
from podgpu.views.family import Family, count
from podgpu.views.native import families
from tests.conftest import Golden
from tests.views.quirks import BUSY, DROPPED, SNAPSHOT, STUCK
from tests.views.test_exposition import PARSERS

PROMTOOL = shutil.which("promtool")


def by_name(snapshot: Snapshot) -> dict[str, Family]:
    return {family.name: family for family in families(snapshot, {})}


def test_the_text_page(golden: Golden) -> None:
    golden("native.txt", render(families(SNAPSHOT, DROPPED), Format.TEXT))


def test_the_openmetrics_page(golden: Golden) -> None:
    golden("native.openmetrics.txt", render(families(SNAPSHOT, DROPPED), Format.OPENMETRICS))


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_finds_nothing_to_say() -> None:
    page = render(families(SNAPSHOT, DROPPED, processes=True), Format.TEXT)
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_series_are_counted_with_the_count_itself() -> None:
    page = families(SNAPSHOT, DROPPED)
    (series,) = (family for family in page if family.name == "podgpu_series")
    assert series.samples == {"": count(page)}


def test_a_card_that_is_down_says_why_and_nothing_else() -> None:
    page = by_name(replace(SNAPSHOT, devices=(STUCK,)))
    about_it = [
        name for name, family in page.items() if any(STUCK.gpu.uuid in text for text in family.samples)
    ]
    assert about_it == ["podgpu_gpu_up", "podgpu_gpu_info", "podgpu_gpu_problem"]
    assert list(page["podgpu_gpu_up"].samples.values()) == [0.0]
    assert 'reason="timeout",call="nvmlDeviceGetPowerUsage"}' in next(
        iter(page["podgpu_gpu_problem"].samples)
    )


def test_the_mode_is_on_the_page() -> None:
    for demo, word in ((True, 'demo="true"'), (False, 'demo="false"')):
        (text,) = by_name(replace(SNAPSHOT, demo=demo))["podgpu_build_info"].samples
        assert word in text


def test_a_reading_that_the_catalog_does_not_know_is_left_out() -> None:
    strange = (Reading("no_such_metric", 1.0), Reading("power_watts", 1.0, ("surplus label",)))
    page = by_name(replace(SNAPSHOT, devices=(replace(BUSY, readings=strange),)))
    assert not [name for name in page if name.endswith(("no_such_metric", "gpu_power_watts"))]


def test_an_instance_has_only_the_families_the_catalog_grants() -> None:
    readings = (Reading("sm_active_ratio", 0.5), Reading("power_watts", 100.0))
    instance = Instance(
        mig=MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0), readings=readings
    )
    page = by_name(replace(SNAPSHOT, devices=(replace(BUSY, readings=(), instances=(instance,)),)))
    assert [name for name in page if name.startswith("podgpu_mig_")] == ["podgpu_mig_sm_active_ratio"]


def test_names_stay_apart_in_openmetrics_too() -> None:
    """There, a counter `x_total` and a gauge `x` would be one family."""
    names = [name.removesuffix("_total").removesuffix("_info") for name in catalog.families()]
    assert len(names) == len(set(names))


NAMES = st.text(st.characters(), max_size=6)
READINGS = st.lists(
    st.sampled_from(catalog.device_rows()).flatmap(
        lambda row: st.builds(
            Reading, st.just(row.name), st.floats(), st.tuples(*(NAMES for _ in row.label_names))
        )
    ),
    max_size=6,
).map(tuple)
MIGS = st.builds(
    MigInstance, uuid=NAMES, gpu_instance_id=st.integers(0, 2), compute_instance_id=st.just(0), profile=NAMES
)
PIDS = st.integers(1, 5)
UUIDS = NAMES | st.sampled_from(["GPU-1", "GPU-2"])
MAYBE = st.none() | st.integers(0, 2**50)
RATIOS = st.none() | st.floats(0, 1)
REFS = st.builds(ContainerRef, NAMES, NAMES, NAMES, NAMES)


def several(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


BOOKS = {
    "claims": several(st.builds(Claim, gpu=UUIDS, container=REFS, mig=NAMES, share=st.floats(0, 1))),
    "holders": several(
        st.builds(Holder, pid=PIDS, kind=st.sampled_from(["pod", "host"]), container=st.none() | REFS)
    ),
    "bookings": several(
        st.builds(
            Booking,
            gpu=UUIDS,
            container=REFS,
            mig=NAMES,
            method=NAMES,
            memory_bytes=MAYBE,
            memory_limit_bytes=MAYBE,
            sm_ratio=RATIOS,
            allocated_ratio=RATIOS,
            ended=st.booleans(),
        )
    ),
    "remainders": several(st.builds(Remainder, gpu=UUIDS, reason=NAMES, memory_bytes=MAYBE)),
    "balances": several(st.builds(Balance, gpu=UUIDS, memory_bytes=MAYBE)),
    "pods": several(
        st.builds(
            Pod, namespace=NAMES, name=NAMES, uid=NAMES, labels=st.dictionaries(NAMES, NAMES, max_size=3)
        )
    ),
    "workloads": st.dictionaries(NAMES, st.builds(Workload, kind=NAMES, name=NAMES), max_size=2),
    "unclaimed": several(
        st.builds(Allocation, namespace=NAMES, pod=NAMES, container=NAMES, resource=NAMES, device_id=NAMES)
    ),
}
DEVICES = st.builds(
    Device,
    gpu=st.builds(Gpu, uuid=UUIDS, index=st.integers(0, 2), model=NAMES),
    fault=st.none() | st.builds(Fault, reason=NAMES, call=NAMES),
    readings=READINGS,
    instances=st.lists(st.builds(Instance, mig=MIGS, readings=READINGS), max_size=2).map(tuple),
    processes=several(
        st.builds(
            Process,
            pid=PIDS,
            kinds=st.just(("compute",)),
            memory_bytes=MAYBE,
            gpu_instance_id=st.none() | st.integers(0, 2),
        )
    ),
)
SNAPSHOTS = st.builds(
    Snapshot,
    node=NAMES,
    taken_at=st.just(1.0),
    interval_seconds=st.just(5.0),
    version=NAMES,
    devices=st.lists(DEVICES, max_size=3).map(tuple),
    **BOOKS,
    parts=st.lists(st.builds(PartStatus, name=NAMES, up=st.booleans()), max_size=2).map(tuple),
    errors=st.lists(st.builds(ErrorCount, source=NAMES, reason=NAMES, count=st.integers(0)), max_size=2).map(
        tuple
    ),
)


@given(SNAPSHOTS)
def test_no_snapshot_makes_a_series_twice(snapshot: Snapshot) -> None:
    page = families(snapshot, {}, processes=True)
    parsed = PARSERS[Format.TEXT](render(page, Format.TEXT).decode())
    series = [(sample.name, frozenset(sample.labels.items())) for one in parsed for sample in one.samples]
    assert len(series) == len(set(series)) == count(page)
