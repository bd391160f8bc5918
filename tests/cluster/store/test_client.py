"""What a store may answer, and how it is asked."""

import base64
from pathlib import Path

import pytest

from podgpu.cluster.store import client
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import Notice, Point, StoreFault
from podgpu.errors import UserError
from tests.cluster.store.stub import StubStore, error, matrix, serving, vector
from tests.fakeapi.certificate import certificate


async def ask(stub: StubStore, **options: object) -> tuple[list[Point], set[Notice]]:
    store = Store(StoreOptions(url=f"{stub.url}/prometheus", **options))  # type: ignore[arg-type]
    try:
        return await store.points('up{job="podgpu"}', 1794700000.5), store.notices
    finally:
        await store.close()


async def test_it_is_asked_below_its_path_for_a_time() -> None:
    async with serving(StubStore(answer=vector(({"node": "a"}, "1.5")))) as stub:
        assert await ask(stub) == ([Point({"node": "a"}, 1.5)], set())
    assert stub.seen[0].path == "/prometheus/api/v1/query"
    assert stub.asked == [
        {
            "query": 'up{job="podgpu"}',
            "time": "1794700000.500",
            "nocache": "1",
            "dedup": "true",
            "max_source_resolution": "0s",
        }
    ]


async def test_marks_of_an_ended_series_are_no_samples() -> None:
    async with serving(StubStore(answer=matrix(({"node": "a"}, [(1.0, "5"), (2.0, "NaN"), (3.0, "6")])))) as stub:
        store = Store(StoreOptions(url=stub.url))
        [series] = await store.series("up[5m]", 3.0)
        await store.close()
    assert series.samples == [(1.0, 5.0), (3.0, 6.0)]


@pytest.mark.parametrize(
    ("more", "notice"),
    [
        (
            {"isPartial": True},
            Notice("store_partial", "the store says that it could not read all of its data"),
        ),
        ({"warnings": ["store-1 is\nunreachable"]}, Notice("store_partial", "store-1 is unreachable")),
        ({"warnings": ["PromQL warning: odd"]}, Notice("store_warning", "PromQL warning: odd")),
        (
            {"warnings": ["No StoreAPIs matched for this query"]},
            Notice("store_warning", "No StoreAPIs matched for this query"),
        ),
    ],
)
async def test_half_an_answer_is_taken_and_noted(more: dict[str, object], notice: Notice) -> None:
    async with serving(StubStore(answer=vector(({}, "1"), **more))) as stub:
        points, notices = await ask(stub)
    assert [point.value for point in points] == [1.0]
    assert notices == {notice}


@pytest.mark.parametrize(
    ("stub", "reason"),
    [
        (StubStore(400, error("bad_data", "parse error")), "store_error"),
        (StubStore(401, body=b"Unauthorized\n"), "store_refused"),
        (StubStore(403, body=b"<html>no</html>"), "store_refused"),
        (StubStore(302, body=b"", headers={"Location": "https://login.example"}), "store_refused"),
        (StubStore(404, body=b"404 page not found"), "store_error"),
        (StubStore(422, error("execution", "query processing would load too many samples")), "store_limited"),
        (
            StubStore(422, error("422", "cannot select more than -search.maxSamplesPerQuery=1")),
            "store_limited",
        ),
        (
            StubStore(422, error("execution", "the query exceeded the maximum number of chunks")),
            "store_limited",
        ),
        (StubStore(429, error("too_many_requests", "slow down")), "store_limited"),
        (StubStore(503, error("timeout", "query timed out")), "store_late"),
        (StubStore(504, body=b"gateway timeout"), "store_late"),
        (StubStore(503, body=b"starting"), "store_unavailable"),
        (StubStore(502, body=b"bad gateway"), "store_unavailable"),
        (StubStore(500, error("internal", "boom")), "store_error"),
        (StubStore(200, error("execution", "boom")), "store_error"),
        (StubStore(200, body=b"<html>Welcome</html>"), "store_garbage"),
        (StubStore(200, body=b'{"status":"succ'), "store_garbage"),
        (StubStore(200, matrix()), "store_garbage"),
        (StubStore(200, vector(({"a": "b"}, "twelve"))), "store_garbage"),
        (
            StubStore(200, {"status": "success", "data": {"resultType": "vector", "result": [{"x": 1}]}}),
            "store_garbage",
        ),
    ],
)
async def test_every_other_answer_has_a_reason(stub: StubStore, reason: str) -> None:
    async with serving(stub):
        with pytest.raises(StoreFault) as caught:
            await ask(stub)
    assert caught.value.reason == reason
    assert caught.value.detail
    assert caught.value.detail.isprintable()


async def test_a_store_that_hangs_is_late() -> None:
    async with serving(StubStore(answer=vector(), delay=5.0)) as stub:
        with pytest.raises(StoreFault) as caught:
            await ask(stub, timeout=0.1)
    assert caught.value.reason == "store_late"


async def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LARGEST_ANSWER", 1000)
    async with serving(StubStore(body=b"x" * 100_000)) as stub:
        with pytest.raises(StoreFault) as caught:
            await ask(stub)
    assert caught.value.reason == "store_too_large"


async def test_nobody_listens() -> None:
    async with serving(StubStore()) as stub:
        pass
    with pytest.raises(StoreFault) as caught:
        await ask(stub)
    assert caught.value.reason == "store_unreachable"


async def test_it_logs_in_by_what_the_files_hold_now(tmp_path: Path) -> None:
    token, password, headers = (tmp_path / name for name in ("token", "password", "headers"))
    token.write_text("first\n")
    password.write_text("ada:love lace\n")
    headers.write_text("# of Mimir\nX-Scope-OrgID: team-a|team-b\n")
    async with serving(StubStore(answer=vector())) as stub:
        await ask(stub, token_file=token, headers_file=headers)
        token.write_text("second")
        await ask(stub, token_file=token)
        await ask(stub, password_file=password)
    first, second, third = (request.headers for request in stub.seen)
    assert first["Authorization"] == "Bearer first"
    assert first["X-Scope-OrgID"] == "team-a|team-b"
    assert second["Authorization"] == "Bearer second"
    assert "X-Scope-OrgID" not in second
    assert base64.b64decode(third["Authorization"].removeprefix("Basic ")) == b"ada:love lace"


async def test_its_certificate_must_be_trusted(tmp_path: Path) -> None:
    authority, context = certificate(tmp_path)
    async with serving(StubStore(answer=vector(({}, "1"))), context) as stub:
        points, _ = await ask(stub, ca_file=authority)
        with pytest.raises(StoreFault) as caught:
            await ask(stub)
    assert len(points) == 1
    assert caught.value.reason == "store_tls"


@pytest.mark.parametrize("name", ["token_file", "password_file"])
def test_no_login_goes_over_plain_http(tmp_path: Path, name: str) -> None:
    path = tmp_path / "secret"
    path.write_text("user:word")
    with pytest.raises(UserError, match=r"never sent over plain HTTP; write https://10\.0\.0\.1:9090"):
        Store(StoreOptions(url="http://10.0.0.1:9090", **{name: path}))  # type: ignore[arg-type]
    Store(StoreOptions(url="https://10.0.0.1:9090", **{name: path}))  # type: ignore[arg-type]
    Store(StoreOptions(url="http://[::1]:9090", **{name: path}))  # type: ignore[arg-type]


def test_a_header_may_hold_a_login_too(tmp_path: Path) -> None:
    path = tmp_path / "headers"
    path.write_text("X-Scope-OrgID: team-a")
    Store(StoreOptions(url="http://mimir:8080/prometheus", headers_file=path))
    path.write_text("X-Scope-OrgID: team-a\nX-Api-Key: 1234")
    with pytest.raises(UserError, match="plain HTTP"):
        Store(StoreOptions(url="http://mimir:8080/prometheus", headers_file=path))


def test_a_line_that_is_no_header_is_named(tmp_path: Path) -> None:
    path = tmp_path / "headers"
    path.write_text("X-Scope-OrgID: team-a\nnonsense\n")
    with pytest.raises(UserError, match="line 2: not a header"):
        Store(StoreOptions(url="https://mimir", headers_file=path))


@pytest.mark.parametrize("status", [200, 404, 413])
async def test_an_agent_is_no_store(status: int) -> None:
    async with serving(StubStore(status=status, body=b"no", headers={"Server": "podgpu"})) as stub:
        with pytest.raises(StoreFault, match=r"is a podgpu agent or cluster, not a store; give the address of Prom"):
            await ask(stub)
