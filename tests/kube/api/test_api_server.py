import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.kube.api import REASONS, ApiFault, ApiServer, LineSplitter, in_cluster
from podgpu.net.login import Login
from tests.fakeapi.certificate import certificate
from tests.fakeapi.server import FakeApi

Answer = dict[str, Any]


@asynccontextmanager
async def client(url: str, *, answer_seconds: float = 30.0, **login: Any) -> AsyncIterator[ApiServer]:
    api = ApiServer(url, Login(**login), answer_seconds=answer_seconds)
    try:
        yield api
    finally:
        await api.close()


async def fault_of(api: ApiServer, path: str = "/thing", **options: Any) -> ApiFault:
    with pytest.raises(ApiFault) as caught:
        await api.get(path, dict, **options)
    assert caught.value.reason in REASONS
    return caught.value


async def test_an_object_is_read_with_the_token() -> None:
    async with FakeApi(objects={"/thing": {"a": 1}}) as fake, client(fake.url) as api:
        assert await api.get("/thing", Answer, {"x": "y"}) == {"a": 1}
        assert fake.requests[0].query == {"x": "y"}
        assert "Authorization" not in fake.requests[0].headers


async def test_a_rotated_token_is_used_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    async with FakeApi(objects={"/thing": {}}) as fake, client(fake.url, token_file=token) as api:
        fake.token = "old"
        await api.get("/thing", Answer)
        fake.token = "new"
        token.write_text("new\n")
        await api.get("/thing", Answer)
        assert [seen.token for seen in fake.requests] == ["old", "new"]


async def test_a_refused_token_is_read_again_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    async with FakeApi(objects={"/thing": {}}) as fake, client(fake.url, token_file=token) as api:
        fake.token = "new"
        fake.on_refused_token = lambda: token.write_text("new")
        await api.get("/thing", Answer)
        assert [seen.token for seen in fake.requests] == ["old", "new"]


async def test_a_token_that_stays_refused_is_tried_twice_and_told(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret-word")
    async with FakeApi() as fake, client(fake.url, token_file=token) as api:
        fake.token = "another"
        fault = await fault_of(api)
        assert (fault.reason, fault.status) == ("unauthorized", 401)
        assert len(fake.requests) == 2
        assert "secret-word" not in repr(fault) + str(fault) + fault.detail


@pytest.mark.parametrize("content", [None, b"", b" \n", b"a\nb", b"\xff\xfe", b"a\x00b"])
async def test_a_token_that_is_none_sends_nothing(tmp_path: Path, content: bytes | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    async with FakeApi() as fake, client(fake.url, token_file=token) as api:
        assert (await fault_of(api)).reason == "unauthorized"
        assert fake.requests == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (302, "garbage"),
        (400, "garbage"),
        (403, "forbidden"),
        (404, "garbage"),
        (410, "gone"),
        (429, "throttled"),
        (500, "unreachable"),
        (503, "unreachable"),
    ],
)
async def test_every_status_has_one_reason(status: int, reason: str) -> None:
    async with FakeApi() as fake, client(fake.url) as api:
        message = b'{"kind": "Status", "message": "no such luck"}'
        fake.refuse(status, body=message, headers={"Retry-After": "7", "Location": "/elsewhere"})
        fault = await fault_of(api)
        assert (fault.reason, fault.status, fault.retry_after) == (reason, status, 7.0)
        assert "no such luck" in fault.detail
        assert len(fake.requests) == 1


@pytest.mark.parametrize(("given_", "taken"), [("99999999", 300.0), ("soon", 0.0), ("-1", 0.0), ("²", 0.0)])
async def test_a_server_cannot_switch_us_off_by_retry_after(given_: str, taken: float) -> None:
    async with FakeApi() as fake, client(fake.url) as api:
        fake.refuse(429, headers={"Retry-After": given_})
        assert (await fault_of(api)).retry_after == taken


async def test_an_answer_beyond_the_limit_is_too_large() -> None:
    async with FakeApi(objects={"/thing": {"a": "x" * 5000}}) as fake, client(fake.url) as api:
        assert (await fault_of(api, limit=4096)).reason == "too_large"
        assert await api.get("/thing", Answer, limit=6000)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a":', b"[1]", b"\xff", b"[" * 100_000])
async def test_an_answer_that_is_not_the_object_is_garbage(body: bytes) -> None:
    async with FakeApi() as fake, client(fake.url) as api:
        fake.refuse(200, body=body)
        assert (await fault_of(api)).reason == "garbage"


async def test_nobody_listening_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with client(f"http://127.0.0.1:{taken.getsockname()[1]}") as api:
            assert (await fault_of(api)).reason == "unreachable"


async def test_a_slow_answer_is_unreachable() -> None:
    async with FakeApi(delay=1.0) as fake, client(fake.url, answer_seconds=0.05) as api:
        assert (await fault_of(api)).reason == "unreachable"


async def test_the_server_is_trusted_by_the_given_authority_only(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    cert, context = certificate(tmp_path / "one")
    other, _ = certificate(tmp_path / "two")
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(other.read_bytes())
    async with FakeApi(objects={"/thing": {}}, tls=context) as fake:
        async with client(fake.url, ca_file=trusted) as api:
            assert (await fault_of(api)).reason == "tls"
            trusted.unlink()
            assert (await fault_of(api)).reason == "tls"
            trusted.write_text("no certificate")
            assert (await fault_of(api)).reason == "tls"
            trusted.write_bytes(cert.read_bytes())
            assert await api.get("/thing", Answer) == {}
        async with client(fake.url) as api:
            assert (await fault_of(api)).reason == "tls"


async def test_the_cluster_around_us_is_found(tmp_path: Path) -> None:
    account = tmp_path / "var/run/secrets/kubernetes.io/serviceaccount"
    account.mkdir(parents=True)
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    assert in_cluster(environ, tmp_path) is None
    (account / "token").write_text("t")
    assert in_cluster({}, tmp_path) is None
    cert, context = certificate(tmp_path)
    (account / "ca.crt").write_bytes(cert.read_bytes())
    async with FakeApi(objects={"/thing": {}}, tls=context) as fake:
        fake.token = "t"
        port = fake.url.rpartition(":")[2]
        found = in_cluster({**environ, "KUBERNETES_SERVICE_PORT": port}, tmp_path)
        assert found
        api = ApiServer(found.url, found.login)
        assert await api.get("/thing", Answer) == {}
        await api.close()
    sixth = in_cluster({"KUBERNETES_SERVICE_HOST": "::1"}, tmp_path)
    assert sixth and sixth.url == "https://[::1]:443"


@given(st.lists(st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b"."))), st.data())
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    splitter = LineSplitter(limit=8)
    found = [
        line
        for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for line in splitter.feed(stream[begin:end])
    ]
    assert found == [line if len(line) <= 8 else None for line in lines]


async def test_an_object_is_posted_with_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t")
    fake = FakeApi(reviews={"/reviews": lambda spec: {"seen": spec}})
    fake.token = "t"
    async with fake, client(fake.url, token_file=token) as api:
        assert (await api.post("/reviews", Answer, {"spec": 7}))["status"] == {"seen": 7}
        with pytest.raises(ApiFault) as caught:
            await api.post("/elsewhere", Answer, {"spec": 7})
    assert (caught.value.reason, caught.value.status) == ("garbage", 404)
    assert fake.requests[0].headers["Content-Type"] == "application/json"
