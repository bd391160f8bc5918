"""`podgpu why` against a real server."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from podgpu.cli import _remote
from podgpu.cli.main import main
from podgpu.errors import UserError
from podgpu.model import Pod
from tests.serve.rig import StubNode, serving
from tests.views.quirks import NOTEBOOK, SNAPSHOT

Ask = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    async def asked(*arguments: str, twin: bool = False) -> tuple[int, str, str]:
        node = StubNode()
        pods = (Pod(namespace="other", name="llama-0", uid="twin"),) if twin else ()
        node.current = replace(SNAPSHOT, pods=SNAPSHOT.pods + pods)
        async with serving(node) as server:
            url = f"http://127.0.0.1:{server.ports[0]}"
            code = await asyncio.to_thread(main, ["why", *arguments, "--url", url])
        return code, *capsys.readouterr()

    return asked


@pytest.mark.parametrize("arguments", [["ml/llama-0"], ["llama-0", "-n", "ml"], ["llama-0"]])
async def test_a_pod_is_found_by_any_spelling_of_its_name(ask: Ask, arguments: list[str]) -> None:
    code, out, err = await ask(*arguments)
    assert (code, err) == (0, "")
    assert out.startswith("Pod        ml/llama-0\n")
    assert "The books balance." in out


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["ml/lama-0"], "did you mean ml/llama-0?"),
        (["lama-0"], "did you mean ml/llama-0?"),
        (["team-b/llama-0"], "did you mean ml/llama-0"),
        (["notebook-7c9d8f6b5f"], f"did you mean team-b/{NOTEBOOK.pod}?"),
        (["ml/qqqqqqqqqqqq"], "ask the agent on the pod's node with --url"),
        (["ml/llama-0", "-n", "team-b"], "give one only"),
    ],
)
async def test_an_unknown_pod_is_one_line_that_helps(ask: Ask, arguments: list[str], advice: str) -> None:
    code, out, err = await ask(*arguments)
    assert (code, out) == (2, "")
    assert advice in err
    assert len(err.splitlines()) == 1


async def test_a_name_of_two_pods_needs_a_namespace(ask: Ask) -> None:
    code, _, err = await ask("llama-0", twin=True)
    assert code == 2
    assert "give one of ml/llama-0, other/llama-0" in err
    assert (await ask("other/llama-0", twin=True))[0] == 0


def test_no_agent_is_one_line_that_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert main(["why", "ml/llama-0", "--url", f"http://127.0.0.1:{port}"]) == 2
    err = capsys.readouterr().err
    assert "refuses the connection; is `podgpu agent` running there?" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://x", "http://", "http://[::1", "http://x:99999"])
def test_a_wrong_address_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "ml/llama-0", "--url", url]) == 2
    assert "is not the address of an agent" in capsys.readouterr().err


def test_without_a_pod_the_mistake_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why"]) == 2
    assert "POD" in capsys.readouterr().err


async def answered(reply: bytes, *, then_wait: bool = False) -> str:
    """What `fetch` says about a server that answers so."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        if then_wait:
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UserError) as refusal:
            await asyncio.to_thread(_remote.fetch, f"http://127.0.0.1:{port}", 0.3)
    return str(refusal.value)


async def test_whatever_answers_instead_of_an_agent_is_named() -> None:
    assert "answers 404 Not Found" in await answered(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    assert "no podgpu snapshot" in await answered(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
    assert "cannot be read" in await answered(b"SSH-2.0-OpenSSH\r\n")
    assert "cannot be read" in await answered(b"")
    assert "does not answer within 0.3 s" in await answered(b"", then_wait=True)
    partial = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"
    assert "does not answer within 0.3 s" in await answered(partial, then_wait=True)
