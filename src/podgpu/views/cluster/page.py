"""The cluster as an HTML table: a row for each node."""

from html import escape

from podgpu.model import Cluster, ClusterNode, Snapshot
from podgpu.numbers import UNKNOWN, count, gib_of, integer, percent
from podgpu.views.glance import glance
from podgpu.views.page.shell import document
from podgpu.views.text import line

REFRESH_SECONDS = 15
_COLUMNS = ("Node", "State", "GPUs", "Model", "Tenants", "Busy", "Memory GiB", "Pods that hold a GPU")
_LOOKS = {"fresh": "good", "stale": "bad", "allocation": "", "failed": "bad"}
MAX_PODS = 12


def row(node: ClusterNode) -> bytes:
    cards = node.snapshot.cards if node.snapshot else ()
    tenants = [tenant for card in cards for tenant in card.tenants]
    pods = list(dict.fromkeys(f"{one.container.namespace}/{one.container.pod}" for one in tenants))
    shown = ", ".join(pods[:MAX_PODS]) + (
        f" and {integer(len(pods) - MAX_PODS)} more" if len(pods) > MAX_PODS else ""
    )
    cells = (
        _state(node),
        integer(len(cards)) if node.snapshot else UNKNOWN,
        _text(node.model),
        integer(len(tenants)) if node.snapshot else UNKNOWN,
        _busy(node.snapshot),
        _memory(node.snapshot),
        _text(shown),
    )
    inside = "".join(f'<td class="left">{cell}</td>' for cell in cells)
    return f'<tr><td class="left"><b>{_text(node.name)}</b></td>{inside}</tr>\n'.encode()


def frame(cluster: Cluster) -> tuple[bytes, bytes]:
    """Return what stands before the rows, and after them."""
    demo = '<p class="banner"><b>DEMO</b> These numbers are made up.</p>' if cluster.demo else ""
    title = f"podgpu cluster {_text(cluster.name)}".rstrip()
    head = "".join(f'<th class="left">{name}</th>' for name in _COLUMNS)
    body = (
        f"<header><h1>{title}</h1>"
        f'<span class="soft">{_counts(cluster)}</span></header>{demo}{_parts(cluster)}{_pending(cluster)}'
        f'<div class="box"><table><thead><tr>{head}</tr></thead><tbody>\n'
    )
    links = ("/api/v1/cluster", "/metrics", "/metrics/pod-gpu-map", "/metrics/nodes", "/container/metrics")
    footer = "".join(f'<a href="{path}">{path}</a>' for path in links)
    before, after = document(title, body, refresh_seconds=REFRESH_SECONDS)
    return before.encode(), f"</tbody></table></div><footer>{footer}</footer>{after}".encode()


def _counts(cluster: Cluster) -> str:
    states: dict[str, int] = {}
    for node in cluster.nodes:
        states[node.state] = states.get(node.state, 0) + 1
    return ", ".join(
        [
            count(len(cluster.nodes), "node"),
            *(f"{integer(number)} {state}" for state, number in states.items()),
        ]
    )


def _parts(cluster: Cluster) -> str:
    broken = [part for part in cluster.parts if not part.up and part.fault]
    rows = "".join(
        f"<li><b>{_text(part.name)}</b><span class='why'>{_text(part.fault.detail or part.fault.reason)}</span></li>"
        for part in broken
        if part.fault
    )
    return f'<ul class="list box">{rows}</ul>' if rows else ""


def _pending(cluster: Cluster) -> str:
    if not cluster.pending:
        return ""
    names = ", ".join(f"{one.namespace}/{one.name}" for one in cluster.pending[:MAX_PODS])
    return f'<p class="soft">{count(len(cluster.pending), "pod")} waiting for a GPU: {_text(names)}</p>'


def _state(node: ClusterNode) -> str:
    pill = f'<span class="pill {_LOOKS.get(node.state, "")}">{_text(node.state)}</span>'
    return f'{pill}<br><span class="fine">{_text(node.detail)}</span>' if node.detail else pill


def _busy(snapshot: Snapshot | None) -> str:
    """The mean over its cards, where all of them are known."""
    cards = snapshot.cards if snapshot else ()
    ratios = [card.balance.busy_ratio if card.balance else None for card in cards]
    known = [ratio for ratio in ratios if ratio is not None]
    return percent(sum(known) / len(known)) if known and len(known) == len(ratios) else UNKNOWN


def _memory(snapshot: Snapshot | None) -> str:
    seen = [glance(card.readings) for card in (snapshot.cards if snapshot else ())]
    used = [one.memory_used_bytes for one in seen if one.memory_used_bytes is not None]
    total = [one.memory_total_bytes for one in seen if one.memory_total_bytes is not None]
    return gib_of(sum(used), sum(total)) if used and total else UNKNOWN


def _text(value: str) -> str:
    return escape(line(value))
