"""What comes from outside, each as a function that takes one damaged copy of it all the way.

A documented error is an answer; anything else escapes.
"""

import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import TypeVar

from podgpu.agent.playback import Playback
from podgpu.cluster.agent_reader import AgentReader, FetchedDocument
from podgpu.cluster.fit.statement import judged, stored_evidence
from podgpu.cluster.node_state import ReadFault
from podgpu.cluster.report.grouping import Grouping
from podgpu.cluster.report.statement import statement
from podgpu.cluster.report.sums import StatementTerms
from podgpu.cluster.store import response
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.nodes import read_nodes
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.pod_history import last_uses
from podgpu.cluster.store.response import DecodeBudget, Point, Series, StoreFault
from podgpu.config.precedence import load
from podgpu.config.sections import prices
from podgpu.errors import UserError
from podgpu.host.dmem import Dmem
from podgpu.insight.fit.statement import FitPeriodFacts
from podgpu.kube.api.kubeconfig import account
from podgpu.model import Snapshot
from podgpu.model.document import decode
from podgpu.model.frames import MAGIC, frame
from podgpu.serve.guard import web_config
from podgpu.serve.pages import NATIVE_ALONE
from podgpu.sources.player import Player
from podgpu.sources.replay.recording import Recording
from podgpu.views import exposition
from podgpu.views.cluster import json as cluster_json
from podgpu.views.exposition import Format
from podgpu.views.fit import fit_page, fit_table
from podgpu.views.json import encode
from podgpu.views.row_table import json_text
from tests.cluster.nodes import card, fresh, tenant
from tests.faults.page import parsed
from tests.fuzz.mutation import damaged, noise
from tests.fuzz.views import NOW, cluster_of, node_of, show_cluster, show_node
from tests.views.quirks import SNAPSHOT

K = TypeVar("K")
GOOD = fresh("good", card("GPU-g", tenant("ml/train", 0.5)))


@cache
def document() -> bytes:
    """A snapshot with a bit of everything in it."""
    return encode(SNAPSHOT)


class _Client:
    def __init__(self, body: bytes) -> None:
        self._body = body

    async def get(self, url: str, etag: str = "") -> FetchedDocument:
        return FetchedDocument("", self._body)

    def forget(self, url: str) -> None: ...

    async def close(self) -> None: ...


async def cluster_documents(random: Random) -> None:
    """An agent's document, through the reader and every view."""
    reader = AgentReader(_Client(damaged(document(), random)), "http://a")
    try:
        snapshot = await reader.read()
    except ReadFault:
        return
    await show_cluster(cluster_of(GOOD, node_of(snapshot)))
    if random.random() < 0.3:
        show_node(snapshot)


async def whole_clusters(random: Random) -> None:
    """A cluster's document, as a command gets it from a server."""
    whole = cluster_json.encode(cluster_of(GOOD, node_of(decode(document()))))
    try:
        cluster = cluster_json.decode(damaged(whole, random))
    except UserError:
        return
    await show_cluster(cluster)


@cache
def _series() -> list[tuple[dict[str, str], float]]:
    """The native page of the snapshot, as a store has it."""
    page = exposition.render(NATIVE_ALONE.pages["/metrics/native"](decode(document()), {}), Format.TEXT).decode()
    return [
        ({"__name__": name, "job": "podgpu", **labels}, value)
        for name, found in parsed(page).by_name.items()
        for labels, value in found
    ]


class _FakeStore(Store):
    """Answers like a Prometheus with the page of a node. A part of its answers is damaged."""

    def __init__(self, random: Random, part: float) -> None:
        super().__init__(StoreOptions(url="http://store"))
        self._random = random
        self._part = part

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        found, _ = response.points(200, self._vector(query, at), budget or DecodeBudget())
        return found

    async def values(self, query: str, at: float, key: Callable[[bytes], K | None]) -> list[tuple[K, float]]:
        found, _ = response.values(200, self._vector(query, at), DecodeBudget(), key)
        return found

    def _vector(self, query: str, at: float) -> bytes:
        rows = [
            {"metric": labels, "value": [at, str(at) if query.startswith("timestamp(") else str(value)]}
            for labels, value in self._wanted(query)
            if not query.startswith("resets(") or self._random.random() < 0.01
        ]
        return self._damaged("vector", rows)

    async def series(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Series]:
        rows = [
            {
                "metric": labels,
                "values": [[at - ago, str(value + 60 - ago)] for ago in (60.0, 30.0, 15.0, 0.0)],
            }
            for labels, value in self._wanted(query)
        ]
        found, _ = response.series(200, self._damaged("matrix", rows), budget or DecodeBudget())
        return found

    def _wanted(self, query: str) -> list[tuple[dict[str, str], float]]:
        named = [series for series in _series() if series[0]["__name__"] in query]
        some = named or self._random.sample(_series(), min(len(_series()), 120))
        return some[:120]

    def _damaged(self, kind: str, rows: object) -> bytes:
        whole = {"status": "success", "data": {"resultType": kind, "result": rows}}
        body = json.dumps(whole).encode()
        return damaged(body, self._random) if self._random.random() < self._part else body


async def store_answers(random: Random) -> None:
    """What a store answers, through the reading of nodes, reports, what fits and the time of last use."""
    with suppress(StoreFault):
        reading = await read_nodes(_FakeStore(random, 0.3), NOW)
        nodes = [node_of(node.snapshot) for node in reading.nodes.values()]
        await show_cluster(cluster_of(GOOD, *nodes))
    with suppress(StoreFault):
        await statement(_FakeStore(random, 0.02), (NOW - 7200.0, NOW), Grouping("pod"), StatementTerms(), NOW + 3600.0)
    with suppress(StoreFault):
        fit = judged(await stored_evidence(_FakeStore(random, 0.1), FitPeriodFacts(start=NOW - 7200.0, end=NOW), NOW))
        json_text(fit_table(fit))
        fit_page(fit)
    with suppress(StoreFault):
        await last_uses(_FakeStore(random, 0.5), {"train"}, 3600.0, NOW)


async def recordings(random: Random) -> None:
    """The file of a recording, or the documents in it."""
    whole = cluster_json.encode(cluster_of(node_of(decode(document()))))
    inside = [damaged(whole, random) if random.random() < 0.5 else whole for _ in range(3)]
    data = MAGIC + b"".join(frame(NOW + number, (each,)) for number, each in enumerate(inside))
    if random.random() < 0.5:
        data = noise(data, random)
    with _file(data) as path:
        try:
            recording = Recording(path)
        except UserError:
            return
        for number in range(len(recording.times)):
            try:
                cluster = cluster_json.decode(recording.document(number))
            except UserError:
                continue
            await show_cluster(cluster)
        try:
            playback = Playback(Player(recording.times, recording.document, speed=1.0, is_loop=True), _only)
        except UserError:
            return
        show_node(playback.snapshot)


@contextmanager
def _file(data: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(data)
        yield path


def _only(document: bytes) -> Snapshot:
    nodes = [node.snapshot for node in cluster_json.decode(document).nodes if node.snapshot]
    if not nodes:
        raise UserError("no node")
    return nodes[0]


_CONFIG = b"""interval: 5s
series.limit: 5000
web:
  listen-address: ['127.0.0.1:9400', ':9500']
  max-requests: 10
kube.pod-labels: [team, app]
node-name: n1
"""
_PRICE = b"""currency: EUR
gpu_hour:
  NVIDIA H200: 3.50
  '*': 1
"""
_WEB = b"""basic_auth_users:
  alice: $2b$04$abcdefghijklmnopqrstuv
http_server_config:
  http2: false
  headers:
    X-Frame-Options: deny
"""
_KUBECONFIG = b"""apiVersion: v1
current-context: c
clusters:
- name: k
  cluster: {server: 'https://h:6443'}
contexts:
- name: c
  context: {cluster: k, user: u}
users:
- name: u
  user: {token: abc}
"""
_FILES: tuple[tuple[bytes, Callable[[Path], object]], ...] = (
    (_CONFIG, lambda path: load({"config_file": [str(path)]}, {})),
    (_PRICE, lambda path: prices(str(path))),
    (_WEB, web_config.read),
    (_KUBECONFIG, account),
)


async def configuration(random: Random) -> None:
    """Files that a user writes. Aliases and depth are bounded by the reader of YAML."""
    text, take = random.choice(_FILES)
    with _file(_scrambled(text, random)) as path, suppress(UserError):
        take(path)


_WORDS = (
    b"-1", b"1e400", b"9" * 5000, b".nan", b".inf", b"[]", b"{}", b"~", b"''", b"'", b"? ", b"!!python/x",
    b"\xff", b"\x00", b"- " * 300, b"[" * 500, b"{a: " * 300, b"%TAG ! x", b"---", b"|\n  x", b"2001-01-01", b"0o7",
)  # fmt: skip


def _scrambled(text: bytes, random: Random) -> bytes:
    lines = text.splitlines(keepends=True)
    for _ in range(random.choice((1, 2, 4))):
        at = random.randrange(len(lines))
        match random.randrange(5):
            case 0:
                key, colon, _ = lines[at].partition(b":")
                lines[at] = key + colon + b" " + random.choice(_WORDS) + b"\n"
            case 1:
                lines[at] = random.choice(_WORDS) + b"\n"
            case 2:
                lines.insert(at, lines[random.randrange(len(lines))])
            case 3:
                lines[at] = b"  " + lines[at]
            case _:
                lines[at] = noise(lines[at], random)
    return b"".join(lines)


_CGROUP = f"kubepods/pod11111111-2222-3333-4444-555555555555/{'a' * 64}"
_REGIONS = b"nvidia/00000000:3b:00.0/vidmem 21474836480\nnvidia/0000:86:00.0/vidmem 0\ndrm/0000:03:00.0/vram0 max\n"


async def charged_memory(random: Random) -> None:
    """The kernel's books of GPU memory, in a tree of cgroups."""
    with tempfile.TemporaryDirectory() as folder:
        _charge(Path(folder), random)
        line = noise(f"0::/{_CGROUP}".encode(), random).decode("utf-8", "replace")
        for charged in Dmem(Path(folder)).charged([line]) or ():
            assert all(0 <= number < 1 << 61 for number in charged.cards.values())


def _charge(root: Path, random: Random) -> None:
    container = root / _CGROUP
    container.mkdir(parents=True)
    (root / "dmem.capacity").write_bytes(_REGIONS if random.random() < 0.8 else noise(_REGIONS, random))
    for cgroup in (container, *list(container.parents)[:2]):
        (cgroup / "dmem.current").write_bytes(noise(_REGIONS, random))


Target = Callable[[Random], Awaitable[None]]
TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (cluster_documents, whole_clusters, store_answers, recordings, configuration, charged_memory)
}
