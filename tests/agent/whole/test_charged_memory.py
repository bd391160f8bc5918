"""GPU memory that the kernel charges to a container, through a whole agent: /proc and the cgroups are folders."""

from pathlib import Path
from typing import Any

from tests.agent.rig import RunningAgent, running_agent
from tests.agent.stage import write_proc
from tests.fakenvml.fake_node import FakeNode, FakeProcess, h200

GIB = 1 << 30
PID = 4242
CONTAINER = f"system.slice/docker-{'d' * 64}.scope"


def charge(root: Path, number: int) -> None:
    """Write the kernel's figures for the container, and for the cgroup above it."""
    tree = root / "sys/fs/cgroup"
    for cgroup in (CONTAINER, "system.slice"):
        (tree / cgroup).mkdir(parents=True, exist_ok=True)
        (tree / cgroup / "dmem.current").write_text(f"nvidia/00000000:3b:00.0/vidmem {number}\n")
    (tree / "dmem.capacity").write_text(f"nvidia/00000000:3b:00.0/vidmem {140 * GIB}\n")


def charges(agent: RunningAgent) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = agent.snapshot()["cards"][0].get("charges", [])
    return found


def problems(agent: RunningAgent) -> list[str]:
    return [problem["kind"] for problem in agent.snapshot()["insight"]["problems"]]


def test_what_the_kernel_charges_is_compared_with_the_processes(library: Path, tmp_path: Path) -> None:
    card = h200(0)
    card.pci_bus_id = "00000000:3B:00.0"
    card.processes = [FakeProcess(PID, 12 * GIB, sm=30)]
    write_proc(tmp_path / "proc", PID, f"0::/{CONTAINER}\n")
    charge(tmp_path / "root", 12 * GIB)
    flags = (f"--path.procfs={tmp_path / 'proc'}", f"--path.root={tmp_path / 'root'}", "--kube.api=off")
    with running_agent(FakeNode([card]), tmp_path, library, flags=flags) as agent:
        agent.wait_for("both figures", lambda: bool(charges(agent)))
        (both,) = charges(agent)
        assert (both["charged_bytes"], both["listed_bytes"]) == (12 * GIB, 12 * GIB)
        assert both["container"]["container"].startswith("docker/")
        assert not [kind for kind in problems(agent) if kind.startswith("memory_")]
        charge(tmp_path / "root", 20 * GIB)
        agent.wait_for("memory without a process", lambda: "memory_unexplained" in problems(agent))
        assert charges(agent)[0]["unexplained_bytes"] == 8 * GIB
        charge(tmp_path / "root", 0)
        agent.wait_for("memory charged elsewhere", lambda: "memory_elsewhere" in problems(agent))
        assert charges(agent)[0]["elsewhere_bytes"] == 12 * GIB
        assert "memory_unexplained" not in problems(agent)
