"""A machine without Kubernetes as a whole: a scenario's evidence, and a real agent over real processes."""

import os
import pwd
from pathlib import Path

import pytest

from podgpu.host.procfs import Procfs
from podgpu.views.why import why_outsider
from tests.agent.rig import running_agent
from tests.agent.stage import check_balance
from tests.conftest import Golden
from tests.fakekubelet.kubelet import kubelet_root
from tests.fakenvml.fake_node import FakeNode, FakeProcess, h200
from tests.scenarios.play import play
from tests.scenarios.script import read

SCENARIO = Path(__file__).parents[1] / "scenarios" / "bare"


async def test_the_evidence_for_everybody_on_a_bare_machine(tmp_path: Path, golden: Golden) -> None:
    with kubelet_root() as kubelet:
        snapshot = await play(read(SCENARIO / "node.yaml"), tmp_path, kubelet)
    check_balance(snapshot)
    titles = {tenant.container.container for card in snapshot.cards for tenant in card.tenants}
    processes = [process for card in snapshot.cards for process in card.processes]
    assert titles == {process.holder.title for process in processes if process.holder}
    for title in sorted(titles):
        text = why_outsider(snapshot, title, 80)
        assert text is not None
        golden(f"../scenarios/bare/expected/why-{title.replace('/', '-')}.txt", text)


def test_a_real_process_is_booked_to_its_user(library: Path, tmp_path: Path) -> None:
    """The agent reads this machine's own /proc and users; the card alone is made up."""
    pid = os.getpid()
    if Procfs(Path("/proc")).holders([pid])[pid].kind != "host":
        pytest.skip("the tests run in a container, so they are no user's")
    card = h200(0)
    card.processes = [FakeProcess(pid, 1 << 30, sm=50)]
    title = f"user/{pwd.getpwuid(os.geteuid()).pw_name}"
    with running_agent(FakeNode([card]), tmp_path, library) as agent:
        owner = {"namespace": "", "pod": "", "container": title}
        agent.wait_for("memory", lambda: agent.value("podgpu_container_memory_used_bytes", **owner) == 1 << 30)
        agent.wait_for("time", lambda: (agent.value("podgpu_container_busy_seconds_total", **owner) or 0) > 0)
        (process,) = agent.processes(gpu=0)
        holder = process["holder"]
        assert (holder["pid"], holder["title"], holder["user"]) == (pid, title, os.geteuid())
        assert title in agent.request("/")[1].decode()
