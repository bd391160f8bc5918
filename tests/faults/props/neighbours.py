"""A `podgpu cluster` that reads the agent and others beside it, which do what no agent does."""

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from random import Random

from tests.cluster.nodes import document, node_name
from tests.faults.node import NAME, Node
from tests.faults.page import Page, parsed
from tests.faults.play import Sign
from tests.fuzz.mutation import damaged
from tests.fuzz.targets import document as rich_document
from tests.ports import quiet_port

# What the agent of a number answers to a request of a number: a status and a body.
Answer = Callable[[int, int], tuple[int, bytes]]


def hostile(_agent: int, request: int) -> tuple[int, bytes]:
    """A document with something in it that cannot be, another one each time."""
    body = damaged(rich_document(), Random(request))
    return 200, body.replace(b'"taken_at":', b'"taken_at":1' + b"0" * 400 + b',"x":', 1)


def flapping(agent: int, request: int) -> tuple[int, bytes]:
    """A good answer and a bad one in turns."""
    return (200, document(agent, request)) if request % 2 else (500, b"no")


class Neighbours:
    """`agents` of one kind, each at a loopback address of its own."""

    def __init__(self, answer: Answer, agents: int) -> None:
        self._answer = answer
        self._agents = agents
        self._port = 0
        self._log: Path | None = None
        self.asked = 0

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        server = self._serve()
        self._port, self._log, self.asked = quiet_port(), node.folder / "cluster-log", 0
        beside = [f"http://127.2.0.{number + 1}:{server.server_port}" for number in range(self._agents)]
        words = [
            *(sys.executable, "-m", "podgpu", "cluster"),
            f"--cluster.agents={','.join([f'http://127.0.0.1:{node.port}', *beside])}",
            f"--web.listen-address=127.0.0.1:{self._port}",
            "--cluster.interval=1s",
        ]
        with self._log.open("wb") as log:
            reader = subprocess.Popen(words, stderr=log, stdin=subprocess.DEVNULL)
        try:
            yield
        finally:
            reader.kill()
            reader.wait()
            server.shutdown()
            server.server_close()

    def read_by(self, proof: Callable[[Page, Sequence[str]], bool]) -> Sign:
        """The agent is up, the cluster shows it as fresh, and its page and log say what they should."""

        def sign(now: Page, _: Page) -> bool:
            with suppress(OSError):
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=2) as answer:
                    page = parsed(answer.read().decode())
                lines = self._log.read_text().splitlines() if self._log else []
                is_fresh = page.values("podgpu_cluster_node_info", node=NAME, state="fresh") == [1]
                return now.value("podgpu_up") == 1 and is_fresh and proof(page, lines)
            return False

        return sign

    def _serve(self) -> ThreadingHTTPServer:
        numbers: dict[int, Iterator[int]] = {}
        neighbours = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                agent = int(self.connection.getsockname()[0].rpartition(".")[2]) - 1
                neighbours.asked += 1
                status, body = neighbours._answer(agent, next(numbers.setdefault(agent, count())))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


def is_named(page: Page) -> bool:
    return page.values("podgpu_cluster_node_info", reason="garbage") == [1]


def is_summed_up(page: Page, lines: Sequence[str], agents: int) -> bool:
    """Whether all came and went, and the log has a few lines about it."""
    known = len(page.values("podgpu_cluster_node_info"))
    assert len(lines) < agents, f"{len(lines)} lines of log"
    return known > agents and any(node_name(0) in line or "cannot be read" in line for line in lines)
