"""The cluster's page without scripts: a line of text for each node, and the list of problems."""

from html import escape

from podgpu.model import Cluster, ClusterNode, Sums
from podgpu.numbers import count, gib_of, gpu_number, integer, moment, watts
from podgpu.views import card_page
from podgpu.views.format import guests_text, held_text, problem_line
from podgpu.views.page import html_parts
from podgpu.views.text import line, table_row

REFRESH_SECONDS = 15
MAX_PENDING = 12
_LINKS = ("/api/v1/cluster", "/metrics", "/metrics/pod-gpu-map", "/metrics/nodes", "/container/metrics")
_NAME = 40
_COLUMNS = {"STATE": 11, "GPUS": 5, "HELD": 7, "BUSY": 7, "UNUSED": 7, "MEMORY GiB": 16, "POWER": 9}


def row(node: ClusterNode) -> bytes:
    """Write one node. Numbers are in whole GPUs."""
    insight = node.concluded
    cells = _cells(insight.sums) if insight else [""] * (len(_COLUMNS) - 1)
    return _line(line(node.name), ["dark" if node.is_dark else node.state, *cells]).encode()


def frame(cluster: Cluster) -> tuple[bytes, bytes]:
    """Return what stands before the lines of the nodes, and after them."""
    title = f"podgpu cluster {escape(line(cluster.name))}".rstrip()
    sums = _line("all nodes", ["", *_cells(cluster.insight.sums)]) if cluster.insight else ""
    body = (
        f"<header><h1>{title}</h1><span>{_seen(cluster)}, taken {moment(cluster.taken_at)}</span></header>"
        f"{_banner(cluster)}{_problems(cluster)}{_pending(cluster)}"
        f'<pre tabindex="0">{_line("NODE", [*_COLUMNS])}{sums}'
    )
    before, after = html_parts(title, body, refresh_seconds=REFRESH_SECONDS)
    return before.encode(), f"</pre>{_footer()}{after}".encode()


def card(cluster: Cluster, uuid: str) -> bytes | None:
    """Write the page of a card or a MIG instance; None if there is none of that UUID."""
    for node in cluster.nodes:
        content = card_page.content(node.snapshot, uuid) if node.snapshot else None
        if node.snapshot and content:
            name = escape(line(node.name))
            body = (
                f"<header><h1>podgpu</h1><b>{name}</b>"
                f"<span>{escape(line(node.state))}, taken {moment(node.snapshot.taken_at)}</span></header>"
                f"{_banner(cluster)}{content}{_footer()}"
            )
            return "".join(html_parts(f"podgpu {name}", body, refresh_seconds=REFRESH_SECONDS)).encode()
    return None


def _footer() -> str:
    links = "".join(f'<a href="{path}">{path}</a>' for path in _LINKS)
    return f"<footer>{links}</footer>"


def _cells(sums: Sums) -> list[str]:
    return [
        integer(sums.gpus),
        held_text(sums.allocated_gpus, sums.unknown_shares),
        gpu_number(sums.busy_gpus),
        gpu_number(sums.unused_gpus),
        gib_of(sums.memory_used_bytes, sums.memory_total_bytes),
        watts(sums.power_watts),
    ]


def _line(name: str, cells: list[str]) -> str:
    sizes = (_NAME, *_COLUMNS.values())
    return f"{escape(table_row((name, *cells), sizes, range(1, len(sizes))).rstrip())}\n"


def _seen(cluster: Cluster) -> str:
    """Of how many nodes all this is."""
    dark = cluster.insight.dark if cluster.insight else None
    guests = guests_text(cluster.insight)
    said = escape(line(dark.text)) if dark else count(len(cluster.nodes), "node")
    return ", ".join([said, *([f"GPUs: {guests}"] if guests else [])])


def _banner(cluster: Cluster) -> str:
    return '<p class="banner"><b>DEMO</b> These numbers are made up.</p>' if cluster.demo else ""


def _problems(cluster: Cluster) -> str:
    problems = cluster.insight.problems if cluster.insight else ()
    lines = [f"! {problem_line(problem, with_node=True)}" for problem in problems]
    return f"<pre>{escape(chr(10).join(lines))}</pre>" if lines else ""


def _pending(cluster: Cluster) -> str:
    if not cluster.pending:
        return ""
    names = ", ".join(f"{pod.namespace}/{pod.name}" for pod in cluster.pending[:MAX_PENDING])
    left_out = len(cluster.pending) - MAX_PENDING
    more = f" and {integer(left_out)} more" if left_out > 0 else ""
    waits = "wait" if len(cluster.pending) != 1 else "waits"
    return f"<p>{count(len(cluster.pending), 'pod')} {waits} for a GPU: {escape(line(names))}{more}</p>"
