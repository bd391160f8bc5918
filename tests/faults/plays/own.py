"""H: what goes wrong with the agent itself, and with the machine under it."""

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import yaml

from tests.agent.rig import RunningAgent, running_agent
from tests.fakekubelet.kubelet import Reply
from tests.fakenvml.fake_node import FakeFault
from tests.faults.node import DEVICES, INTERVAL, NAME, Node, sound_kubelet
from tests.faults.page import Page, parsed
from tests.faults.play import Phase, Play, promised
from tests.faults.plays.driver import driver_faults
from tests.faults.plays.kubelet import MAP, away
from tests.faults.plays.processes import crowd
from tests.faults.props.clients import READERS
from tests.faults.props.clock import Clock
from tests.faults.props.limits import Limit
from tests.faults.props.visit import Visit
from tests.faults.signs import card_down, part_down, survived
from tests.patience import PATIENCE
from tests.ports import quiet_port

CHART = Path(__file__).parents[3] / "deploy/helm/podgpu/values.yaml"
# Of each tenth of a second: what hurts a start, and what hurts an agent that runs.
MICROSECONDS_AT_START, MICROSECONDS = 20_000, 4_000
FEW_DESCRIPTORS = 48
LOTS = 2000  # processes
HOUR, NIGHT = 3600.0, 30_000.0
MOST_WATTS = 750.0
AS_BEFORE = "changed web configuration is refused"


class Memory:
    """As much as the chart allows, and more to do than usual."""

    _limit: Limit

    def flags(self, node: Node) -> Sequence[str]:
        self._limit = Limit(node, "memory")
        return ()

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        allowed = yaml.safe_load(CHART.read_text())["resources"]["limits"]["memory"]
        mebibytes = int(allowed.removesuffix("Mi"))
        with self._limit.set(mebibytes << 20), crowd(LOTS)(node):
            yield

    def is_enough(self, page: Page) -> bool:
        assert int(self._limit.read("memory.usage_in_bytes", "memory.current")) > 0, "nobody is in there"
        failed = self._limit.read("memory.failcnt", "memory.events")
        assert "oom_kill 0" in failed or int(failed) == 0
        return page.value("podgpu_unattributed_processes", gpu="1", reason="unknown") == LOTS


class Throttle:
    """A small part of a processor."""

    _limit: Limit

    def flags(self, node: Node) -> Sequence[str]:
        self._limit = Limit(node, "cpu")
        return ()

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        with self._limit.set(MICROSECONDS if node.agent else MICROSECONDS_AT_START):
            yield

    def is_felt(self, _: Page) -> bool:
        stat = dict(line.split() for line in self._limit.read("cpu.stat").splitlines())
        return int(stat["nr_throttled"]) > 0


class Jump:
    """The wall clock is set an hour ahead, and the machine seems to have slept."""

    _clock: Clock

    def flags(self, node: Node) -> Sequence[str]:
        self._clock = Clock(node.folder)
        node.variables |= self._clock.variables
        return ()

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        self._set(node, HOUR, NIGHT)
        yield
        self._set(node, 0.0, 0.0)

    def _set(self, node: Node, wall: float, boot: float) -> None:
        node.clock_ahead = wall
        self._clock.set(wall=wall, boot=boot)
        while (
            node.agent and node.agent.process.poll() is None and abs(time.time() + wall - _taken(node.agent)) > HOUR / 2
        ):
            time.sleep(INTERVAL / 4)

    def is_followed(self, page: Page) -> bool:
        """The page has the new time, and nobody seems to have used more than a card can."""
        watts = [
            *page.values("podgpu_container_power_watts"),
            *page.values("podgpu_unattributed_power_watts"),
            *page.values("podgpu_gpu_power_watts"),
        ]
        assert max(watts, default=0.0) < MOST_WATTS, "U5: more power than a card can have"
        return (page.value("podgpu_snapshot_timestamp_seconds") or 0) > time.time() + HOUR / 2


def _taken(agent: RunningAgent) -> float:
    return parsed(agent.request("/metrics")[1].decode()).total("podgpu_snapshot_timestamp_seconds")


class NoPaper:
    """Nobody reads the log, its pipe is full, and no folder can be written to."""

    _pipe: int

    def flags(self, node: Node) -> Sequence[str]:
        path = node.folder / "pipe"
        os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        node.on_close(partial(os.close, self._pipe))
        node.before = ["sh", "-c", f'cd /proc; exec "$@" 2>{path}', "sh"]
        node.variables |= dict.fromkeys(("TMPDIR", "HOME"), "/proc")
        return ()

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        """Something is wrong too, so that there is something to log."""
        with suppress(BlockingIOError):
            while True:
                os.write(self._pipe, bytes(4096))
        with away(node):
            yield
        with suppress(BlockingIOError):
            while os.read(self._pipe, 1 << 16):
                pass


class NoDescriptors(Visit):
    """Silent clients want more descriptors than the agent may have."""

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        if node.agent is None:
            node.before = ["sh", "-c", f'ulimit -n {FEW_DESCRIPTORS}; exec "$@"', "sh"]
            with super().fault(node):
                yield
            return
        pid = node.agent.process.pid
        own = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (FEW_DESCRIPTORS, own[1]))
        with super().fault(node):
            yield
        with suppress(ProcessLookupError):  # it has ended by now
            resource.prlimit(pid, resource.RLIMIT_NOFILE, own)


class Killer:
    """Somebody kills the process that asks the driver, again and again."""

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        self._node, over = node, threading.Event()
        thread = threading.Thread(target=self._kill, args=(over,))
        thread.start()
        yield
        over.set()
        thread.join()

    def _kill(self, over: threading.Event) -> None:
        while not over.wait(0.7):
            with suppress(IndexError, OSError):
                if agent := self._node.agent:
                    os.kill(agent.children()[0], signal.SIGKILL)

    def are_buried(self, now: Page, before: Page) -> bool:
        """None of those that ended is left behind as a zombie, and there is one at most that lives."""
        agent = self._node.agent
        ended = now.errors("nvml", "sampler_exited") - before.errors("nvml", "sampler_exited")
        return agent is not None and ended >= 2 and len(agent.children()) <= 1


class BadFile:
    """Somebody makes a mistake in the web configuration."""

    def flags(self, node: Node) -> Sequence[str]:
        self._node, self._file = node, node.folder / "web.yml"
        self._file.write_text("http_server_config: {http2: false}\n")
        return [f"--web.config.file={self._file}"]

    @contextmanager
    def fault(self, _: Node) -> Iterator[None]:
        own = self._file.read_text()
        self._file.write_text("tls_server_config: [\n")
        yield
        self._file.write_text(own)

    def is_named(self, _: Page) -> bool:
        return AS_BEFORE in self._node.log.read_text()


class Double:
    """A second agent on the same node, as while a new version takes over."""

    _agent: RunningAgent

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        folder = node.folder / "second"
        folder.mkdir()
        flags = [f"--path.kubelet={node.kubelet.root}", "--kube.api=off"]
        with (
            (folder / "log").open("wb") as log,
            running_agent(
                node.driver,
                folder,
                node.library,
                interval=INTERVAL,
                flags=flags,
                devices=node.devices,
                port=quiet_port(),
                stderr=log,
            ) as self._agent,
        ):
            yield

    def is_same(self, page: Page) -> bool:
        """Both have the same series, but for what each has met with on its own."""
        other = parsed(self._agent.request("/metrics")[1].decode())
        mine, others = (
            {series for series, _ in scraped.samples if series[0] != "podgpu_errors_total"} for scraped in (page, other)
        )
        return mine == others


class Flood:
    """A part breaks and mends several times a second."""

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._flap, args=(node, over))
        thread.start()
        yield
        over.set()
        thread.join()
        node.kubelet.replies = sound_kubelet()

    def _flap(self, node: Node, over: threading.Event) -> None:
        while not over.is_set():
            for reply in (Reply(b"\x0a\xff"), sound_kubelet()[DEVICES]):
                node.kubelet.replies[DEVICES] = reply
                over.wait(INTERVAL * 1.5)

    def is_counted(self, now: Page, before: Page) -> bool:
        return now.errors(MAP, "garbage") >= before.errors(MAP, "garbage") + 4


class Company:
    """The agent is read together with one that hangs and one that is not there, by the reader of a cluster."""

    def __init__(self) -> None:
        self._port = 0

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        self._port = quiet_port()
        with socket.create_server(("127.0.0.1", 0)) as hung:
            ports = (node.port, hung.getsockname()[1], quiet_port())
            words = [
                *(sys.executable, "-m", "podgpu", "cluster", "--kube.api=off"),
                *("--cluster.interval=1s", "--cluster.timeout=0.5s"),
                f"--web.listen-address=127.0.0.1:{self._port}",
                *(f"--cluster.agents=http://127.0.0.1:{port}" for port in ports),
            ]
            reader = subprocess.Popen(words, stderr=subprocess.DEVNULL)
            yield
            reader.terminate()
            assert reader.wait(PATIENCE) == 0, "U9"

    def is_told_apart(self, _: Page) -> bool:
        began = time.monotonic()
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=PATIENCE) as answer:
                page = parsed(answer.read().decode())
        except OSError:  # it is not there yet
            return False
        assert time.monotonic() - began < promised(1.0), "U1"
        nodes = {labels["state"]: value for labels, value in page.by_name.get("podgpu_cluster_nodes", ())}
        fresh = page.value("podgpu_cluster_node_info", node=NAME, state="fresh")
        return fresh == 1 and (nodes["fresh"], nodes["failed"]) == (1, 2)


MEMORY, THROTTLE, JUMP, NO_PAPER = Memory(), Throttle(), Jump(), NoPaper()
NO_DESCRIPTORS, KILLER, BAD_FILE = NoDescriptors("clinging"), Killer(), BadFile()
DOUBLE, FLOOD, COMPANY = Double(), Flood(), Company()
ONLY_AT_THE_END = dict.fromkeys((Phase.START, Phase.RUNNING, Phase.SCRAPE), "it is the end that is disturbed")

PLAYS: tuple[Play, ...] = (
    Play(
        id="H1",
        what="memory is limited as in the chart, and there is much to keep",
        flags=MEMORY.flags,
        fault=MEMORY.fault,
        shows=survived(MEMORY.is_enough),
    ),
    Play(
        id="H2",
        what="processor time is limited",
        flags=THROTTLE.flags,
        fault=THROTTLE.fault,
        shows=survived(THROTTLE.is_felt),
    ),
    Play(
        id="H3",
        what="the agent is asked to end while a card hangs",
        fault=driver_faults(FakeFault("hang", call="nvmlDeviceGetMemoryInfo_v2", device=1)),
        shows=card_down(1, "hung"),
        left_out=ONLY_AT_THE_END,
    ),
    Play(
        id="H4",
        what="the clock jumps, and the machine seems to have slept",
        flags=JUMP.flags,
        fault=JUMP.fault,
        shows=survived(JUMP.is_followed),
    ),
    Play(
        id="H5",
        what="nothing can be written, not even the log",
        flags=NO_PAPER.flags,
        fault=NO_PAPER.fault,
        shows=part_down(MAP, "no_socket"),
    ),
    Play(
        id="H6",
        what="there are no descriptors left",
        fault=NO_DESCRIPTORS.fault,
        shows=NO_DESCRIPTORS.fared(lambda tally: tally.get("connected", 0) > 2 * READERS),
        clients=FEW_DESCRIPTORS,
    ),
    Play(
        id="H7",
        what="children end one after another",
        fault=KILLER.fault,
        shows=KILLER.are_buried,
    ),
    Play(
        id="H8",
        what="a file that is read again has a mistake",
        flags=BAD_FILE.flags,
        fault=BAD_FILE.fault,
        shows=survived(BAD_FILE.is_named),
        left_out={Phase.START: "with a mistake in a file the agent does not start, and says so"},
    ),
    Play(
        id="H9",
        what="two agents run on the node",
        fault=DOUBLE.fault,
        shows=survived(DOUBLE.is_same),
    ),
    Play(
        id="H10",
        what="there is something to log all the time",
        fault=FLOOD.fault,
        shows=FLOOD.is_counted,
    ),
    Play(
        id="H11",
        what="the reader of a cluster meets agents that hang or are gone, beside this one",
        fault=COMPANY.fault,
        shows=survived(COMPANY.is_told_apart),
    ),
)
