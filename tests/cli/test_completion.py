"""Completion in shells: what fits, also from a running agent."""

import asyncio
import os
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest
from msgspec.structs import replace

from podgpu.cli.completion import SCRIPTS, candidates
from podgpu.cli.main import main
from podgpu.model import Pod
from tests.cli.shells import at_a_terminal
from tests.serve.rig import StubNode, serving
from tests.views.quirks import SNAPSHOT


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["wh"], ["why"]),
        (["nonsense", ""], []),
        (["top", "n"], ["namespaces", "nodes"]),
        (["top", "-o", "y"], ["yaml"]),
        (["agent", "--source=rep"], ["--source=replay"]),
        (["agent", "--log.format", ""], ["json", "logfmt"]),
        (["why", "--login.tok"], ["--login.token-file"]),
        (["completion", ""], sorted(SCRIPTS)),
    ],
)
def test_commands_flags_and_values_are_completed(words: list[str], expected: list[str]) -> None:
    assert candidates(words) == expected


async def test_pods_namespaces_and_nodes_come_from_the_agent() -> None:
    node = StubNode()
    node.current = SNAPSHOT
    async with serving(node) as server:
        url = f"--url=http://127.0.0.1:{server.ports[0]}"
        assert await asyncio.to_thread(candidates, ["why", url, "ml/ll"]) == ["ml/llama-0"]
        assert "team-b" in await asyncio.to_thread(candidates, ["top", url, "-n", ""])
        assert await asyncio.to_thread(candidates, ["top", *url.split("="), "--node", ""]) == [SNAPSHOT.node]


def test_nobody_there_means_no_names_and_no_error() -> None:
    assert candidates(["why", "--url=http://127.0.0.1:9", ""]) == []


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_script_is_one_that_its_shell_takes(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    if which(shell) is None:
        pytest.skip(f"needs {shell}")
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


HOSTILE = ["x$(touch owned)", "x`touch owned`", "x;touch owned;", "x&touch owned", "x y", "x'y", 'x"y', "x*", "x\\y"]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("shell", SCRIPTS)
def test_no_name_is_run_by_the_shell_that_completes_it(shell: str, name: str, tmp_path: Path) -> None:
    if which(shell) is None:
        pytest.skip(f"needs {shell}")
    with at_a_terminal(shell, tmp_path, name) as terminal:
        words = terminal.words_after_tab("podgpu why x")
        terminal.run("true")
    assert words == ["why", name]
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("shell", SCRIPTS)
def test_an_ordinary_name_is_completed(shell: str, tmp_path: Path) -> None:
    if which(shell) is None:
        pytest.skip(f"needs {shell}")
    with at_a_terminal(shell, tmp_path, "ml/llama-0") as terminal:
        assert terminal.words_after_tab("podgpu why ml/l") == ["why", "ml/llama-0"]


async def test_only_names_that_kubernetes_permits_are_offered() -> None:
    node = StubNode()
    names = [
        ("ml", "llama-0"),
        ("ml", "$(touch owned)"),
        ("a b", "p"),
        ("ml", "x\ny"),
        ("ml", "-rf"),
        ("ML", "p"),
        ("", "p"),
    ]
    pods = tuple(Pod(namespace=namespace, name=name, uid=str(at)) for at, (namespace, name) in enumerate(names))
    node.current = replace(SNAPSHOT, node="$(touch owned)", pods=pods, cards=(), unclaimed=())
    async with serving(node) as server:
        url = f"--url=http://127.0.0.1:{server.ports[0]}"
        assert await asyncio.to_thread(candidates, ["why", url, ""]) == ["ml/llama-0"]
        assert await asyncio.to_thread(candidates, ["top", url, "-n", ""]) == ["ml"]
        assert await asyncio.to_thread(candidates, ["top", url, "--node", ""]) == []


def test_bash_completes_a_word_with_an_equals_sign(tmp_path: Path) -> None:
    program = tmp_path / "podgpu"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m podgpu "$@"\n')
    program.chmod(0o755)
    script = """
        source <(podgpu completion bash)
        COMP_LINE="podgpu agent --source=sim"; COMP_POINT=${#COMP_LINE}
        _podgpu; echo "${COMPREPLY[*]}"
    """
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "simulator\n"
