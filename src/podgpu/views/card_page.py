"""A GPU's own page without scripts, or a MIG instance's: who is on it, its XIDs, and what it reports, as tables."""

from collections.abc import Iterable, Iterator
from html import escape

from podgpu.catalog.xids import named
from podgpu.insight.card_problems import present_words
from podgpu.insight.tenants import pod_name
from podgpu.model import Card, Instance, Snapshot, Tenant
from podgpu.numbers import memory, moment, percent, watts
from podgpu.views.card_facts import facts_of
from podgpu.views.format import MEANINGS, REASONS, use_text, visible_rest
from podgpu.views.text import line, printable
from podgpu.views.why_sentences import METHODS

Row = tuple[str, ...]

_TENANTS = ("Pod", "Given", "Busy", "Memory", "Power", "How it is known")
_REST = ("What", "Busy", "Memory", "Power", "What it is")
_XIDS = ("When", "What, and who was on the card")
_FACTS = ("What", "Value", "What it means")


def links(snapshot: Snapshot) -> str:
    """Link to the pages of all cards."""
    cards = [card.gpu for card in snapshot.cards if card.gpu.uuid]
    anchors = [f'<a href="?gpu={escape(line(gpu.uuid))}">GPU {gpu.number}</a>' for gpu in cards]
    return f"<p>{' '.join(anchors)}</p>" if anchors else ""


def content(snapshot: Snapshot, uuid: str) -> str | None:
    """Write the card or instance of that UUID; None if there is none."""
    for card in snapshot.cards:
        instance = next((found for found in card.instances if found.mig.uuid == uuid), None)
        if instance or card.gpu.uuid == uuid:
            return _card(card, instance)
    return None


def _card(card: Card, instance: Instance | None) -> str:
    mig = instance.mig if instance else None
    title = f"GPU {card.gpu.number}{f' · {mig.profile}' if mig else ''}"
    fault = (card.fault.reason.replace("_", " "), card.fault.detail) if card.fault else ()
    wrong = ", ".join(filter(None, (": ".join(filter(None, fault)), *card.problems)))
    tenants = [tenant for tenant in card.tenants if not mig or tenant.mig == mig.uuid]
    readings = instance.readings if instance else card.readings
    parts = [
        f'<p><a href="./">All GPUs</a></p><h2>{escape(line(title))}</h2>',
        f"<p>{escape(line(f'{card.gpu.model}, {mig.uuid if mig else card.gpu.uuid}'))}</p>",
        f'<p class="banner">{escape(line(wrong))}</p>' if wrong else "",
        f"<p>{escape(line(card.use.note))}</p>" if card.use and card.use.note else "",
        _table("Who is on it", _TENANTS, map(_tenant, tenants)) or "<p>No pod is on it.</p>",
        "" if mig else _table("Booked to no pod", _REST, _rest(card)),
        _table("XIDs since the agent started", _XIDS, _xids(card)),
        *(_table(topic, _FACTS, rows) for topic, rows in facts_of(readings).items()),
    ]
    return "".join(parts)


def _tenant(tenant: Tenant) -> Row:
    booking, use = tenant.booking, tenant.use
    state = f", {tenant.holding.state}" if tenant.holding else ""
    return (
        f"{pod_name(tenant.container)}{state}",
        percent(booking.allocated_ratio),
        use_text(use),
        memory(booking.memory_bytes),
        watts(use.watts if use else None),
        METHODS.get(booking.method, ""),
    )


def _rest(card: Card) -> Iterator[Row]:
    for rest in visible_rest(card):
        use, name = rest.use, REASONS.get(rest.reason, rest.reason)
        power = watts(use.watts if use else None)
        yield name, use_text(use), memory(rest.memory_bytes), power, MEANINGS.get(rest.reason, "")


def _xids(card: Card) -> Iterator[Row]:
    for record in card.xids:
        yield moment(record.at), f"{named(record.xid)}{present_words(record)}. {record.advice}".strip()


def _table(title: str, heads: Row, rows: Iterable[Row]) -> str:
    """Empty without rows."""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{_cells('th', heads)}</tr></thead>"
    caption = f"<caption>{escape(line(title))}</caption>"
    return f'<div tabindex="0"><table>{caption}{head}<tbody>{body}</tbody></table></div>' if body else ""


def _cells(tag: str, cells: Row) -> str:
    return "".join(f"<{tag}>{escape(printable(cell))}</{tag}>" for cell in cells)
