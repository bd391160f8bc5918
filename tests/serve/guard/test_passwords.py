"""Basic authentication over real sockets."""

import asyncio
import logging
import threading
from base64 import b64encode
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

import bcrypt
import pytest

from podgpu.serve.guard import guard as guard_module
from podgpu.serve.guard.guard import Guard
from tests.patience import PATIENCE, until
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


async def test_many_wrong_passwords_hold_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = basic(f"alice:{PASSWORD}")
    async with serving(StubNode(), guard=guard(tmp_path)) as server:
        assert (await shown(server, right)).status == 200  # known from now on
        begun, may_end, check = threading.Event(), threading.Event(), bcrypt.checkpw

        def lengthy(password: bytes, hashed: bytes) -> bool:
            begun.set()
            may_end.wait(PATIENCE)
            return check(password, hashed)

        monkeypatch.setattr(bcrypt, "checkpw", lengthy)
        attack = [asyncio.create_task(shown(server, basic(f"alice:{i}"))) for i in range(40)]
        await until(begun.is_set)
        assert (await shown(server, right)).status == 200
        assert (await shown(server, None, "/-/healthy")).status == 200
        may_end.set()
        statuses = [(await task).status for task in attack]
    assert statuses.count(401) >= 1
    assert statuses.count(401) + statuses.count(503) == 40
    assert statuses.count(503) > 0


async def test_a_login_that_must_be_checked_anew_passes_beside_wrong_ones_from_many_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_module, "RIGHT_SECONDS", 0.0)
    right = basic(f"alice:{PASSWORD}")
    async with serving(StubNode(), guard=guard(tmp_path, cost=8)) as server:
        assert (await shown(server, right)).status == 200

        async def stranger(number: int) -> None:
            for turn in count():
                await shown(server, basic(f"alice:{number}-{turn}"), source=f"127.0.1.{number}")

        async with asyncio.TaskGroup() as group:
            flood = [group.create_task(stranger(number)) for number in range(1, 13)]
            statuses = [(await shown(server, right)).status for _ in range(36)]
            for task in flood:
                task.cancel()
    assert statuses == [200] * 36


class Work:
    """Counts what bcrypt has to do, in steps of the cheapest hash."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = self.calls = 0
        self._check = bcrypt.checkpw
        monkeypatch.setattr(bcrypt, "checkpw", self)

    def __call__(self, password: bytes, hashed: bytes) -> bool:
        self.calls += 1
        self.done += 2 ** int(hashed[4:6])
        return self._check(password, hashed)


async def test_no_name_is_told_from_another_by_the_work_it_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, costs = Work(monkeypatch), []
    async with serving(StubNode(), guard=guard(tmp_path, cost=4, bob=hashed("x", 7), eve=hashed("y", 5))) as server:
        for name in ("alice", "bob", "eve", "nobody", ""):
            before = work.done
            assert (await shown(server, basic(f"{name}:wrong"))).status == 401
            costs.append(work.done - before)
    assert costs == [2**7] * 5


async def test_a_wrong_password_is_remembered_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    async with serving(StubNode(), guard=guard(tmp_path)) as server:
        for _ in range(20):
            assert (await shown(server, basic("alice:wrong"))).status == 401
        assert work.calls == 1


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
