"""Bearer tokens, reviewed by an API server, over real sockets."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podgpu.assembly.server import TokenReviewer
from podgpu.kube.api import ApiServer
from podgpu.kube.reviews import ACCESS, TOKENS
from podgpu.serve.guard import checks
from podgpu.serve.guard.guard import Guard
from podgpu.serve.server import NodeServer
from tests.fakeapi.server import FakeApi
from tests.patience import PATIENCE, until
from tests.serve.guard.login import basic, hashed, shown
from tests.serve.rig import StubNode, serving

ACCOUNT = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "uid": "u-1",
    "groups": ["system:serviceaccounts", "system:authenticated"],
    "extra": {"authentication.kubernetes.io/pod-name": ["prometheus-0"]},
}
GOOD = "Bearer good-token"


def whose(spec: Any) -> Any:
    if spec["token"] == "good-token":
        return {"authenticated": True, "user": ACCOUNT, "audiences": ["https://kubernetes.default.svc"]}
    return {"authenticated": False, "error": "invalid bearer token"}


def may(spec: Any) -> Any:
    asked = spec["nonResourceAttributes"]
    return {"allowed": asked == {"verb": "get", "path": "/metrics"}, "reason": "RBAC"}


def cluster() -> FakeApi:
    return FakeApi(reviews={TOKENS: whose, ACCESS: may})


@asynccontextmanager
async def guarded(fake: FakeApi, patience: float = PATIENCE) -> AsyncIterator[NodeServer]:
    guard = Guard(authority=TokenReviewer(ApiServer(fake.url), patience))
    async with serving(StubNode(), guard=guard) as server:
        yield server


async def test_an_account_that_may_get_the_path_gets_it() -> None:
    async with cluster() as fake, guarded(fake) as server:
        answer = await shown(server, GOOD)
        assert answer.status == 200
        assert b"podgpu_build_info" in answer.body
    token, access = fake.requests
    assert token.body == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "good-token"},
    }
    assert access.body["kind"] == "SubjectAccessReview"
    assert access.body["spec"] == {
        "user": ACCOUNT["username"],
        "uid": "u-1",
        "groups": ACCOUNT["groups"],
        "extra": ACCOUNT["extra"],
        "nonResourceAttributes": {"verb": "get", "path": "/metrics"},
    }


async def test_an_account_that_may_not_is_told_what_would_let_it() -> None:
    async with cluster() as fake, guarded(fake) as server:
        for path in ("/metrics/native", "/nowhere"):
            answer = await shown(server, GOOD, path)
            assert answer.status == 403
            assert f"a ClusterRole with '{path}' among its nonResourceURLs" in answer.text


def discovery(spec: Any) -> Any:
    """What a real API server of 1.36 says of an account without any role: it may look around."""
    path = spec["nonResourceAttributes"]["path"]
    free = ("/api", "/apis", "/openapi")
    names = ("/healthz", "/livez", "/readyz", "/version", "/version/")
    return {"allowed": path in (*free, *names) or path.startswith(tuple(f"{each}/" for each in free))}


async def test_what_every_account_may_get_of_kubernetes_opens_no_page() -> None:
    async with cluster() as fake, guarded(fake) as server:
        fake.reviews[ACCESS] = discovery
        for path in ("/", "/metrics", "/api/v1/snapshot", "/api/v1/nothing", "//api/v1/snapshot", "/version"):
            answer = await shown(server, GOOD, path)
            assert answer.status == 403, path
        assert "'/podgpu/api/v1/snapshot'" in (await shown(server, GOOD, "/api/v1/snapshot")).text


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer ", "Bearer stolen", basic("alice:good-token")])
async def test_nobodys_token_is_refused(authorization: str | None) -> None:
    async with cluster() as fake, guarded(fake) as server:
        answer = await shown(server, authorization)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="podgpu"'
        assert (await shown(server, authorization, "/-/healthy")).status == 200


async def test_a_review_is_kept_for_a_while() -> None:
    async with cluster() as fake, guarded(fake) as server:
        statuses = [(await shown(server, token)).status for token in (GOOD, GOOD, "Bearer bad", "Bearer bad")]
        assert statuses == [200, 200, 401, 401]
        assert len(fake.requests) == 3


async def test_a_review_grows_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "ALLOWED_SECONDS", 0.05)
    async with cluster() as fake, guarded(fake) as server:
        assert (await shown(server, GOOD)).status == 200
        fake.reviews[TOKENS] = lambda _: {"authenticated": False}
        await asyncio.sleep(0.1)
        assert (await shown(server, GOOD)).status == 401


async def test_many_who_show_the_same_token_ask_once() -> None:
    async with cluster() as fake, guarded(fake) as server:
        fake.delay = 0.1
        answers = await asyncio.gather(*(shown(server, GOOD) for _ in range(30)))
        assert {answer.status for answer in answers} == {200}
        assert len(fake.requests) == 2


async def test_a_flood_of_tokens_does_not_flood_the_api_server() -> None:
    async with cluster() as fake, guarded(fake) as server:
        fake.delay = 2 * PATIENCE
        flood = [asyncio.create_task(shown(server, f"Bearer {number}")) for number in range(40)]
        await until(lambda: sum(task.done() for task in flood) == 39)
        good = asyncio.create_task(shown(server, GOOD, source="127.0.0.2"))
        await until(lambda: len(fake.requests) == 2)
        fake.delay = 0.0
        assert (await good).status == 200
        statuses = [(await task).status for task in flood]
        assert statuses.count(401) == 1, "a new address shows first what it is"
        assert statuses.count(503) == 39


async def test_strangers_cause_few_reviews_and_a_known_token_does_not_wait_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks, "ALLOWED_SECONDS", 0.0)
    async with cluster() as fake, guarded(fake) as server:
        assert (await shown(server, GOOD)).status == 200
        before, fake.delay = len(fake.requests), 0.2

        async def stranger(number: int) -> None:
            for turn in range(20):
                await shown(server, f"Bearer {number}-{turn}", source=f"127.0.1.{1 + number % 12}")

        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            flood = [group.create_task(stranger(number)) for number in range(48)]
            while not all(task.done() for task in flood):
                assert (await shown(server, GOOD)).status == 200
        seconds = asyncio.get_running_loop().time() - began
        asked = [seen.body["spec"]["token"] for seen in fake.requests[before:] if seen.path == TOKENS]
        assert asked.count("good-token") > 2
        most = 2 * checks.LIMITS.total.burst + seconds * checks.LIMITS.total.per_second
        assert len(asked) - asked.count("good-token") <= min(most, 48 * 20 - 1)


async def test_one_token_is_reviewed_once_whatever_it_asks_for() -> None:
    async with cluster() as fake, guarded(fake) as server:
        fake.delay = 0.1
        paths = ("/metrics", "/", "/api/v1/snapshot", "/nowhere")
        statuses = [answer.status for answer in await asyncio.gather(*(shown(server, GOOD, path) for path in paths))]
        assert statuses == [200, 403, 403, 403]
    assert [seen.path for seen in fake.requests].count(TOKENS) == 1
    assert [seen.path for seen in fake.requests].count(ACCESS) == len(paths)


@pytest.mark.parametrize(
    ("answered", "status"),
    [(["podgpu"], 200), (["podgpu", "other"], 200), (["other"], 401), ([], 401), (None, 401)],
)
async def test_a_token_must_be_for_one_of_the_audiences(answered: list[str] | None, status: int) -> None:
    audiences = ("podgpu", "gpu.example")
    async with cluster() as fake:
        fake.reviews[TOKENS] = lambda spec: whose(spec) | {"audiences": answered}
        guard = Guard(authority=TokenReviewer(ApiServer(fake.url), audiences=audiences))
        async with serving(StubNode(), guard=guard) as server:
            assert (await shown(server, GOOD)).status == status
    assert fake.requests[0].body["spec"] == {"token": "good-token", "audiences": list(audiences)}


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 200])
@pytest.mark.parametrize("path", [TOKENS, ACCESS])
async def test_without_a_review_access_is_denied(status: int, path: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    body = b'{"kind": "Status", "message": "refused: good-token", "status": {"allowed": true}}'
    async with cluster() as fake, guarded(fake) as server:
        fake.refuse(status, times=2, body=body, wanted=lambda seen: seen.path == path)
        answer = await shown(server, GOOD)
        assert answer.status == 503
        assert "a token cannot be checked" in caplog.text
        assert "good-token" not in str([record.__dict__ for record in caplog.records])
        fake._plans.clear()
        assert (await shown(server, GOOD)).status == 200  # a failure is not kept


async def test_an_api_server_that_is_away_or_slow_lets_nobody_in() -> None:
    async with cluster() as fake, guarded(fake, patience=0.2) as server:
        fake.delay = 2.0
        assert (await shown(server, GOOD)).status == 503
        await fake.stop()
        assert (await shown(server, GOOD)).status == 503
        assert (await shown(server, None, "/-/ready")).status == 200


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"authenticated": True},
        {"authenticated": True, "user": {"username": ""}},
        {"authenticated": False},
    ],
)
async def test_half_an_answer_about_a_token_is_none(status: Any) -> None:
    async with cluster() as fake, guarded(fake) as server:
        fake.reviews[TOKENS] = lambda _: status
        assert (await shown(server, GOOD)).status == 401


async def test_a_denial_outweighs_an_allowance() -> None:
    async with cluster() as fake, guarded(fake) as server:
        fake.reviews[ACCESS] = lambda _: {"allowed": True, "denied": True}
        assert (await shown(server, GOOD)).status == 403


async def test_either_a_password_or_a_token_opens_the_pages(tmp_path: Any) -> None:
    path = tmp_path / "web-config.yml"
    path.write_text(f"basic_auth_users: {{alice: {hashed('secret')}}}")
    async with cluster() as fake:
        guard = Guard(path, TokenReviewer(ApiServer(fake.url)))
        async with serving(StubNode(), guard=guard) as server:
            answers = [await shown(server, credentials) for credentials in (basic("alice:secret"), GOOD, None)]
    assert [answer.status for answer in answers] == [200, 200, 401]
    assert answers[2].headers["www-authenticate"] == 'Basic realm="podgpu", Bearer realm="podgpu"'
