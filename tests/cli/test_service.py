"""The agent and the demo as real processes."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podgpu.cli._process import LAST_RESORT_SECONDS, READER_SECONDS
from podgpu.cli.demo import _url
from podgpu.option.value import Address
from tests.patience import PATIENCE, PODGPU, has_ended, wait_until

ANYWHERE = "--web.listen-address=127.0.0.1:0"

Start = Callable[..., "RunningCommand"]


class RunningCommand:
    def __init__(self, arguments: list[str], log: Path) -> None:
        self.log = log
        with log.open("w") as stderr:
            self.popen = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def logged(self, pattern: str) -> re.Match[str]:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if found := re.search(pattern, self.log.read_text()):
                return found
            time.sleep(0.02)
        raise AssertionError(f"{pattern} is not in: {self.log.read_text()}")

    def end(self, number: signal.Signals) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(PATIENCE)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with contextlib.ExitStack() as at_exit:

        def begin(*arguments: str, script: str = "") -> RunningCommand:
            program = (sys.executable, "-c", script) if script else PODGPU
            process = RunningCommand([*program, *arguments], tmp_path / "stderr")
            at_exit.enter_context(process.popen)
            at_exit.callback(process.popen.kill)
            return process

        yield begin


def page(process: RunningCommand) -> str:
    from urllib.request import urlopen

    port = process.logged(r"addresses=127\.0\.0\.1:(\d+)")[1]
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
            text: str = answer.read().decode()
        if "podgpu_gpu_up" in text:
            return text
        time.sleep(0.05)
    raise AssertionError(text)


def test_the_agent_serves_and_leaves_on_sigterm(start: Start) -> None:
    process = start("agent", "--source=simulator", "--node-name=node-7", ANYWHERE)
    assert 'node="node-7"' in page(process)
    line = process.logged(r".*msg=listening.*")[0]
    assert re.search(r"version=\S+ node=node-7 source=simulator addresses=127\.0\.0\.1:\d+$", line)
    assert process.end(signal.SIGTERM) == 0
    assert "signal=SIGTERM" in process.log.read_text()


def test_ctrl_c_ends_the_agent_with_130(start: Start) -> None:
    process = start("agent", "--source=simulator", ANYWHERE)
    process.logged("msg=listening")
    assert process.end(signal.SIGINT) == 130
    assert "Traceback" not in process.log.read_text()


def test_sigusr1_releases_the_gpus(start: Start) -> None:
    process = start("agent", "--source=simulator", ANYWHERE)
    page(process)
    process.popen.send_signal(signal.SIGUSR1)
    assert "seconds=300" in process.logged(".*GPUs released.*")[0]
    assert process.end(signal.SIGTERM) == 0


def test_the_agent_stays_up_without_a_driver(start: Start, tmp_path: Path) -> None:
    library = Path(__file__)  # a file, but no library
    process = start("agent", f"--nvml.library={library}", ANYWHERE, f"--path.kubelet={tmp_path / 'none'}")
    process.logged("msg=listening")
    assert "level=warn" in process.logged(r".*part=nvml.*")[0]
    process.logged("no kubelet here")
    assert process.end(signal.SIGTERM) == 0


def test_a_pod_without_host_paths_is_not_said_to_have_no_kubelet(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    process = start("agent", ANYWHERE, "--kube.api=off", f"--path.kubelet={tmp_path / 'none'}")
    assert "level=info" in process.logged(".*the kubelet's folder is not mounted.*")[0]
    assert "no kubelet" not in process.log.read_text()


def test_counters_that_podgpu_cannot_provide_are_logged_once(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    path.write_text("DCGM_EXP_P2P_STATUS, gauge, Peers\nDCGM_FI_DEV_GPU_TEMP, gauge, Heat\n")
    process = start("agent", "--source=simulator", ANYWHERE, f"--dcgm.collectors={path}")
    line = process.logged(r".*counters file.*")[0]
    assert "level=warn" in line
    assert f"path={path} fields=DCGM_EXP_P2P_STATUS" in line
    assert process.end(signal.SIGTERM) == 0
    assert process.log.read_text().count("DCGM_EXP_P2P_STATUS") == 1


def test_logs_are_json_when_asked_for(start: Start) -> None:
    process = start("agent", "--source=simulator", "--log.format=json", ANYWHERE)
    process.logged("listening")
    process.end(signal.SIGTERM)
    events = [json.loads(line) for line in process.log.read_text().splitlines()]
    assert [event["msg"] for event in events][0 :: len(events) - 1] == ["listening", "stopping"]


@pytest.mark.parametrize("command", ["agent", "demo"])
def test_a_port_in_use_is_one_line_and_exit_code_2(start: Start, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start(command, f"--web.listen-address=127.0.0.1:{port}")
        assert process.popen.wait(PATIENCE) == 2
    (line,) = process.log.read_text().splitlines()
    assert line.startswith(f"podgpu: cannot listen on 127.0.0.1:{port}: the port is in use")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tls_server_config: {cert_file: none.crt, key_file: none.key}", "cannot read .*none.crt"),
        ("basic_auth_users: {alice: secret}", "basic_auth_users.alice: this is not a bcrypt hash"),
        ("basic_auth_user: {}", "did you mean basic_auth_users"),
    ],
)
def test_a_bad_web_configuration_is_one_line_and_exit_code_2(
    start: Start, tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "web-config.yml"
    path.write_text(text)
    process = start("demo", ANYWHERE, f"--web.config.file={path}")
    assert process.popen.wait(PATIENCE) == 2
    (line,) = process.log.read_text().splitlines()
    assert re.match(f"podgpu: .*{words}", line)
    assert "secret" not in line


def test_passwords_without_tls_are_warned_of(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "web-config.yml"
    path.write_text("basic_auth_users: {alice: $2b$10$8ujyyih2ljkFTxUSh4U8pOL5CsN.xVqs1gJeGMSQ6CsaXJg7eLi8m}")
    process = start("demo", ANYWHERE, f"--web.config.file={path}")
    process.logged("level=warn msg=.*unencrypted")
    process.logged("msg=listening")
    assert process.end(signal.SIGTERM) == 0


def test_tokens_without_a_cluster_are_one_line_and_exit_code_2(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    process = start("agent", "--source=simulator", ANYWHERE, "--web.kube-auth=on")
    assert process.popen.wait(PATIENCE) == 2
    (line,) = process.log.read_text().splitlines()
    assert "--web.kube-auth=on needs an API server" in line


def test_the_demo_says_so_and_where_to_look(start: Start) -> None:
    process = start("demo", ANYWHERE)
    assert 'demo="true"' in page(process)
    port = process.logged(r"addresses=127\.0\.0\.1:(\d+)")[1]
    process.end(signal.SIGINT)
    assert process.popen.stdout
    greeting = process.popen.stdout.read()
    assert greeting.startswith("DEMO")
    assert f"http://127.0.0.1:{port}/metrics" in greeting


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (Address("", 1), "http://localhost:1"),
        (Address("0.0.0.0", 1), "http://localhost:1"),
        (Address("::", 1), "http://localhost:1"),
        (Address("::1", 1, "dcgm"), "http://[::1]:1"),
    ],
)
def test_the_demo_gives_urls_that_work_here(address: Address, url: str) -> None:
    assert _url(address, "http") == url


HELD_UP = """
import asyncio, sys, time
from podgpu.cli import _process
from podgpu.cli.main import main
_process.READER_SECONDS, _process.LAST_RESORT_SECONDS = {limits}
from podgpu.sources.simulator.source import Simulator
async def close(self): {hang}
Simulator.close = close
sys.exit(main(["agent", "--source=simulator", "--web.listen-address=127.0.0.1:0"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hang", "limits", "code"),
    [
        ("await asyncio.sleep(999)", (READER_SECONDS, PATIENCE), 0),
        ("time.sleep(999)", (READER_SECONDS, LAST_RESORT_SECONDS), 1),
    ],
)
def test_whatever_hangs_the_agent_is_gone_soon(start: Start, hang: str, limits: tuple[float, float], code: int) -> None:
    process = start(script=HELD_UP.format(hang=hang, limits=limits))
    process.logged("msg=listening")
    assert process.end(signal.SIGTERM) == code


@pytest.mark.slow
def test_a_second_signal_ends_the_agent_at_once(start: Start) -> None:
    process = start(script=HELD_UP.format(hang="await asyncio.sleep(999)", limits=(900, 900)))
    process.logged("msg=listening")
    process.popen.send_signal(signal.SIGTERM)
    process.logged("msg=stopping")
    assert process.end(signal.SIGTERM) == 128 + signal.SIGTERM


def test_no_sampler_outlives_the_agent(start: Start) -> None:
    process = start("agent", f"--nvml.library={Path(__file__)}", ANYWHERE)
    process.logged("part=nvml")
    children = Path(f"/proc/{process.popen.pid}/task/{process.popen.pid}/children").read_text().split()
    process.end(signal.SIGTERM)
    wait_until(lambda: all(has_ended(int(child)) for child in children))


def test_closed_streams_are_no_place_for_sockets(start: Start) -> None:
    """Otherwise a socket would get the number of a closed stream, and with it the log."""
    program = [*PODGPU, "demo", ANYWHERE]
    script = "import os, sys; os.close(1); os.close(2); os.execv(sys.argv[1], sys.argv[1:])"
    process = start(*program, script=script)
    deadline = time.monotonic() + PATIENCE
    while not listening(process):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    found = descriptors(process)
    assert [found["1"], found["2"]] == ["/dev/null"] * 2
    assert process.end(signal.SIGTERM) == 0


def listening(process: RunningCommand) -> bool:
    """Whether one of its sockets waits for connections: the state 0A in the kernel's table."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()]
    waiting = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
    return not waiting.isdisjoint(descriptors(process).values())


def descriptors(process: RunningCommand) -> dict[str, str]:
    found = {}
    for link in Path(f"/proc/{process.popen.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed while we look
            found[link.name] = str(link.readlink())
    return found


def test_a_slow_reader_does_not_spoil_the_stop(start: Start) -> None:
    process = start("demo", ANYWHERE)
    page(process)
    port = process.logged(r"addresses=127\.0\.0\.1:(\d+)")[1]
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect(("127.0.0.1", int(port)))
        slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n" * 100)
        time.sleep(0.3)
        assert process.end(signal.SIGTERM) == 0
    assert "did not stop" not in process.log.read_text()
