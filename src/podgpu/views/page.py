"""The node's HTML page without scripts: the table of `podgpu snapshot` with its list of problems, as text.

With JavaScript, podgpu's own modules take the table's place. Without, the table stays and reloads itself, and links
to a page for each GPU.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape

import msgspec

from podgpu.insight.tenants import EVIDENCE
from podgpu.model import Snapshot
from podgpu.numbers import TABLE, duration, moment
from podgpu.views import card_facts, card_page
from podgpu.views.format import MEANINGS, REASONS, STATEMENT_ROWS, TOTALS
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


def html(snapshot: Snapshot, now_age_seconds: float, gpu: str = "") -> bytes:
    """`now_age_seconds` is the snapshot's age when the page is asked for, `gpu` the UUID of the card to show alone."""
    node = escape(line(snapshot.node))
    marks = ("REPLAY " if snapshot.replayed else "") + ("DEMO " if snapshot.demo else "")
    links = "".join(f'<a href="{path}">{name}</a>' for path, name in _LINKS)
    content = card_page.content(snapshot, gpu) if gpu else None
    if content is None:
        content = f'<pre tabindex="0">{escape(table(snapshot, COLUMNS, colour=False))}</pre>{card_page.links(snapshot)}'
    body = (
        f"<header><h1>podgpu</h1><b>{node}</b><span>{_freshness(snapshot, now_age_seconds)}</span></header>"
        f"{_banners(snapshot, now_age_seconds)}"
        f"{content}"
        f"<footer>{links}<span>podgpu {escape(line(snapshot.version))}</span></footer>"
    )
    return "".join(html_parts(f"{marks}podgpu {node}", body, refresh_seconds=REFRESH_SECONDS)).encode()


def _freshness(snapshot: Snapshot, age: float) -> str:
    since = "recorded" if snapshot.replayed else f"updated {duration(age)} ago"
    return f"{since}, every {duration(snapshot.interval_seconds)}"


def _banners(snapshot: Snapshot, age: float) -> str:
    found = []
    if snapshot.replayed:
        found.append(f"<b>REPLAY</b> Recorded at {moment(snapshot.taken_at)}. No GPU of this machine is read.")
    if snapshot.demo:
        found.append("<b>DEMO</b> These numbers are made up. No GPU of this machine is read.")
    if age > STALE_INTERVALS * snapshot.interval_seconds and not snapshot.replayed:
        found.append("<b>Stale</b> The agent has stopped taking readings. Read its log.")
    return "".join(f'<p class="banner">{text}</p>' for text in found)


# Before the first paint: the chosen colours, and no table that is about to be replaced. If nothing replaces it
# within a while, the table is shown after all.
BOOT = (
    "(()=>{const e=document.documentElement;try{const t=localStorage.getItem('podgpu-theme');"
    "if(t==='light'||t==='dark')e.dataset.theme=t}catch{}"
    "e.classList.add('js');setTimeout(()=>{if(!e.dataset.app)e.classList.remove('js')},4000)})()"
)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# Nothing but podgpu's own files and the one script above; no markup is ever made from text.
POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src 'self' {_hash(BOOT)}",
        "style-src 'self'",
        "img-src 'self' data:",  # the icon counts problems
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types podgpu",
    )
)


def html_parts(title: str, body: str, *, refresh_seconds: int) -> tuple[str, str]:
    """Return what stands before the table and after it. `title` and `body` are HTML."""
    head = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<noscript><meta http-equiv="refresh" content="{refresh_seconds}"></noscript>'
        f'<title>{title}</title><link rel="icon" href="page/icon.svg">'
        '<link rel="stylesheet" href="page/table.css"><link rel="stylesheet" href="page/app.css">'
        f'<script>{BOOT}</script><script type="module" src="page/app.js"></script></head>'
        f'<body><div id="app"></div><main id="plain">{body}'
    )
    return head, "</main></body></html>\n"


def words_script() -> bytes:
    """Write the texts and number formats that the page shares with the other views, as a JavaScript module."""
    words = {
        "reasons": REASONS,
        "meanings": MEANINGS,
        "evidence": EVIDENCE,
        "statement_rows": STATEMENT_ROWS,
        "card_facts": card_facts.WORDS,
        "totals": TOTALS,
        "numbers": TABLE,
    }
    return b"export const words = " + msgspec.json.encode(words) + b";\n"
