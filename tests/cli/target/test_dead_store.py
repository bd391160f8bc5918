"""A store that gives no answer is never taken for a cluster in which nobody is idle."""

import asyncio
import socket
from pathlib import Path

import pytest
from aiohttp import web

from podgpu.cli.main import main
from tests.cluster.store.stub import StubStore, error, matrix, serving, vector

COMMANDS = {
    "idle": ["idle"],
    "idle as JSON": ["idle", "-o", "json"],
    "top": ["top", "--once"],
    "top nodes": ["top", "nodes", "--once", "-o", "csv"],
    "inspect": ["inspect"],
    "inspect --used": ["inspect", "--used"],
    "why": ["why", "ml/train"],
    "report": ["report"],
    "doctor": ["doctor"],
    "snapshot": ["snapshot"],
    "record": ["record", "tape", "--for=1s"],
}


class Empty(StubStore):
    """It works, and has nothing of podgpu."""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        query = str((await request.post())["query"])
        return web.json_response(matrix() if query.endswith("]") else vector())


FAULTS: dict[str, tuple[StubStore, str]] = {
    "401": (StubStore(401, body=b"who are you?"), "store_refused"),
    "404": (StubStore(404, body=b"no such page"), "store_error"),
    "500": (StubStore(500, error("internal", "it broke")), "store_error"),
    "garbage": (StubStore(200, body=b"<html>Welcome</html>"), "store_garbage"),
    "empty body": (StubStore(200, body=b""), "store_garbage"),
    "empty": (Empty(), "store_empty"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_says_why_there_is_no_answer_and_fails(
    command: str,
    fault: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    store, reason = FAULTS[fault]
    async with serving(store):
        await _check(COMMANDS[command], store.url, reason, capfd)


@pytest.mark.parametrize("reason", ["store_unreachable", "store_late"])
@pytest.mark.parametrize("command", COMMANDS)
async def test_a_store_that_refuses_or_says_nothing_is_named(
    command: str,
    reason: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        if reason == "store_late":
            nobody.listen(64)
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        await _check(COMMANDS[command], url, reason, capfd)


async def _check(words: list[str], url: str, reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    seconds = 1 if reason == "store_late" else 60
    line = [*words, f"--prometheus.url={url}", f"--prometheus.timeout={seconds}s"]
    code = await asyncio.to_thread(main, line)
    printed = capfd.readouterr()
    assert (code, printed.out) == (2, ""), printed.err
    (said,) = [line for line in printed.err.splitlines() if " level=info " not in line]  # the stub logs requests
    assert f"{reason}: " in said
