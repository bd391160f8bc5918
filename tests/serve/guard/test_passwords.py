"""Basic authentication over real sockets."""

import asyncio
import logging
from base64 import b64encode
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from podgpu.serve.guard.guard import Guard
from podgpu.serve.guard.passwords import CHECKS_OF_A_CLIENT
from tests.serve.guard.login import basic, hashed, shown
from tests.serve.rig import StubNode, connected, serving

PASSWORD = "correct horse: battery"


def guard(folder: Path, cost: int = 4, **more: str) -> Guard:
    users = {"alice": hashed(PASSWORD, cost), **more}
    path = folder / "web-config.yml"
    path.write_text("basic_auth_users:\n" + "".join(f"  {name}: {value}\n" for name, value in users.items()))
    return Guard(path)


async def test_the_right_password_opens_the_pages(tmp_path: Path) -> None:
    async with serving(StubNode(), guard=guard(tmp_path)) as server:
        for word in ("Basic", "basic", "BASIC"):
            answer = await shown(server, basic(f"alice:{PASSWORD}").replace("Basic", word))
            assert answer.status == 200
            assert b"podgpu_build_info" in answer.body


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        basic("alice:wrong"),
        basic("alice:"),
        basic("alice"),
        basic(f"bob:{PASSWORD}"),
        basic(f":{PASSWORD}"),
        basic(f"alice:{PASSWORD}") + ", " + basic(f"alice:{PASSWORD}"),
        basic("alice:" + "x" * 100),
        basic("alice:a\x00b"),
        "Basic",
        "Basic ????",
        "Basic /w==",
        "Bearer token",
        f"alice:{PASSWORD}",
    ],
)
async def test_anything_else_is_refused(tmp_path: Path, authorization: str | None) -> None:
    async with serving(StubNode(), guard=guard(tmp_path)) as server:
        for path in ("/metrics", "/", "/api/v1/snapshot", "/nowhere"):
            answer = await shown(server, authorization, path)
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == 'Basic realm="podgpu"'
            assert "podgpu_" not in answer.text
        assert (await shown(server, authorization, "/-/ready")).status == 200


async def test_release_needs_both_loopback_and_the_password(tmp_path: Path) -> None:
    node = StubNode()
    async with serving(node, guard=guard(tmp_path)) as server, connected(server) as client:
        assert (await client.get("/-/release", "POST")).status == 401
        assert node.released == []
        right = basic(f"alice:{PASSWORD}")
        assert (await client.get("/-/release", "POST", Authorization=right)).status == 200


async def test_a_hash_of_htpasswd_is_understood(tmp_path: Path) -> None:
    """htpasswd marks its hashes with 2y."""
    theirs = hashed("secret").replace("$2b$", "$2y$")
    async with serving(StubNode(), guard=guard(tmp_path, bob=theirs)) as server:
        assert (await shown(server, basic("bob:secret"))).status == 200
        assert (await shown(server, basic("alice:secret"))).status == 401


async def test_of_a_long_password_the_first_72_bytes_count(tmp_path: Path) -> None:
    async with serving(StubNode(), guard=guard(tmp_path, bob=hashed("x" * 72))) as server:
        assert (await shown(server, basic("bob:" + "x" * 90))).status == 200
        assert (await shown(server, basic("bob:" + "x" * 71))).status == 401


async def test_many_wrong_passwords_hold_up_nobody(tmp_path: Path) -> None:
    right = basic(f"alice:{PASSWORD}")
    async with serving(StubNode(), guard=guard(tmp_path, cost=13)) as server:
        assert (await shown(server, right)).status == 200  # known from now on
        attack = [asyncio.create_task(shown(server, basic(f"alice:{i}"))) for i in range(40)]
        await asyncio.sleep(0.05)
        assert (await shown(server, right)).status == 200
        assert (await shown(server, None, "/-/healthy")).status == 200
        assert not all(task.done() for task in attack), "the checks of the wrong ones should take longer"
        statuses = [(await task).status for task in attack]
    assert statuses.count(401) >= CHECKS_OF_A_CLIENT
    assert statuses.count(401) + statuses.count(503) == 40
    assert statuses.count(503) > 0


async def test_a_client_that_tries_passwords_leaves_room_for_another(tmp_path: Path) -> None:
    async with serving(StubNode(), guard=guard(tmp_path, cost=11)) as server:
        attack = [asyncio.create_task(shown(server, basic(f"alice:{i}"))) for i in range(40)]
        await asyncio.sleep(0.02)
        assert (await shown(server, basic(f"alice:{PASSWORD}"), source="127.0.0.2")).status == 200
        for task in attack:
            await task


async def test_many_scrapes_with_one_new_password_are_all_answered(tmp_path: Path) -> None:
    async with serving(StubNode(), guard=guard(tmp_path, cost=10)) as server:
        answers = await asyncio.gather(*(shown(server, basic(f"alice:{PASSWORD}")) for _ in range(20)))
    assert {answer.status for answer in answers} == {200}


async def test_a_client_that_leaves_during_the_check_harms_nothing(tmp_path: Path) -> None:
    async with serving(StubNode(), guard=guard(tmp_path, cost=10)) as server:
        async with AsyncExitStack() as stack:
            for number in range(5):
                client = await stack.enter_async_context(connected(server))
                client.ask("/metrics", Authorization=basic(f"alice:{number}"))
        assert (await shown(server, basic(f"alice:{PASSWORD}"), source="127.0.0.2")).status == 200


async def test_no_secret_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(StubNode(), guard=guard(tmp_path)) as server:
        await shown(server, basic(f"alice:{PASSWORD}"))
        await shown(server, basic("alice:wrong-word"))
    for secret in (PASSWORD, "wrong-word", "$2b$", b64encode(b"alice:wrong-word").decode()):
        assert secret not in caplog.text
