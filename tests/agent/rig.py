"""A real agent process over the fake NVML library: script in, pages out."""

import http.client
import json
import os
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from prometheus_client.parser import text_string_to_metric_families

from tests.fakenvml.fake_node import FakeNode, environment
from tests.patience import PATIENCE, PODGPU
from tests.ports import quiet_port

INTERVAL = 0.5


class RunningAgent:
    """One agent, its node's script and its pages."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, node: FakeNode, script: Path) -> None:
        self.process = process
        self.node = node
        self.context: ssl.SSLContext | None = None  # for pages over TLS
        self.headers: Mapping[str, str] = {}  # of every request
        self._port = port
        self._script = script

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def rewrite(self) -> None:
        """Let the library follow what the test changed in `node`."""
        self.node.write(self._script)

    def request(
        self, path: str, method: str = "GET", headers: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[int, bytes]:
        connection = self._connection()
        try:
            connection.request(method, path, headers={**self.headers, **headers})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self.context:
            return http.client.HTTPSConnection("127.0.0.1", self._port, timeout=PATIENCE, context=self.context)
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)

    def snapshot(self) -> dict[str, Any]:
        status, body = self.request("/api/v1/snapshot")
        assert status == 200
        document: dict[str, Any] = json.loads(body)
        return document

    def processes(self, gpu: int) -> list[dict[str, Any]]:
        """List the processes on a card, whoever they belong to."""
        card = self.snapshot()["cards"][gpu]
        return [process for party in (*card["tenants"], *card["rest"]) for process in party["processes"]]

    def series(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """Return the native page: name -> (labels, value) of each sample."""
        status, body = self.request("/metrics")
        assert status == 200
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in text_string_to_metric_families(body.decode()):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return found

    def value(self, name: str, **labels: str) -> float | None:
        """Return the one sample of that name with these labels, or None when there is none."""
        matches = [value for found, value in self.series().get(name, []) if labels.items() <= found.items()]
        assert len(matches) < 2, f"{name} {labels} is ambiguous"
        return matches[0] if matches else None

    def wait_for(self, what: str, condition: Callable[[], bool]) -> float:
        """Wait until a condition holds and return the seconds it took."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            if condition():
                return time.monotonic() - began
            time.sleep(0.05)
        page = self.request("/metrics")[1].decode()
        raise AssertionError(f"{what}: not within {PATIENCE} s; last page:\n{page}")

    def children(self) -> list[int]:
        listing = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in listing.split()]

    def terminate(self) -> float:
        """Send SIGTERM and return the seconds until the process was gone."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        return time.monotonic() - began


@contextmanager
def running_agent(
    node: FakeNode,
    folder: Path,
    library: Path,
    *,
    interval: float = INTERVAL,
    devices: Path | None = None,
    log: Path | None = None,
    flags: Sequence[str] = (),
    port: int | None = None,
    before: Sequence[str] = (),
    program: Sequence[str] = PODGPU,
    variables: Mapping[str, str] = MappingProxyType({}),
    context: ssl.SSLContext | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
    stderr: int | IO[bytes] = subprocess.PIPE,
) -> Iterator[RunningAgent]:
    """Start an agent and wait for its first snapshot. `before` is what stands before its command."""
    script = folder / "script"
    node.write(script)
    port = port or quiet_port()
    fake = environment(library, script, devices=devices, log=log)
    process = subprocess.Popen(
        [
            *before,
            *(*program, "agent", f"--interval={interval}s", "--node-name=test-node"),
            f"--web.listen-address=127.0.0.1:{port}",
            *flags,
        ],
        env={**os.environ, **fake, **variables},
        stderr=stderr,
    )
    agent = RunningAgent(process, port, node, script)
    agent.context, agent.headers = context, headers
    try:
        agent.wait_for("ready", lambda: _answers(agent) or process.poll() is not None)
        assert process.poll() is None, f"it ended with {process.returncode}"
        yield agent
    finally:
        process.kill()
        process.communicate()


def _answers(agent: RunningAgent) -> bool:
    try:
        return agent.request("/-/ready")[0] == 200
    except OSError:
        return False
