"""What must hold whatever breaks, looked at from outside: the page, the probes, the processes and the log.

U1  the page is there within a second       U6  nothing is booked twice, nor to a wrong pod; the books balance
U2  what is shown was read a moment ago     U7  descriptors, threads, children, memory, series and log lines are few
U3  the fault is named, as in the docs      U8  all is well again soon after
U4  the page makes sense, every value too   U9  the agent is alive and ready, and ends when it is asked to
U5  counters never fall
"""

import math
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

from podgpu.agent.loop import STALE_INTERVALS
from tests.agent.rig import RunningAgent
from tests.faults.node import INTERVAL, IS_WHOLE, Node
from tests.faults.page import Page, Series, parsed
from tests.faults.play import SHOWN_SECONDS, Play, Sign, promised
from tests.patience import PATIENCE, wait_until

LATE = 1.0  # seconds that a busy machine may add to an age
SLACK = 12  # descriptors and threads that come and go
MOST_BYTES = 256 << 20
MOST_SERIES = 5000
MOST_LINES = 60
PROMTOOL = shutil.which("promtool")
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
# What drivers and DCGM write for "not available"; no real value comes near.
SENTINELS = {
    float(2**32 - 1),
    float(2**64 - 1),
    140737488355328.0,
    *map(float, range(0x7FFFFFF0, 0x80000000)),
}
SMALLEST_WIDE_SENTINEL = float(0x7FFFFFFFFFFFFFF0)
# All that a reason may be, by the docs.
REASONS = {
    word
    for page in ("operations.md", "sources.md", "switches.md", "otlp.md")
    for word in re.findall("`([a-z_]+)`", (Path(__file__).parents[2] / "docs" / page).read_text())
}
BOOKS = (
    ("podgpu_gpu_booked_energy_joules_total", ("energy_joules_total",)),
    ("podgpu_gpu_booked_busy_seconds_total", ("busy_seconds_total",)),
    ("podgpu_gpu_booked_memory_bytes", ("memory_bytes", "memory_used_bytes")),
)


class Judge:
    """Looks at one agent again and again. Every look checks all that a page can show.

    A page may be late for `patience` seconds: a machine that is busy becomes idle again, but what hangs or is frozen
    stays so for as long as the fault lasts.
    """

    def __init__(self, agent: RunningAgent, node: Node, patience: float = 0.0 if IS_WHOLE else PATIENCE) -> None:
        self._agent = agent
        self._node = node
        self._patience = patience
        self._highest: dict[Series, float] = {}
        self._pieces = 0

    def look(self) -> Page:
        ends = time.monotonic() + self._patience
        page, late = self._read()
        while late and time.monotonic() < ends:
            page, late = self._read()
        assert not late, late
        self._makes_sense(page)
        self._never_falls(page)
        self._balances(page)
        self._is_alive()
        return page

    def _read(self) -> tuple[Page, str]:
        """The page, and what about it is late."""
        began = time.monotonic()
        status, body = self._agent.request("/metrics")
        seconds = time.monotonic() - began
        assert status == 200, "U1"
        page = parsed(body.decode())
        return page, f"U1: {seconds:.2f} s" if seconds > 1.0 else self._is_old(page)

    def wait(self, what: str, sign: Sign, before: Page | None = None, seconds: float = SHOWN_SECONDS) -> Page:
        """Look until the page shows the sign."""
        seconds = promised(seconds)
        ends = time.monotonic() + seconds
        while not sign(page := self.look(), before or Page()):
            if time.monotonic() > ends:
                raise AssertionError(f"{what}: not within {seconds} s; {summary(page)}")
            time.sleep(0.05)
        return page

    def wait_for(self, play: Play, before: Page | None = None) -> None:
        """Wait until the fault shows."""
        self.wait(f"U3: {play.what}", play.shows, before, play.patience)

    def wait_well(self, play: Play) -> Page:
        """Wait until nothing is wrong, and note the size of the agent."""
        page = self.wait("all is well", _wellness(play))
        self._pieces = pieces(self._agent)
        return page

    def recovers(self, play: Play) -> float:
        """Wait until nothing is wrong any more, and return how long that took."""
        began = time.monotonic()
        self.wait("U8: all is well again", _wellness(play), seconds=play.recovers)
        took = time.monotonic() - began
        self.look_closely()
        return took

    def look_closely(self, clients: int = 0) -> None:
        """Check what takes longer, or changes slowly: the other formats of the page, and sizes.

        `clients` is how many others may be connected now.
        """
        text = self._agent.request("/metrics")[1]
        if PROMTOOL:
            found = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, check=False)
            assert found.returncode == 0, f"U4: {found.stdout.decode()}{found.stderr.decode()}"
        parsed(self._open_metrics(), strictly=True)
        assert len(parsed(text.decode()).samples) < MOST_SERIES, "U7"
        assert memory(self._agent) < MOST_BYTES, "U7"
        if self._pieces:
            assert pieces(self._agent) <= self._pieces + SLACK + clients, "U7"
        self.log_is_short()

    def log_is_short(self) -> None:
        lines = self._node.log.read_text(errors="replace").splitlines()
        assert len(lines) < MOST_LINES, f"U7: {lines}"
        # Numbers are measurements and times; what is left names the event.
        kinds = Counter(re.sub(r"[0-9.:+-]+", "", line) for line in lines)
        assert not [line for line, times in kinds.items() if times > 4], f"U7: {kinds}"
        assert not [line for line in lines if "Traceback" in line], f"U7: {lines}"

    def stops(self) -> None:
        children = self._agent.children()
        seconds = self._agent.terminate()
        assert seconds < promised(5), f"U9: it took {seconds:.1f} s"
        assert self._agent.process.returncode == 0, "U9"
        wait_until(lambda: not any(map(is_running, children)))  # U7
        self.log_is_short()

    def _open_metrics(self) -> str:
        text = self._agent.request("/metrics", headers={"Accept": OPEN_METRICS})[1].decode()
        assert text.endswith("# EOF\n"), "U4"
        return text

    def _is_old(self, page: Page) -> str:
        """What is older than the page may show, if there is something."""
        oldest = STALE_INTERVALS * INTERVAL + LATE
        ages = [self._node.age(value) for value in page.values("podgpu_gpu_memory_used_bytes")]
        if any(age >= oldest for age in ages):
            return f"U2: {ages}"
        taken = page.value("podgpu_snapshot_timestamp_seconds")
        if ages and taken is not None:
            age = abs(time.time() + self._node.clock_ahead - taken)
            return f"U2: a snapshot {age:.2f} s away" if age >= oldest else ""
        return ""

    def _makes_sense(self, page: Page) -> None:
        assert len({series for series, _ in page.samples}) == len(page.samples), "U4: a series is there twice"
        odd = [
            (series, value)
            for series, value in page.samples
            if not math.isfinite(value) or value in SENTINELS or value >= SMALLEST_WIDE_SENTINEL
        ]
        assert odd == [], "U4"
        reasons = {labels["reason"] for labels, _ in page.by_name.get("podgpu_errors_total", ())}
        assert reasons <= REASONS, f"U3: {reasons - REASONS}"

    def _never_falls(self, page: Page) -> None:
        now, highest = page.counters, self._highest
        fell = [(key, highest[key], now[key]) for key in now.keys() & highest if now[key] < highest[key]]
        assert fell == [], "U5"
        self._highest |= now

    def _balances(self, page: Page) -> None:
        for device, suffixes in BOOKS:
            for labels, booked in page.by_name.get(device, ()):
                parts = sum(
                    page.total(f"podgpu_{who}_{suffix}", uuid=labels["uuid"])
                    for who in ("container", "unattributed", "ended")
                    for suffix in suffixes
                )
                assert math.isclose(parts, booked, abs_tol=0.01), f"U6: {labels} {device} {parts} of {booked}"
        named = [
            (labels["uuid"], labels["pod"])
            for name, samples in page.by_name.items()
            if name.startswith("podgpu_container_")
            for labels, _ in samples
        ]
        wrong = [(uuid, pod) for uuid, pod in named if pod not in self._node.holders.get(uuid, ())]
        assert wrong == [], "U6"

    def _is_alive(self) -> None:
        assert self._agent.process.poll() is None, "U9"
        assert self._agent.request("/-/healthy")[0] == 200, "U9"
        assert self._agent.request("/-/ready")[0] == 200, "U9"


def is_well(now: Page) -> bool:
    cards = now.values("podgpu_gpu_up")
    return now.value("podgpu_up") == 1 and cards == [1.0, 1.0] and len(now.values("podgpu_gpu_memory_used_bytes")) == 2


def _wellness(play: Play) -> Sign:
    return lambda now, _: is_well(now) and play.well(now)


def summary(page: Page) -> str:
    """Return what the page says about the agent itself and about what is down."""
    about = ("podgpu_up", "podgpu_source_", "podgpu_gpu_up", "podgpu_gpu_problem", "podgpu_errors")
    told = [line for line in page.samples if line[0][0].startswith(about)]
    return "\n".join(f"{name} {dict(labels)} {value}" for (name, labels), value in told)


def pieces(agent: RunningAgent) -> int:
    """Count the agent's descriptors and threads, its children, and theirs."""
    children = agent.children()
    folders = [Path(f"/proc/{pid}/{each}") for pid in (agent.process.pid, *children) for each in ("fd", "task")]
    return sum(map(_entries, folders)) + len(children)


def memory(agent: RunningAgent) -> int:
    """Return the bytes that the agent and its children have in memory."""
    return sum(_resident(pid) for pid in (agent.process.pid, *agent.children()))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _entries(folder: Path) -> int:
    try:
        return sum(1 for _ in folder.iterdir())
    except OSError:  # the process has ended
        return 0


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0
