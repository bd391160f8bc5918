"""Many pages at once, their workloads, and a handler over one's own rows."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from podgpu import library
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from podgpu.views.dialects.container_json import document
from tests.fakeapi.recorded import owners
from tests.fakeapi.server import FakeApi
from tests.library.pods import pods
from tests.sources.dcgm.exporter import FakeExporter, recorded

T4 = recorded("k8s_484_lowercase_hostname_t4")
MPS = recorded("gke_mps_vgpu_label_pr432")
CHAT = T4.replace(b'namespace="default"', b'namespace="team-a"').replace(
    b'pod="gpu-test"', b'pod="chat-584ddf76fc-6lg2w"'
)
Client = TestClient[web.Request, web.Application]


async def test_a_page_that_fails_does_not_hide_the_others() -> None:
    async with FakeExporter(T4) as first, FakeExporter(MPS) as other:
        gone = "http://127.0.0.1:1/metrics"
        found = await library.scrape([first.url, gone, other.url, first.url])
    assert list(found) == [first.url, gone, other.url]
    assert [len(snapshot.cards) for snapshot in found.values()] == [1, 0, 1]
    [part] = found[gone].parts
    assert part.fault and (part.up, part.fault.reason) == (False, "page_unreachable")
    assert library.gpu_metrics(found[first.url]) != []


async def test_the_rows_of_a_page_have_the_workloads_that_a_resolver_finds() -> None:
    snapshot = library.read_page(CHAT)
    assert {row.workload_name for row in library.gpu_metrics(snapshot)} == {""}
    async with FakeApi(objects=owners() | pods()) as api, library.WorkloadResolver(api.url) as resolver:
        named = await resolver.with_workloads(snapshot)
    assert {(row.workload_kind, row.workload_name) for row in library.gpu_metrics(named)} == {("Deployment", "chat")}


async def test_rows_stay_when_nobody_can_name_their_workloads() -> None:
    snapshot = library.read_page(T4)
    async with FakeApi() as api, library.WorkloadResolver(api.url) as resolver:
        api.refuse(403, times=99)
        assert await resolver.with_workloads(snapshot) == snapshot


async def test_a_small_cache_forgets_the_oldest_owner() -> None:
    many = {
        f"/api/v1/namespaces/ns/pods/p{n}": {
            "metadata": {
                "name": f"p{n}",
                "namespace": "ns",
                "uid": f"p{n}",
                "ownerReferences": [
                    {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "name": f"j{n}",
                        "uid": f"u{n}",
                        "controller": True,
                    }
                ],
            },
            "spec": {},
            "status": {},
        }
        for n in range(20)
    }
    jobs = {f"/apis/batch/v1/namespaces/ns/jobs/j{n}": {"metadata": {"uid": f"u{n}"}} for n in range(20)}
    async with FakeApi(objects=many | jobs) as api:
        async with library.WorkloadResolver(api.url, cache_size=16) as resolver:
            for n in [*range(17), 16, 0]:
                await resolver.find("ns", f"p{n}")
        asked = [seen.path for seen in api.requests if "/jobs/" in seen.path]
    assert asked.count("/apis/batch/v1/namespaces/ns/jobs/j16") == 1
    assert asked.count("/apis/batch/v1/namespaces/ns/jobs/j0") == 2


def test_a_cache_must_hold_the_owners_of_a_pod() -> None:
    with pytest.raises(library.UserError, match="at least 16"):
        library.WorkloadResolver("http://127.0.0.1:1", cache_size=4)


def test_the_names_that_rows_are_made_of() -> None:
    assert len(library.METRIC_NAMES) == 28
    assert {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_SM_ACTIVE"} < library.METRIC_NAMES


@asynccontextmanager
async def asking(query: library.Querier) -> AsyncIterator[Client]:
    app = web.Application()
    app.add_routes([library.metrics_route(query)])
    async with TestClient(TestServer(app)) as client:
        yield client


async def test_a_handler_over_one_s_own_rows_answers_as_podgpu_does() -> None:
    snapshot = library.read_page(MPS, node="worker-1")

    async def query(*, pod: str, namespace: str, container: str, node: str) -> Iterable[library.GpuMetric]:
        return library.gpu_metrics(snapshot, pod=pod, namespace=namespace, container=container, node=node)

    async with asking(query) as client:
        for asked in ({}, {"pod": "no-such"}, {"missing": "null"}, {"node": "worker-1", "other": "x"}):
            answer = await client.get("/container/metrics", params=asked)
            assert answer.content_type == "application/json"
            assert json.loads(await answer.read()) == json.loads(document(snapshot, DcgmPageOptions(), asked))
        assert (await client.head("/container/metrics")).status == 405


async def test_a_row_of_one_s_own_needs_only_what_is_known() -> None:
    async def query(**_: str) -> Iterable[library.GpuMetric]:
        return [library.GpuMetric(pod="p", gpu_utilization=0.0, timestamp=datetime.fromtimestamp(0, UTC))]

    async with asking(query) as client:
        [row] = await (await client.get("/container/metrics?missing=null")).json()
    assert (row["pod"], row["gpu_utilization"], row["sm_active"]) == ("p", 0.0, None)
    assert "workload_name" not in row


def test_reading_a_page_looks_at_nothing_of_the_machine() -> None:
    """Twice, since the first time loads code."""
    script = """
import sys
from podgpu import library
page = sys.stdin.buffer.read()
library.gpu_metrics(library.read_page(page))
seen = []
sys.addaudithook(lambda event, _: seen.append(event))
library.gpu_metrics(library.read_page(page))
touched = {event for event in seen if event.startswith(("open", "os.", "socket.", "subprocess.", "ctypes."))}
print(sorted(touched), "pynvml" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", script], input=MPS, capture_output=True, check=True)
    assert ran.stdout.decode().strip() == "[] False"
