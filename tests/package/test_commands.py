"""Runs the commands of the documentation as they stand there, in an environment with podgpu's wheel and nothing else.

Ports are exchanged for free ones, and folders of the system for one of the test. What cannot be run here is listed with
the reason in documented.py, and a new command has to be put somewhere.
"""

import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.chart import needs_helm
from tests.e2e.rig import eventually
from tests.package.clean import Clean
from tests.package.documented import CANNOT, ELSEWHERE, ROOT, RUNBOOKS, RUNS, Command, commands, of, ways
from tests.patience import PATIENCE
from tests.ports import quiet_port
from tools.chart import manifests

COMMANDS = commands()
DEMO = "podgpu demo --node-name=gpu-node-1"


def tried(way: str) -> list[Command]:
    return [each for each in COMMANDS if ways(each.line) == [way]]


def run(clean: Clean, line: str, folder: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=clean.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


@dataclass(frozen=True)
class Served:
    process: "subprocess.Popen[str]"
    ports: list[int]

    def answers(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()[1]
        try:
            for port in self.ports:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=PATIENCE).close()
        except OSError:
            return False
        return True


def start(clean: Clean, line: str) -> Served:
    ports: list[int] = []

    def elsewhere(found: re.Match[str]) -> str:
        ports.append(quiet_port())
        return f"--web.listen-address=127.0.0.1:{ports[-1]}"

    if "--web.listen-address" not in line:
        line += " --web.listen-address=:19400"
    moved = re.sub(r"--web\.listen-address=[^:\s]*:\d+", elsewhere, line)
    command = ["bash", "-c", f"exec {moved}"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=clean.site, env=clean.environ, stdout=pipe, stderr=pipe, text=True)
    return Served(process, ports)


@pytest.fixture(scope="module")
def served(clean: Clean) -> Iterator[dict[str, Served]]:
    """All commands that serve, at once: to start one after the other would take long."""
    with ExitStack() as stack:
        found = {line: start(clean, line) for line in [DEMO, *(each.line for each in tried("serve"))]}
        for each in found.values():
            stack.callback(each.process.communicate, timeout=PATIENCE)
            stack.callback(each.process.terminate)
        yield found


def names(command: Command) -> str:
    return f"{command.page}: {command.line}"


@pytest.mark.parametrize("command", COMMANDS, ids=names)
def test_a_command_is_tried_in_one_way(command: Command) -> None:
    assert len(ways(command.line)) == 1, "add it to a list in tests/package/documented.py"


def test_the_lists_hold_nothing_that_is_not_documented() -> None:
    lines = [each.line for each in COMMANDS]
    assert set(RUNS) <= set(lines)
    assert {pattern for line in lines for pattern in of({**ELSEWHERE, **CANNOT}, line)} == {
        *ELSEWHERE,
        *CANNOT,
    }
    assert [path for path in ELSEWHERE.values() if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("command", tried("run"), ids=names)
def test_it_runs(clean: Clean, tmp_path: Path, command: Command) -> None:
    moved = command.line.replace("/opt/", f"{tmp_path}/").replace("/tmp/", f"{tmp_path}/")
    done = run(clean, moved)
    assert done.returncode == RUNS[command.line], done.stderr
    if RUNS[command.line] == 2:
        assert done.stdout + done.stderr == command.output


@pytest.mark.parametrize("command", tried("serve"), ids=names)
def test_it_serves(served: dict[str, Served], command: Command) -> None:
    eventually(served[command.line].answers)


@pytest.mark.parametrize("command", tried("ask"), ids=names)
def test_it_is_answered(clean: Clean, served: dict[str, Served], command: Command) -> None:
    limited = [line for line in served if "--series.limit" in line]
    demo = served[limited[0] if "podgpu_series" in command.line else DEMO]
    eventually(demo.answers)
    address = f"http://127.0.0.1:{demo.ports[0]}"
    line = command.line.replace("http://127.0.0.1:19400", address)
    asked = f"{line} --url={address}" if line.startswith("podgpu") else line
    done = eventually(lambda: run(clean, asked), lambda done: done.returncode == 0)
    assert words(command.output.splitlines()[0]) <= words(done.stdout)


def words(output: str) -> set[str]:
    """Names without values: those move."""
    return set(re.findall(r"[a-z_]{4,}", output))


@pytest.mark.parametrize("command", tried("make"), ids=names)
def test_make_knows_the_target(clean: Clean, command: Command) -> None:
    """Its recipes set up a checkout, as they did to run this test."""
    done = run(clean, f"{command.line} --dry-run")
    assert done.returncode == 0, done.stderr


@needs_helm
@pytest.mark.parametrize("command", tried("helm"), ids=names)
def test_helm_renders_what_it_would_install(clean: Clean, command: Command) -> None:
    helm, line = str(manifests.helm()), command.line.replace("REGISTRY", "registry.example.com")
    words = line.replace("helm install", f"{helm} template").replace("--create-namespace", "")
    done = run(clean, f"{words} --kube-version={manifests.KUBERNETES}")
    assert done.returncode == 0 and "image: registry.example.com/podgpu:" in done.stdout, done.stderr


def test_bash_understands_the_runbooks(clean: Clean) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", RUNBOOKS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 20
    for block in blocks:
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
