import json

import pytest
from msgspec.structs import replace

from podgpu import library
from podgpu.model import Booking, Snapshot
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from podgpu.views.dialects.container_json import document
from tests.sources.dcgm.exporter import recorded
from tests.views.quirks import SNAPSHOT

OMITTED_IF_EMPTY = {"mig_profile", "mig_instance_id", "workload_name", "workload_kind"}
SHARED = library.read_page(recorded("gke_mps_vgpu_label_pr432"), node="worker-1")
MIG = library.read_page(recorded("mig_a800_8gpu_mixed_full"), node="worker-2")


@pytest.mark.parametrize("snapshot", [SHARED, MIG, SNAPSHOT])
def test_the_rows_are_those_of_the_document(snapshot: Snapshot) -> None:
    served = json.loads(document(snapshot, DcgmPageOptions(), {"missing": "null"}))
    rows = library.gpu_metrics(snapshot)
    assert len(rows) == len(served) > 0
    names = library.GpuMetric.__struct_fields__
    for row, found in zip(rows, served, strict=True):
        assert set(names) - set(found) <= OMITTED_IF_EMPTY
        assert [name for name in names if name in found] == list(found)
        assert {name: getattr(row, name) for name in found if name != "timestamp"} == {
            name: value for name, value in found.items() if name != "timestamp"
        }
        assert row.timestamp.timestamp() == pytest.approx(snapshot.taken_at)


@pytest.mark.parametrize("name", ["pod", "namespace", "container", "node"])
def test_a_filter_leaves_the_rows_that_match_exactly(name: str) -> None:
    field = {"node": "node_name"}.get(name, name)
    wanted = getattr(library.gpu_metrics(SHARED)[0], field)
    found = library.gpu_metrics(SHARED, **{name: wanted})
    assert found == [row for row in library.gpu_metrics(SHARED) if getattr(row, field) == wanted] != []
    assert library.gpu_metrics(SHARED, **{name: wanted[:-1]}) == []


def test_all_filters_must_hold() -> None:
    first, second = library.gpu_metrics(SHARED)
    assert library.gpu_metrics(SHARED, pod=first.pod, container=first.container) == [first]
    assert library.gpu_metrics(SHARED, pod=first.pod, container=second.container) == []


def test_an_unknown_value_is_none() -> None:
    assert {row.gpu_utilization for row in library.gpu_metrics(MIG) if row.mig_profile} == {None}


def test_with_per_container_each_row_has_its_own_values() -> None:
    [card] = SHARED.cards
    tenants = tuple(
        replace(tenant, booking=Booking(method="reserved", memory_bytes=mib * 2**20))
        for tenant, mib in zip(card.tenants, (100, 200), strict=True)
    )
    booked = replace(SHARED, cards=(replace(card, tenants=tenants),))
    found = library.gpu_metrics(booked, per_container=True)
    assert {row.framebuffer_used for row in found} == {100.0, 200.0}
