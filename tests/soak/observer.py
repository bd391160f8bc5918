"""Reads an agent for as long as it lives, and checks every snapshot that it streams."""

import http.client
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import msgspec

from tests.soak.books import Memory, Object, Owners, Page, doubled, unbalanced

PATIENCE = 5.0
PROBE_SECONDS, PAGE_SECONDS, SAMPLE_SECONDS = 0.25, 1.0, 1.0
MOST_KEPT = 50
# Read in turn: a leak in one view is a leak.
VIEWS = ("/", "/metrics/dcgm", "/container/metrics", "/usage", "/metrics/nodes", "/api/v1/snapshot?form=slim")


STOP = "stop"
AT_REST = 4  # descriptors and threads more than at rest before: kept connections


class Sample(NamedTuple):
    at: float
    agent_mib: float  # of its own alone: no other program's start or end changes it
    all_mib: float  # with its children
    pss_mib: float  # of all, with their parts of what they share with other programs
    descriptors: int
    child_descriptors: int
    threads: int
    children: int


class Seen(NamedTuple):
    snapshots: int
    cards: int
    tenants: int
    samples: int


@dataclass
class Findings:
    snapshots: int = 0
    cards: int = 0  # whose books were added up
    empty: int = 0  # snapshots without any card
    tenants: int = 0  # the most at a time
    ended: int = 0  # the most at a time
    methods: Counter[str] = field(default_factory=Counter)  # of tenants' bookings
    gaps: int = 0  # events that were not received
    pages: int = 0
    probes: int = 0
    failed: int = 0
    slowest: float = 0.0
    breaches: int = 0
    first: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def count(self, snapshot: Object) -> None:
        cards = snapshot["cards"]
        self.snapshots += 1
        self.cards += sum("balance" in card for card in cards)
        self.empty += not cards
        self.tenants = max(self.tenants, sum(len(card["tenants"]) for card in cards))
        self.ended = max(self.ended, sum(len(card["ended"]) for card in cards))
        self.methods.update(tenant["booking"]["method"] for card in cards for tenant in card["tenants"])

    def note(self, breaches: Iterator[str]) -> None:
        for breach in breaches:
            self.breaches += 1
            if len(self.first) < MOST_KEPT:
                self.first.append(f"{time.strftime('%H:%M:%S')} {breach}")
                print(self.first[-1], file=sys.stderr, flush=True)  # an hour is long


class Observer:
    """Each kind of reading has a thread of its own."""

    def __init__(self, port: int, pid: int, owners: Path) -> None:
        self.findings = Findings()
        self._port = port
        self._pid = pid
        self._owners = Owners(owners)
        self._stopping = Event()

    def run(self, stop: Connection) -> None:
        """Send how much was seen whenever that is asked for. Read until `stop` comes, then send the findings."""
        threads = [
            Thread(target=target, daemon=True) for target in (self._follow, self._probe, self._scrape, self._weigh)
        ]
        for thread in threads:
            thread.start()
        while stop.recv() != STOP:
            found = self.findings
            stop.send(Seen(found.snapshots, found.cards, found.tenants, len(found.samples)))
        self._stopping.set()
        for thread in threads:
            thread.join(PATIENCE)
        stop.send(self.findings)

    def _follow(self) -> None:
        memory = Memory()
        while not self._stopping.is_set():
            try:
                for snapshot in self._snapshots():
                    self.findings.count(snapshot)
                    for check in (unbalanced, doubled, memory.fallen, self._owners.misplaced):
                        self.findings.note(check(snapshot))
                    if self._stopping.is_set():
                        return
            except (OSError, http.client.HTTPException) as error:
                self.findings.note(iter([f"the stream broke: {error!r}"]))
                time.sleep(0.1)

    def _snapshots(self) -> Iterator[Object]:
        """Follow the event stream: the whole document, then what changed."""
        document: Object = {}
        number = -1
        for name, mark, data in _events(self._port):
            if number >= 0 and mark != number + 1:
                self.findings.gaps += abs(mark - number - 1)
            number = mark
            document = data if name == "full" else patched(document, data)
            yield document

    def _probe(self) -> None:
        while not self._stopping.wait(PROBE_SECONDS):
            began = time.monotonic()
            self.findings.probes += 1
            try:
                healthy = _get(self._port, "/-/healthy")[0] == 200
            except (OSError, http.client.HTTPException):
                healthy = False
            self.findings.failed += not healthy
            self.findings.slowest = max(self.findings.slowest, time.monotonic() - began)

    def _scrape(self) -> None:
        page, views = Page(), cycle(VIEWS)
        while not self._stopping.wait(PAGE_SECONDS):
            try:
                for path in ("/metrics", next(views)):
                    status, body = _get(self._port, path)
                    self.findings.note(iter([f"{path} answered {status}"] if status != 200 else []))
                    if path == "/metrics":
                        self.findings.note(page.wrong(body.decode()))
                self.findings.pages += 1
            except (OSError, http.client.HTTPException) as error:
                self.findings.note(iter([f"a page failed: {error!r}"]))

    def _weigh(self) -> None:
        while not self._stopping.wait(SAMPLE_SECONDS):
            with suppress(OSError, ValueError):
                self.findings.samples.append(weighed(self._pid))


def weighed(pid: int) -> Sample:
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    own, *others = (_memory(process) for process in (pid, *children))
    return Sample(
        time.monotonic(),
        own["Pss_Anon"],
        own["Pss_Anon"] + sum(other["Pss_Anon"] for other in others),
        own["Pss"] + sum(other["Pss"] for other in others),
        _entries(pid, "fd"),
        sum(_entries(child, "fd") for child in children),
        _entries(pid, "task"),
        len(children),
    )


def kept_open(before: Sample, after: Sample) -> list[str]:
    """Say what an agent at rest has more than it had at rest before."""
    counts = [(name, getattr(before, name), getattr(after, name)) for name in ("descriptors", "threads", "children")]
    return [f"{name} at rest: {was} before, {now} after" for name, was, now in counts if now > was + AT_REST]


def _memory(pid: int) -> dict[str, float]:
    """Return what the kernel adds up, in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {name.rstrip(":"): int(size) / 1024 for name, size, _ in map(str.split, lines)}


def _entries(pid: int, folder: str) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/{folder}").iterdir())


def _get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _events(port: int) -> Iterator[tuple[str, int, Any]]:
    """Yield each event's name, number and document."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/api/v1/events")
        answer = connection.getresponse()
        fields: dict[bytes, bytes] = {}
        while line := answer.readline():
            if line != b"\n":
                key, _, value = line.rstrip(b"\n").partition(b": ")
                fields[key] = value
            elif b"data" in fields:
                number = int(fields[b"id"].rpartition(b"-")[2])
                yield fields[b"event"].decode(), number, msgspec.json.decode(fields[b"data"])
                fields = {}
            else:
                fields = {}
    finally:
        connection.close()


def patched(document: Any, patch: Any) -> Any:
    """Apply a change as docs/api.md describes it: a merge patch whose objects reach into arrays by number."""
    if not isinstance(patch, dict):
        return patch
    if isinstance(document, list):
        return [patched(item, patch[str(n)]) if str(n) in patch else item for n, item in enumerate(document)]
    base = document if isinstance(document, dict) else {}
    merged = {key: value for key, value in base.items() if key not in patch}
    return merged | {k: patched(base.get(k), v) for k, v in patch.items() if v is not None}
