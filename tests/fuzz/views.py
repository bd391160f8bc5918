"""Everything that shows a snapshot or a cluster."""

import io
import logging
import re
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from podgpu.assembly.server import open_cluster_pages, open_pages
from podgpu.cli._idle_table import idle_table
from podgpu.cli._output import FORMATS, print_table
from podgpu.cli._top.keys import VIEWS, TopState
from podgpu.cli._top.layout import render
from podgpu.cli._top.rows import TopRows
from podgpu.cli.top import print_rows
from podgpu.config import Config
from podgpu.doctor import Finding, Machine, examine, examine_cluster
from podgpu.insight import InsightSettings, conclude, reconclude
from podgpu.insight.idle import idle_pods
from podgpu.insight.selection import EVERYTHING
from podgpu.model import Cluster, ClusterNode, Prices, Snapshot
from podgpu.serve.cluster.server import ClusterChanges
from podgpu.views import exposition, page
from podgpu.views import json as node_json
from podgpu.views.cluster import inspect, json
from podgpu.views.cluster.card_memory import cluster_memory
from podgpu.views.cluster.json import slim
from podgpu.views.cluster.scrub import Scrubber
from podgpu.views.exposition import Format
from podgpu.views.table import table
from podgpu.views.text import NO_LIMIT
from podgpu.views.why import why
from podgpu.views.why_evidence import evidence, pod_names

_CONFIG = Config()
_PAGES = open_pages(_CONFIG)
_TERMS = InsightSettings(idle_after=60.0, prices=Prices(currency="EUR", gpu_hour={"NVIDIA H200": 3.5}))
NOW = 1_700_000_100.0


class Escape(AssertionError):
    """Something came out that nobody documents."""


class _Heard(logging.Handler):
    """What the views could not show, and set aside: a net that nothing should fall into."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.errors.append(f"{record.getMessage()} {getattr(record, 'fields', '')}")


@contextmanager
def heard() -> Iterator[None]:
    handler, logger = _Heard(), logging.getLogger("podgpu")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    if handler.errors:
        raise Escape(handler.errors[0])


class _Feed:
    ready = True
    interval = 5.0
    seconds_behind = 0.0

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def full(self, name: str) -> Snapshot:
        raise LookupError(name)

    async def changed(self, seen: Cluster) -> Cluster:
        return self.cluster


def cluster_of(*nodes: ClusterNode) -> Cluster:
    """A cluster, concluded as its reader would do it."""
    return reconclude(Cluster(taken_at=NOW, version="1", name="c", nodes=nodes), _TERMS)


def node_of(snapshot: Snapshot) -> ClusterNode:
    return ClusterNode(name=snapshot.node, state="fresh", origin="agent", snapshot=snapshot)


async def show_cluster(cluster: Cluster) -> None:
    """Show it in every way that there is."""
    with heard():
        await _served(cluster)
    json.decode(json.encode(cluster))
    json.encode(Scrubber(b"key").scrubbed(cluster))
    found = cluster_memory(cluster)
    for by_pod in (False, True):
        for width in (NO_LIMIT, 40):
            _check_printable(inspect.table(found, by_pod=by_pod, with_use=True, width=width))
    inspect.document(found)
    _judge(examine_cluster(cluster))
    for form in FORMATS:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
            _print(cluster, form)
        if form not in ("json", "yaml"):
            _check_printable(out.getvalue())
    board = TopRows(cluster, EVERYTHING)
    for view in VIEWS:
        opened = frozenset((view, entry.key) for entry in board.all(view))
        render(board, TopState(view=view, opened=opened), 100, 50)


def _print(cluster: Cluster, form: str) -> None:
    arguments = Namespace(output=form, no_headers=False)
    found = idle_pods(cluster)
    print_table(idle_table(found, cluster, "EUR", arguments), arguments)
    for view in VIEWS:
        arguments.view = view
        print_rows(EVERYTHING, arguments, cluster)


def _check_printable(text: str) -> None:
    """Whatever people look at holds no command for their terminal."""
    if control := re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text):
        raise Escape(f"{control[0]!r} is printed")


async def _served(cluster: Cluster) -> None:
    for view in open_cluster_pages(_CONFIG).views.values():
        await view.update(cluster, packing=False)
        for form in Format:
            await view.body(form, gzipped=False)
    await ClusterChanges(_Feed(cluster)).document(cluster)


def show_node(snapshot: Snapshot) -> None:
    """A node's snapshot, concluded as commands do where its agent did not."""
    snapshot = snapshot if snapshot.insight else conclude(snapshot, _TERMS)
    for view in (*_PAGES.pages.values(), *_PAGES.whole.values()):
        families = view(snapshot, {})
        for form in Format:
            exposition.render(families, form)
    for document in _PAGES.documents.values():
        document(snapshot)({})
    node_json.decode(node_json.encode(snapshot))
    node_json.encode(slim(snapshot))
    page.html(snapshot, 3)
    table(snapshot, 100, colour=True)
    _judge(examine(snapshot, Machine(now=NOW, is_remote=True)))
    for name in pod_names(snapshot)[:3]:
        namespace, _, pod = name.partition("/")
        why(snapshot, namespace, pod, 80)
        evidence(snapshot, name)


def _judge(findings: tuple[Finding, ...]) -> None:
    for finding in findings:
        if "this check broke" in finding.detail:
            raise Escape(finding.detail)
