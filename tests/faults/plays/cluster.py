"""H: what goes wrong beside the agent when a whole cluster is read: a stolen name, a crowd that waits, a dead store."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

from podgpu.views.json import encode
from tests.cluster.nodes import snapshot
from tests.faults.node import NAME, Node
from tests.faults.page import Page, parsed
from tests.faults.play import Play, promised
from tests.faults.signs import survived
from tests.patience import PATIENCE
from tests.ports import quiet_port

PATIENT = 60  # more than pages may wait at a time


class Reader:
    """The reader of a cluster, beside the agent that it reads."""

    def __init__(self) -> None:
        self.port = 0

    @contextmanager
    def reads(self, node: Node, *ports: int) -> Iterator[None]:
        self.port = quiet_port()
        words = [
            *(sys.executable, "-m", "podgpu", "cluster", "--kube.api=off"),
            *("--cluster.interval=1s", "--cluster.timeout=0.5s"),
            f"--web.listen-address=127.0.0.1:{self.port}",
            *(f"--cluster.agents=http://127.0.0.1:{port}" for port in (*ports, node.port)),
        ]
        reader = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        try:
            yield
            reader.terminate()
            assert reader.wait(PATIENCE) == 0, "U9"
        finally:
            reader.kill()
            reader.wait()

    def page(self) -> Page | None:
        began = time.monotonic()
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=PATIENCE) as answer:
                page = parsed(answer.read().decode())
        except ConnectionError:  # it is not there yet
            return None
        except OSError as error:
            if isinstance(getattr(error, "reason", None), ConnectionError):
                return None
            raise
        assert time.monotonic() - began < promised(1.0), "U1"
        return page


class _Forged(BaseHTTPRequestHandler):
    """Says that it is the agent of this node, and that there is no GPU."""

    def do_GET(self) -> None:
        body = encode(snapshot(NAME))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


class Thief(Reader):
    """Another agent reports the same node, and stands before it in the list."""

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        with ThreadingHTTPServer(("127.0.0.1", 0), _Forged) as forged:
            serving = threading.Thread(target=forged.serve_forever)
            serving.start()
            try:
                with self.reads(node, forged.server_address[1]):
                    yield
            finally:
                forged.shutdown()
                serving.join()

    def is_in_conflict(self, _: Page) -> bool:
        page = self.page()
        if page is None:
            return False
        infos = [labels for labels, _ in page.by_name.get("podgpu_cluster_node_info", ())]
        return len(infos) == 3 and {labels["reason"] for labels in infos} == {"conflict"}


class Crowd(Reader):
    """Many ask the reader of the cluster for all that an agent knows, and the agent hangs."""

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        over = threading.Event()
        with socket.create_server(("127.0.0.1", 0)) as hung, self.reads(node, hung.getsockname()[1]):
            asking = [
                threading.Thread(target=self._ask, args=(f"127.0.0.1:{hung.getsockname()[1]}", over))
                for _ in range(PATIENT)
            ]
            for thread in asking:
                thread.start()
            try:
                yield
            finally:
                over.set()
                for thread in asking:
                    thread.join()

    def _ask(self, node: str, over: threading.Event) -> None:
        while not over.is_set():
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/api/v1/snapshot?node={node}", timeout=2) as answer:
                    answer.read()
            except OSError:
                over.wait(0.2)

    def is_scraped(self, _: Page) -> bool:
        page = self.page()
        return page is not None and page.value("podgpu_cluster_node_info", node=NAME, state="fresh") == 1


class DeadStore:
    """Somebody asks a store that is gone who is idle."""

    def __init__(self) -> None:
        self._url = ""

    @contextmanager
    def fault(self, _: Node) -> Iterator[None]:
        self._url = f"http://127.0.0.1:{quiet_port()}"
        yield
        self._url = ""

    def is_told(self, _: Page) -> bool:
        words: Sequence[str] = (
            *(sys.executable, "-m", "podgpu", "idle", "--kube.api=off"),
            f"--prometheus.url={self._url}",
        )
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        return "store_unreachable" in done.stderr


THIEF, CROWD, STORE = Thief(), Crowd(), DeadStore()

PLAYS = (
    Play(
        id="H12",
        what="another agent reports the same node to the reader of a cluster",
        fault=THIEF.fault,
        shows=survived(THIEF.is_in_conflict),
    ),
    Play(
        id="H13",
        what="a crowd asks the reader of a cluster for all that a hanging agent knows",
        fault=CROWD.fault,
        shows=survived(CROWD.is_scraped),
    ),
    Play(
        id="H14",
        what="a store that is gone is asked who is idle",
        fault=STORE.fault,
        shows=survived(STORE.is_told),
    ),
)
