import gzip
import json
import logging

import msgspec
import pytest

from podgpu.config import Config
from podgpu.serve.guard.guard import Guard
from podgpu.serve.http.request import Request
from podgpu.serve.pages import NodePages, register_pages
from podgpu.serve.request_handler import Load
from podgpu.serve.routes import NodeRoutes
from tests.serve.rig import StubNode, broken, connected, fetch, serving

PAGES = ("/", "/metrics", "/metrics/native", "/api/v1/snapshot", "/-/healthy", "/-/ready")


async def test_metrics_are_prometheus_text() -> None:
    async with serving(StubNode()) as server:
        answer = await fetch(server, "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "# TYPE podgpu_" in answer.text


async def test_metrics_are_openmetrics_when_asked_for() -> None:
    async with serving(StubNode()) as server:
        answer = await fetch(server, "/metrics", Accept="application/openmetrics-text;version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


async def test_pages_of_other_systems_are_text_whatever_is_asked_for() -> None:
    """Their counters have no type in OpenMetrics, since their names do not end in _total."""
    asked = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
    pages = {"dcgm": register_pages(Config().of).pages["/metrics/dcgm"]}
    async with serving(StubNode(), dialects=pages) as server:
        theirs = await fetch(server, "/metrics/dcgm", **asked)
        own = await fetch(server, "/metrics", **asked)
    assert theirs.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert own.headers["content-type"].startswith("application/openmetrics-text")


async def test_health_is_answered_as_by_dcgm_exporter() -> None:
    async with serving(StubNode()) as server:
        answer = await fetch(server, "/health")
    assert (answer.status, answer.body) == (200, b"OK")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-registry-available"] == "true"


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/snapshot"])
async def test_gzip_holds_the_same_page(path: str) -> None:
    node = StubNode()
    node.current = msgspec.structs.replace(node.current, taken_at=4e9)  # the status page's age stays 0
    async with serving(node) as server:
        plain = await fetch(server, path)
        packed = await fetch(server, path, Accept_Encoding="gzip")
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/snapshot"])
async def test_a_page_that_the_client_has_is_not_sent_again(path: str) -> None:
    node = StubNode()
    async with serving(node) as server, connected(server) as client:
        page = await client.get(path)
        packed = await client.get(path, Accept_Encoding="gzip")
        tag = page.headers["etag"]
        assert tag != packed.headers["etag"]
        for held in (tag, f'"other", W/{tag}', "*"):
            client.ask(path, If_None_Match=held)
            again = await client.answer(head_only=True)
            assert (again.status, again.headers["etag"]) == (304, tag)
            assert "content-length" not in again.headers
        node.current = msgspec.structs.replace(node.current, node="worker-2")
        newer = await client.get(path, If_None_Match=tag)
    assert newer.status == 200
    assert newer.headers["etag"] != tag


async def test_the_snapshot_is_json() -> None:
    async with serving(StubNode()) as server:
        answer = await fetch(server, "/api/v1/snapshot")
    assert answer.headers["content-type"].startswith("application/json")
    assert json.loads(answer.body)["node"] == "worker-1"


async def test_the_status_page_is_html() -> None:
    async with serving(StubNode()) as server:
        answer = await fetch(server, "/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "worker-1" in answer.text


@pytest.mark.parametrize("path", [*PAGES, "/nowhere"])
async def test_every_answer_carries_the_security_headers(path: str) -> None:
    async with serving(StubNode()) as server:
        headers = (await fetch(server, path)).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; ")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert headers["server"] == "podgpu"


@pytest.mark.parametrize("path", PAGES)
async def test_head_answers_as_get_without_the_body(path: str) -> None:
    async with serving(StubNode()) as server, connected(server) as client:
        head = await client.get(path, "HEAD")
        page = await client.get(path)
    assert head.status == page.status == 200
    assert abs(int(head.headers["content-length"]) - len(page.body)) < 10  # the status page's age may change
    assert head.headers["content-type"] == page.headers["content-type"]


async def test_an_unknown_path_is_answered_with_the_list_of_paths() -> None:
    async with serving(StubNode()) as server:
        answer = await fetch(server, "/metric")
    assert answer.status == 404
    for path in PAGES:
        assert f"\n{path}\n" in answer.text


@pytest.mark.parametrize(
    ("path", "method", "allow"), [("/metrics", "POST", "GET, HEAD"), ("/-/release", "GET", "POST")]
)
async def test_a_wrong_method_is_answered_with_the_right_one(path: str, method: str, allow: str) -> None:
    async with serving(StubNode()) as server:
        answer = await fetch(server, path, method)
    assert answer.status == 405
    assert answer.headers["allow"] == allow


async def test_queries_are_ignored() -> None:
    async with serving(StubNode()) as server:
        answer = await fetch(server, "/metrics?" + "&".join(["name[]=x"] * 500))
    assert answer.status == 200


async def test_ready_only_after_the_first_attempt() -> None:
    node = StubNode()
    node.ready = False
    async with serving(node) as server:
        early = await fetch(server, "/-/ready")
        node.ready = True
        late = await fetch(server, "/-/ready")
    assert (early.status, late.status) == (503, 200)
    assert "retry-after" in early.headers


async def test_a_broken_view_breaks_no_other_page(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        async with serving(StubNode(), dialects={"broken": broken}) as server, connected(server) as client:
            answer = await client.get("/metrics/broken")
            again = await client.get("/metrics/broken")
            healthy = await client.get("/-/healthy")
            metrics = await client.get("/metrics")
    assert answer.status == again.status == 500
    assert answer.text.count("\n") == 1
    assert "broken" not in answer.text
    assert healthy.status == metrics.status == 200
    [fields] = [vars(record)["fields"] for record in caplog.records]  # the second is not logged
    assert (fields["page"], str(fields["error"])) == ("/metrics/broken", "this view is broken")
    assert fields["at"].startswith("rig.py:")


@pytest.mark.parametrize(("query", "seconds"), [("", 300), ("?seconds=1", 1), ("?seconds=3600", 3600)])
async def test_release_for_the_time_given(query: str, seconds: int) -> None:
    node = StubNode()
    async with serving(node) as server:
        answer = await fetch(server, f"/-/release{query}", "POST")
    assert answer.status == 200
    assert json.loads(answer.body) == {"released": True, "seconds": seconds}
    assert node.released == [seconds]


@pytest.mark.parametrize("text", ["0", "3601", "-1", "1.5", "", "five", "٣", "9" * 5000])
async def test_release_refuses_a_bad_time(text: str) -> None:
    node = StubNode()
    async with serving(node) as server:
        answer = await fetch(server, f"/-/release?seconds={text}", "POST")
    assert answer.status == 400
    assert answer.text.count("\n") == 1
    assert node.released == []


async def test_release_says_when_the_sampler_is_stuck() -> None:
    node = StubNode()
    node.gone = False
    async with serving(node) as server:
        answer = await fetch(server, "/-/release", "POST")
    assert answer.status == 503
    assert json.loads(answer.body)["released"] is False


@pytest.mark.parametrize(
    ("peer", "status"),
    [
        *((peer, 200) for peer in ("127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1")),
        *((peer, 403) for peer in ("10.0.0.1", "fe80::1%eth0", "::ffff:10.0.0.1", "2001:db8::1", "")),
    ],
)
async def test_only_this_machine_may_release(peer: str, status: int) -> None:
    # A peer elsewhere is not to be had on loopback, so the request is made by hand.
    node = StubNode()
    release = NodeRoutes(node, NodePages(1000), Load(1)).table("native")["/-/release"]
    answer = await release.run(Request("POST", "/-/release", {}, {}, peer))
    assert answer.status == status
    assert bool(node.released) is (status == 200)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://example.org"},
        *({"Sec_Fetch_Site": site} for site in ("cross-site", "same-site", "anything")),
        # A name of another site that means this machine: DNS rebinding.
        *({"Host": host} for host in ("rebound.example.org:19400", "10.0.0.5", "localhost.example.org")),
    ],
)
async def test_a_page_of_another_site_may_not_release(headers: dict[str, str]) -> None:
    node = StubNode()
    async with serving(node) as server:
        answer = await fetch(server, "/-/release", "POST", **headers)
    assert answer.status == 403
    assert node.released == []


async def test_healthz_says_what_zxporter_said() -> None:
    async with serving(StubNode()) as server:
        assert (await fetch(server, "/healthz")).text.strip() == "OK"
        assert (await fetch(server, "/-/healthy")).text.strip() == "healthy"


@pytest.mark.parametrize("host", ["127.0.0.1:19400", "[::1]:19400", "localhost", "a.localhost:1", "gpu.here"])
async def test_a_program_here_may_release(host: str) -> None:
    node = StubNode()
    async with serving(node, guard=Guard(hosts=["gpu.here"])) as server:
        answer = await fetch(server, "/-/release", "POST", Host=host, Sec_Fetch_Site="none")
    assert answer.status == 200


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/snapshot", "/nowhere"])
async def test_with_a_list_of_hosts_no_other_name_is_answered(path: str) -> None:
    async with serving(StubNode(), guard=Guard(hosts=["GPU.example.org"])) as server:
        refused = await fetch(server, path, Host="rebound.example.org")
        for host in ("gpu.example.org:19400", "10.1.2.3:19400", "[fe80::1]"):
            assert (await fetch(server, path, Host=host)).status == (404 if path == "/nowhere" else 200)
        assert (await fetch(server, "/-/healthy", Host="anything")).status == 200
    assert refused.status == 421
    assert b"worker-1" not in refused.body
