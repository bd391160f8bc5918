"""`podgpu why` for those outside Kubernetes, against a real server."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from podgpu.cli.main import main
from podgpu.model import ContainerRef, Tenant
from podgpu.views.why_sentences import NAMESAKE
from tests.serve.rig import StubNode, serving
from tests.views.quirks import BUSY, SNAPSHOT

Ask = Callable[..., Awaitable[tuple[int, str, str]]]

TITLES = ("docker/web", "slurm/4711", "user/alice", "user/web")
POD = ContainerRef("docker", "web", "main", "uid-web")


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    async def asked(*arguments: str, pod: bool = False) -> tuple[int, str, str]:
        owners = [ContainerRef("", "", title) for title in TITLES] + [POD] * pod
        tenants = (*BUSY.tenants, *(Tenant(container=owner) for owner in owners))
        node = StubNode()
        node.current = replace(SNAPSHOT, cards=(replace(BUSY, tenants=tenants), *SNAPSHOT.cards[1:]))
        async with serving(node) as server:
            url = f"http://127.0.0.1:{server.ports[0]}"
            code = await asyncio.to_thread(main, ["why", *arguments, "--url", url])
        return code, *capsys.readouterr()

    return asked


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("docker/web", "docker/web"),
        ("user/alice", "user/alice"),
        ("alice", "user/alice"),
        ("4711", "slurm/4711"),
    ],
)
async def test_an_outsider_is_found_by_its_title(ask: Ask, name: str, title: str) -> None:
    code, out, err = await ask(name)
    assert (code, err) == (0, "")
    assert out.startswith(f"Owner      {title}, outside Kubernetes\n")


async def test_a_pod_of_that_name_wins_and_says_so(ask: Ask) -> None:
    for arguments in (["docker/web"], ["web"]):
        code, out, _ = await ask(*arguments, pod=True)
        assert (code, out.splitlines()[0]) == (0, "Pod        docker/web")
        assert NAMESAKE in out


async def test_with_a_namespace_only_pods_are_searched(ask: Ask) -> None:
    code, out, err = await ask("web", "-n", "docker")
    assert (code, out) == (2, "")
    assert "has a pod docker/web" in err


async def test_a_name_of_two_outsiders_needs_a_title(ask: Ask) -> None:
    code, _, err = await ask("web")
    assert code == 2
    assert "several are called web; give one of docker/web, user/web" in err


async def test_a_title_that_is_nearly_right_is_suggested(ask: Ask) -> None:
    code, _, err = await ask("user/alcie")
    assert code == 2
    assert "did you mean user/alice" in err
