"""The user's own kubectl, over its real socket, in front of the fake API server."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podgpu.errors import UserError
from podgpu.kube.api import DETAIL_LENGTH, ApiFault
from podgpu.kube.api.kubeconfig import KubectlApi
from tests.fakeapi.certificate import certificate
from tests.fakeapi.kubeconfig import TOKEN, kubeconfig, kubectl
from tests.fakeapi.server import FakeApi, Seen, bookmark
from tests.patience import PATIENCE, until

Answer = dict[str, Any]


@asynccontextmanager
async def reached(path: Path, context: str = "") -> AsyncIterator[KubectlApi]:
    api = KubectlApi(kubectl(), kubeconfig=path, context=context)
    try:
        yield api
    finally:
        await api.close()


async def advice(api: KubectlApi) -> str:
    with pytest.raises(UserError) as caught:
        await api.check()
    return str(caught.value)


def children() -> set[int]:
    own = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return set(map(int, own.split()))


async def test_a_login_by_a_plugin_is_kubectls_business(tmp_path: Path) -> None:
    ca, tls = certificate(tmp_path)
    fake = FakeApi(objects={"/version": {"minor": "36"}, "/thing": {"a": 1}}, tls=tls, token=TOKEN)
    async with fake, reached(kubeconfig(tmp_path / "k", fake, ca)) as api:
        await api.check()
        assert await api.get("/thing", Answer, {"x": "y"}) == {"a": 1}
        assert fake.requests[-1].query == {"x": "y"}
        assert fake.requests[-1].token == TOKEN


async def test_a_watch_comes_through_line_by_line(tmp_path: Path) -> None:
    async with FakeApi() as fake, reached(kubeconfig(tmp_path, fake)) as api:
        query = {"watch": "1", "resourceVersion": "1", "timeoutSeconds": "5"}
        async with api.stream("/api/v1/pods", query, silence=5) as lines:
            await until(lambda: fake.open_watches)
            fake.send(bookmark(7), 7)
            async with asyncio.timeout(PATIENCE):
                assert await anext(aiter(lines)) == bookmark(7).rstrip(b"\n")


async def test_a_wrong_context_names_those_there_are(tmp_path: Path) -> None:
    async with FakeApi() as fake, reached(kubeconfig(tmp_path, fake), "prod") as api:
        assert await advice(api) == "there is no context 'prod'; choose one with --context: other, real"


async def test_without_any_context_another_file_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("apiVersion: v1\nkind: Config\n")
    async with reached(path, "prod") as api:
        assert await advice(api) == "there is no context 'prod'; the kubeconfig has none; choose another file"


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (
            ["W1117 03:00:00.1 1 a.go:1] old", "Error: unknown flag: --x", "See help."],
            "Error: unknown flag: --x See help.",
        ),
        (["error: " + "x" * 2000], "error: " + "x" * (DETAIL_LENGTH - len("error: "))),
        (["I1117 03:00:00.1 1 a.go:1] first", "F1117 03:00:00.1 1 a.go:2] no [key] there"], "no [key] there"),
    ],
)
async def test_what_kubectl_ended_with_is_shown_from_its_beginning(
    tmp_path: Path, lines: list[str], shown: str
) -> None:
    program = tmp_path / "kubectl"
    program.write_text("\n".join(["#!/bin/sh", "cat >&2 <<'END'", *lines, "END", "exit 1"]))
    program.chmod(0o755)
    with pytest.raises(ApiFault) as caught:
        await KubectlApi(str(program)).get("/thing", Answer)
    assert caught.value.detail == shown


async def test_a_refused_login_says_so(tmp_path: Path) -> None:
    fake = FakeApi(token="another")
    async with fake, reached(kubeconfig(tmp_path, fake), "real") as api:
        assert "refuses the login of context 'real'; log in again" in await advice(api)


async def test_a_plugin_that_is_not_there_is_named(tmp_path: Path) -> None:
    ca, tls = certificate(tmp_path)
    fake = FakeApi(tls=tls)
    async with fake, reached(kubeconfig(tmp_path / "k", fake, ca, plugin="no-such-login")) as api:
        said = await advice(api)
        assert "no-such-login" in said
        assert "kubectl get nodes" in said


async def test_a_server_that_is_away_is_named(tmp_path: Path) -> None:
    async with FakeApi() as fake:
        path = kubeconfig(tmp_path, fake)
    async with reached(path) as api:
        assert "refused" in await advice(api)


async def test_a_kubectl_that_is_not_there_is_a_fault() -> None:
    api = KubectlApi("/no/such/kubectl")
    with pytest.raises(ApiFault, match="No such file"):
        await api.get("/thing", Answer)


async def test_the_child_and_its_folder_end_with_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = tmp_path / "tmp"
    places.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(places))
    before = children()
    async with FakeApi(objects={"/thing": {}}) as fake:
        async with reached(kubeconfig(tmp_path, fake)) as api:
            await api.get("/thing", Answer)
            (folder,) = places.iterdir()
            assert folder.stat().st_mode & 0o777 == 0o700
            assert children() - before
        assert children() == before
        assert not list(places.iterdir())


async def test_a_child_that_was_killed_is_started_again(tmp_path: Path) -> None:
    before = children()
    async with (
        FakeApi(objects={"/thing": {}}) as fake,
        reached(kubeconfig(tmp_path, fake)) as api,
    ):
        await api.get("/thing", Answer)
        (child,) = children() - before
        os.kill(child, signal.SIGKILL)
        await until(lambda: api._child and not api._child.is_alive)
        await api.get("/thing", Answer)


async def test_a_refusal_of_the_server_keeps_its_reason(tmp_path: Path) -> None:
    def is_thing(seen: Seen) -> bool:
        return seen.path == "/thing"

    async with FakeApi() as fake, reached(kubeconfig(tmp_path, fake)) as api:
        fake.refuse(403, body=b'{"message": "nodes is forbidden"}', wanted=is_thing)
        with pytest.raises(ApiFault) as caught:
            await api.get("/thing", Answer)
        assert (caught.value.reason, caught.value.detail) == ("forbidden", "HTTP 403: nodes is forbidden")
