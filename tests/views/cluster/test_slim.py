from msgspec.structs import replace

from podgpu.model import Holder, Pod, PodContainer, Process, Reading, Rest
from podgpu.views import json
from podgpu.views.cluster.json import slim
from podgpu.views.dialects import container_json, pod_gpu_map
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from tests.cluster.nodes import card, snapshot, tenant
from tests.views.quirks import SNAPSHOT

HOLDER = Holder(pid=7, kind="host", cgroup="0::/user.slice", command="python", title="user/ann")
PROCESS = Process(pid=7, kinds=("compute",), holder=HOLDER)


def test_it_loses_readings_and_evidence_but_not_who_is_there() -> None:
    rest = Rest(reason="host", processes=(PROCESS,))
    own = card("GPU-1", tenant("ml/a", processes=(PROCESS,)), rest=(rest,))
    own = replace(own, readings=(*own.readings, Reading("fan_speed_ratio", 0.3)))
    pod = Pod(namespace="ml", name="a", uid="u", containers=(PodContainer(name="main"),), labels={"team": "x"})
    found = slim(replace(snapshot("n", own), pods=(pod,)))
    assert [reading.metric for reading in found.cards[0].readings] == [
        "memory_total_bytes", "memory_used_bytes", "power_watts",
    ]  # fmt: skip
    (process,) = found.cards[0].tenants[0].processes
    (outsider,) = found.cards[0].rest[0].processes
    assert process.pid == 7 and process.holder is None
    assert outsider.holder is not None and (outsider.holder.title, outsider.holder.cgroup) == ("user/ann", "")
    assert found.pods[0].labels == {"team": "x"} and not found.pods[0].containers


def test_an_alarm_is_kept_where_it_is_not_0_and_every_clock_event_is() -> None:
    events = [Reading("clock_event", 1.0, (reason,)) for reason in ("hardware_thermal", "idle")]
    pending, failed = Reading("row_remap_pending", 0.0), Reading("row_remap_failed", 1.0)
    own = replace(card("GPU-1"), readings=(pending, failed, *events))
    assert slim(snapshot("n", own)).cards[0].readings == (failed, *events)


def test_the_pages_of_a_whole_cluster_are_the_same_from_the_slim_form() -> None:
    options = DcgmPageOptions()
    for query in ({}, {"missing": "null"}):
        whole = container_json.document(SNAPSHOT, options, query)
        assert container_json.document(slim(SNAPSHOT), options, query) == whole
    assert pod_gpu_map.rows(slim(SNAPSHOT)) == pod_gpu_map.rows(SNAPSHOT)


def test_it_is_read_back_as_any_other_snapshot() -> None:
    found = slim(snapshot("n"))
    assert json.decode(json.encode(found)) == found
