"""The page without scripts: the table of `podgpu snapshot` with its list of problems, as text."""

from html import escape

from podgpu.model import Snapshot
from podgpu.numbers import duration, moment
from podgpu.views.page.shell import document
from podgpu.views.table import table
from podgpu.views.text import line

REFRESH_SECONDS = 5
COLUMNS = 140  # of text
# The agent serves no reading older than this many intervals; neither does the page pass one off as fresh.
STALE_INTERVALS = 3

_LINKS = (
    ("/metrics", "Metrics"),
    ("/api/v1/snapshot", "JSON snapshot"),
    ("/-/healthy", "Healthy"),
    ("/-/ready", "Ready"),
)


def html(snapshot: Snapshot, now_age_seconds: float) -> bytes:
    """`now_age_seconds` is the snapshot's age when the page is asked for."""
    node = escape(line(snapshot.node))
    marks = ("REPLAY " if snapshot.replayed else "") + ("DEMO " if snapshot.demo else "")
    links = "".join(f'<a href="{path}">{name}</a>' for path, name in _LINKS)
    body = (
        f"<header><h1>podgpu</h1><b>{node}</b><span>{_freshness(snapshot, now_age_seconds)}</span></header>"
        f"{_banners(snapshot, now_age_seconds)}"
        f'<pre tabindex="0">{escape(table(snapshot, COLUMNS, colour=False))}</pre>'
        f"<footer>{links}<span>podgpu {escape(line(snapshot.version))}</span></footer>"
    )
    return "".join(document(f"{marks}podgpu {node}", body, refresh_seconds=REFRESH_SECONDS)).encode()


def _freshness(snapshot: Snapshot, age: float) -> str:
    since = "recorded" if snapshot.replayed else f"updated {duration(age)} ago"
    return f"{since}, every {duration(snapshot.interval_seconds)}"


def _banners(snapshot: Snapshot, age: float) -> str:
    found = []
    if snapshot.replayed:
        found.append(
            f"<b>REPLAY</b> Recorded at {moment(snapshot.taken_at)}. No GPU of this machine is read."
        )
    if snapshot.demo:
        found.append("<b>DEMO</b> These numbers are made up. No GPU of this machine is read.")
    if age > STALE_INTERVALS * snapshot.interval_seconds and not snapshot.replayed:
        found.append("<b>Stale</b> The agent has stopped taking readings. Read its log.")
    return "".join(f'<p class="banner">{text}</p>' for text in found)
