"""The same on a machine without Kubernetes: an honest container or user beside one who cheats."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from podgpu.model import Card
from tests.agent.whole.test_two_tenants import SLEEP, Node, billed, joules, listed, node
from tests.host.machine import write_docker, write_subordinates, write_users
from tests.host.process.start import NOBODY, built, started

__all__ = ["node"]

WEB = "a" * 64
ALICE, BOB = 1000, 1001


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    write_docker(tmp_path, WEB, "/web")
    write_users(tmp_path, root=0, alice=ALICE, bob=BOB, nobody=NOBODY)
    write_subordinates(tmp_path, f"alice:{100_000}:65536")
    return tmp_path


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    if shutil.which("gcc") is None:
        pytest.skip("needs a compiler")
    with tempfile.TemporaryDirectory() as folder:
        yield built(Path(folder))


def program(user: int) -> str:
    return f"import os; os.setresuid({user}, {user}, {user}); {SLEEP}"


def is_same(fair: Card, forged: Card, *names: str) -> bool:
    bills = [(joules(fair, name), joules(forged, name)) for name in names]
    return all(mine > 100 and mine == pytest.approx(same, rel=0.01) for same, mine in bills)


@pytest.mark.parametrize("place", [f"docker-{WEB}.scope", f"docker/{WEB}", f"system.slice/docker-{WEB}.scope"])
async def test_a_service_that_names_its_cgroup_after_a_container_pays_itself(
    node: Node, machine: Path, place: str
) -> None:
    honest = listed(node.start(f"docker-{WEB}.scope"), 0.3)
    beside = listed(node.start("job.service", program(ALICE)), 0.6)
    forger = listed(node.start(f"job.service/{place}", program(ALICE)), 0.6)
    fair = await billed(honest, beside, busy=0.9, machine=machine)
    forged = await billed(honest, forger, busy=0.9, machine=machine)
    assert is_same(fair, forged, "docker/web", "user/alice")


@pytest.mark.parametrize("how", [(), ("wholly",)], ids=["su", "sudo"])
async def test_who_is_started_by_su_under_the_name_of_mps_pays_himself(
    node: Node, machine: Path, programs: Path, how: tuple[str, ...]
) -> None:
    """Else his time would be that of the only client of MPS."""
    client = listed(node.start("bob.service", program(BOB)), 0.1, kinds=("compute", "mps"))
    with started(programs, "tool", NOBODY, "nvidia-cuda-mps-server") as pid:
        fair = await billed(client, listed(pid, 0.8), busy=0.9, machine=machine)
    with started(programs, "nvidia-cuda-mps-su", NOBODY, *how, "nvidia-cuda-mps-server") as pid:
        forged = await billed(client, listed(pid, 0.8), busy=0.9, machine=machine)
    assert is_same(fair, forged, "user/bob", "user/nobody")
    assert joules(forged, "user/nobody") > 5 * joules(forged, "user/bob")


async def test_roots_own_mps_still_serves_its_clients(node: Node, machine: Path, programs: Path) -> None:
    client = listed(node.start("bob.service", program(BOB)), 0.1, kinds=("compute", "mps"))
    with started(programs, "nvidia-cuda-mps-control", 0, "nvidia-cuda-mps-server") as pid:
        card = await billed(client, listed(pid, 0.8), busy=0.9, machine=machine)
    assert joules(card, "user/nobody") == 0
    assert joules(card, "user/bob") > 1000


async def test_the_numbers_that_a_user_was_given_for_containers_are_on_his_own_bill(node: Node, machine: Path) -> None:
    honest = listed(node.start("bob.service", program(BOB)), 0.3)
    own = listed(node.start("job.service", program(ALICE)), 0.6)
    other = listed(node.start("job.service", program(100_999)), 0.6)
    fair = await billed(honest, own, busy=0.9, machine=machine)
    forged = await billed(honest, other, busy=0.9, machine=machine)
    assert is_same(fair, forged, "user/alice", "user/bob")
