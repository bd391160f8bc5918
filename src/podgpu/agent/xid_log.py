"""The last XIDs of each card, with the containers that were on it then: later readings no longer show these."""

from collections import deque
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from podgpu.catalog import xids
from podgpu.insight.tenants import is_holder
from podgpu.model import Card, ContainerRef, XidEvent, XidRecord

MOST_KEPT = 8  # of a card; one XID often brings others


class Presence(Struct, frozen=True):
    """The containers with a process on a card, None if processes are not seen, and those with a share of it."""

    running: tuple[ContainerRef, ...] | None
    holders: tuple[ContainerRef, ...]


class XidLog:
    def __init__(self) -> None:
        self._records: dict[str, deque[XidRecord]] = {}
        self._before: dict[str, Presence] = {}

    def noted(self, events: Iterable[XidEvent], cards: Iterable[Card]) -> tuple[Card, ...]:
        """Return the cards with their XIDs. The events happened since the cards were last read.

        An XID often ends the process that caused it, so who was there at the last reading counts too.
        """
        found = tuple(cards)
        now = {card.gpu.uuid: _presence(card) for card in found}
        for event in events:
            if event.uuid in now:
                kept = self._records.setdefault(event.uuid, deque(maxlen=MOST_KEPT))
                kept.appendleft(_record(event, self._before.get(event.uuid), now[event.uuid]))
        self._before = now
        return tuple(
            replace(card, xids=tuple(records)) if (records := self._records.get(card.gpu.uuid)) else card
            for card in found
        )

    def forget(self, cards: Iterable[str]) -> None:
        for card in cards:
            self._records.pop(card, None)


def _presence(card: Card) -> Presence:
    running = tuple(tenant.container for tenant in card.tenants if tenant.processes)
    holders = tuple(tenant.container for tenant in card.tenants if is_holder(tenant))
    is_seen = card.ability.sees_processes and card.ability.knows_owners and card.fault is None
    return Presence(running if is_seen else None, holders)


def _record(event: XidEvent, before: Presence | None, now: Presence) -> XidRecord:
    seen = [presence for presence in (before, now) if presence is not None]
    running = [presence.running for presence in seen if presence.running is not None]
    present = tuple(dict.fromkeys(ref for refs in running for ref in refs)) if running else None
    holders = dict.fromkeys(ref for presence in seen for ref in presence.holders)
    judged = xids.XIDS.get(event.xid, xids.UNKNOWN)
    return XidRecord(
        xid=event.xid,
        at=event.at,
        meaning=judged.meaning,
        severity=judged.severity,
        advice=f"{xids.CAUSES[judged.cause]} {xids.ACTIONS[judged.action]}",
        present=present,
        holders=tuple(ref for ref in holders if ref not in (present or ())),
    )
