"""The page around the table: header, banners, parts, footer."""

from collections.abc import Sequence

from podgpu.catalog.parts import PARTS
from podgpu.model import Allocation, PartStatus, Snapshot
from podgpu.numbers import duration, integer, moment
from podgpu.views.page.card import cards
from podgpu.views.page.markup import pill, text, why
from podgpu.views.page.shell import document

REFRESH_SECONDS = 5
MAX_UNCLAIMED = 10
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
    body = "".join(
        (
            _header(snapshot, now_age_seconds),
            _banners(snapshot, now_age_seconds),
            _parts("Needs attention", [part for part in snapshot.parts if part.fault or not part.up]),
            cards(snapshot),
            _unclaimed(snapshot.unclaimed),
            _parts("Parts", [part for part in snapshot.parts if part.up and not part.fault]),
            _footer(snapshot),
        )
    )
    demo = ("REPLAY " if snapshot.replayed else "") + ("DEMO " if snapshot.demo else "")
    title = f"{demo}podgpu {text(snapshot.node)}"
    return "".join(document(title, body, refresh_seconds=REFRESH_SECONDS)).encode()


def _header(snapshot: Snapshot, age: float) -> str:
    state = pill("all up", "good") if snapshot.up else pill("degraded", "bad")
    since = "recorded" if snapshot.replayed else f"updated {duration(age)} ago"
    return (
        f'<header><h1>podgpu</h1><span class="node">{text(snapshot.node)}</span>{state}'
        f'<span class="soft age">{since},'
        f" every {duration(snapshot.interval_seconds)}</span></header>"
    )


def _banners(snapshot: Snapshot, age: float) -> str:
    demo = stale = replay = ""
    if snapshot.replayed:
        replay = (
            f'<p class="banner"><b>REPLAY</b> Recorded at {moment(snapshot.taken_at)}.'
            " No GPU of this machine is read.</p>"
        )
    if snapshot.demo:
        demo = '<p class="banner"><b>DEMO</b> These numbers are made up. No GPU of this machine is read.</p>'
    if age > STALE_INTERVALS * snapshot.interval_seconds and not snapshot.replayed:
        stale = (
            '<p class="banner stale"><b>Stale</b> The agent has stopped taking readings. Read its log.</p>'
        )
    return replay + demo + stale


def _parts(title: str, parts: Sequence[PartStatus]) -> str:
    return f'<h2>{title}</h2><ul class="list box">{"".join(map(_part, parts))}</ul>' if parts else ""


def _part(part: PartStatus) -> str:
    reason = f'<span class="why">{why(part.fault, part.name)}</span>' if part.fault is not None else ""
    purpose = PARTS[part.name].purpose if part.name in PARTS else ""
    about = " ".join(filter(None, (purpose, _worked(part))))
    return (
        f"<li>{pill('up', 'good') if part.up else pill('down', 'bad')}<b>{text(part.name)}</b>"
        f'<span class="soft">{about}</span>{reason}</li>'
    )


def _worked(part: PartStatus) -> str:
    """A part that is up without an age is asked again each cycle: there is no last time to speak of."""
    if part.age_seconds is None:
        return "" if part.up else "It has never worked."
    took = f", in {duration(part.duration_seconds)}" if part.up else ""
    return f"Last worked {duration(part.age_seconds)} ago{took}."


def _unclaimed(allocations: tuple[Allocation, ...]) -> str:
    if not allocations:
        return ""
    rows = "".join(map(_allocation, allocations[:MAX_UNCLAIMED]))
    if len(allocations) > MAX_UNCLAIMED:
        rows += f"<li>+{integer(len(allocations) - MAX_UNCLAIMED)} more</li>"
    return (
        '<h2>Allocated devices that podgpu cannot place</h2><p class="soft">No sharing system knows the id, or two '
        f'pods have it. Nothing is booked by these ids.</p><ul class="list box">{rows}</ul>'
    )


def _allocation(one: Allocation) -> str:
    name = "/".join(map(text, (one.namespace, one.pod, one.container)))
    return (
        f'<li><b>{name}</b><span class="soft">{text(one.resource)}</span>'
        f'<span class="uuid">{text(one.device_id)}</span></li>'
    )


def _footer(snapshot: Snapshot) -> str:
    links = "".join(f'<a href="{path}">{name}</a>' for path, name in _LINKS)
    versions = [f"podgpu {text(snapshot.version)}"]
    if snapshot.driver_version:
        versions.append(f"driver {text(snapshot.driver_version)}")
    if snapshot.nvml_version:
        versions.append(f"NVML {text(snapshot.nvml_version)}")
    return f'<footer>{links}<span class="soft">{", ".join(versions)}</span></footer>'
