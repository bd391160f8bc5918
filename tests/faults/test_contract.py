"""The contract finds what breaks it: each of these pages breaks one rule, and the judge says which."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.agent.rig import RunningAgent
from tests.fakenvml.fake_node import FakeNode
from tests.faults.contract import Judge

CARD = 'node="n",gpu="0",uuid="GPU-1"'
SOUND = f"""# TYPE podgpu_up gauge
podgpu_up{{node="n"}} 1
# TYPE podgpu_errors_total counter
podgpu_errors_total{{node="n",source="nvml",reason="hung"}} 3
# TYPE podgpu_gpu_memory_used_bytes gauge
podgpu_gpu_memory_used_bytes{{{CARD}}} 100
# TYPE podgpu_gpu_booked_energy_joules_total counter
podgpu_gpu_booked_energy_joules_total{{{CARD}}} 30
# TYPE podgpu_container_energy_joules_total counter
podgpu_container_energy_joules_total{{{CARD},namespace="n",pod="p",container="c"}} 10
# TYPE podgpu_unattributed_energy_joules_total counter
podgpu_unattributed_energy_joules_total{{{CARD},reason="idle"}} 20
"""


class Doctored(RunningAgent):
    """An agent whose page is what the test says."""

    text, status, seconds, probe = SOUND, 200, 0.0, 200

    def request(self, path: str, *_: Any, **__: Any) -> tuple[int, bytes]:
        if path != "/metrics":
            return self.probe, b""
        time.sleep(self.seconds)
        return self.status, self.text.encode()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Doctored]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield Doctored(process, 0, FakeNode(), tmp_path)
    process.kill()
    process.wait()


@pytest.fixture
def judge(agent: Doctored, tmp_path: Path) -> Judge:
    """The numbers of a page are as many seconds old as there are hundreds of bytes in use."""
    log = tmp_path / "log"
    log.touch()
    node: Any = SimpleNamespace(age=lambda used: used / 100 - 1, holders={"GPU-1": {"p"}}, log=log, clock_ahead=0.0)
    return Judge(agent, node, patience=0.0)


def test_a_sound_page_breaks_nothing(judge: Judge) -> None:
    judge.look()


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        pytest.param("U2", "} 100\n", "} 500\n", id="frozen"),
        pytest.param("U3", "hung", "no connection to 10.0.0.1", id="a reason that is no word"),
        pytest.param("U4", '{node="n"} 1\n', '{node="n"} NaN\n', id="no number"),
        pytest.param("U4", '{node="n"} 1\n', '{node="n"} 4294967295\n', id="sentinel"),
        pytest.param("U4", '{node="n"} 1\n', '{node="n"} 1\npodgpu_up{node="n"} 0\n', id="twice"),
        pytest.param("U6", 'reason="idle"} 20', 'reason="idle"} 21', id="books that do not balance"),
        pytest.param("U6", 'pod="p"', 'pod="q"', id="wrong pod"),
    ],
)
def test_a_page_that_breaks_a_rule_is_found(judge: Judge, agent: Doctored, rule: str, old: str, new: str) -> None:
    agent.text = SOUND.replace(old, new)
    assert agent.text != SOUND
    with pytest.raises(AssertionError, match=rule):
        judge.look()


def test_a_page_that_is_refused_or_late_is_found(judge: Judge, agent: Doctored) -> None:
    agent.status = 500
    with pytest.raises(AssertionError, match="U1"):
        judge.look()
    agent.status, agent.seconds = 200, 1.01
    with pytest.raises(AssertionError, match="U1"):
        judge.look()


def test_a_counter_that_falls_is_found_even_if_it_was_away_meanwhile(judge: Judge, agent: Doctored) -> None:
    judge.look()
    agent.text = "".join(line for line in SOUND.splitlines(keepends=True) if "errors" not in line)
    judge.look()
    agent.text = SOUND.replace('"hung"} 3', '"hung"} 2')
    with pytest.raises(AssertionError, match="U5"):
        judge.look()


def test_a_log_that_repeats_itself_is_found(judge: Judge, tmp_path: Path) -> None:
    line = "time=2026-01-01T00:00:0{}Z level=warn msg=down part=nvml\n"
    (tmp_path / "log").write_text("".join(line.format(second) for second in range(6)))
    with pytest.raises(AssertionError, match="U7"):
        judge.log_is_short()


def test_an_agent_that_is_dead_or_does_not_answer_the_probe_is_found(judge: Judge, agent: Doctored) -> None:
    agent.probe = 503
    with pytest.raises(AssertionError, match="U9"):
        judge.look()
    agent.probe = 200
    agent.process.kill()
    agent.process.wait()
    with pytest.raises(AssertionError, match="U9"):
        judge.look()
