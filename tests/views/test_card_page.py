"""A GPU's page without scripts says what the page with scripts does."""

import re
from html import unescape

import pytest
from msgspec.structs import replace

from podgpu.insight.tenants import pod_name
from podgpu.model import Card, ContainerRef, Rest, Snapshot, Use, XidRecord
from podgpu.numbers import moment, use
from podgpu.views.card_facts import facts_of
from podgpu.views.page import html
from podgpu.views.why_sentences import METHODS
from tests.sources.simulator.clocked_agent import cycles

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIG, SHARED = 3, 4


async def demo() -> Snapshot:
    return [agent.snapshot async for agent in cycles(5.0, 10.0)][-1]


def tables(snapshot: Snapshot, uuid: str) -> dict[str, list[list[str]]]:
    """The rows of each table, by its caption."""
    text = html(snapshot, 0.0, uuid).decode()
    found = {}
    for caption, body in re.findall(r"<caption>(.*?)</caption>.*?<tbody>(.*?)</tbody>", text, re.DOTALL):
        rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
        found[unescape(caption)] = [[unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", row)] for row in rows]
    return found


def written(card: Card) -> dict[str, list[list[str]]]:
    return {topic: [list(fact) for fact in facts] for topic, facts in facts_of(card.readings).items()}


async def test_a_card_shows_its_tenants_its_xids_and_what_it_reports() -> None:
    snapshot = await demo()
    card = snapshot.cards[SHARED]
    at = snapshot.taken_at - 60.0
    there = XidRecord(xid=31, at=at, present=(card.tenants[0].container,))
    nobody = XidRecord(xid=999, at=at, present=())
    card = replace(card, xids=(there, nobody))
    snapshot = replace(snapshot, cards=(*snapshot.cards[:SHARED], card, *snapshot.cards[SHARED + 1 :]))
    found = tables(snapshot, card.gpu.uuid)
    who = found.pop("Who is on it")
    assert [row[0].partition(",")[0] for row in who] == [pod_name(tenant.container) for tenant in card.tenants]
    assert [row[2] for row in who] == [
        use(tenant.use.ratio, tenant.use.least, tenant.use.most) for tenant in card.tenants if tenant.use
    ]
    assert found.pop("XIDs since the agent started") == [
        [moment(at), f"XID 31 (GPU memory page fault) while {who[0][0].partition(',')[0]} was on it."],
        [moment(at), "XID 999 while no pod was on it."],
    ]
    assert [row[-1] for row in who] == [METHODS[tenant.booking.method] for tenant in card.tenants], "nothing is cut"
    found.pop("Booked to no pod", None)
    assert found == written(card)


async def test_a_mig_instance_shows_its_own_tenants_and_readings() -> None:
    snapshot = await demo()
    card = snapshot.cards[MIG]
    instance = card.instances[0]
    found = tables(snapshot, instance.mig.uuid)
    assert [row[0].partition(",")[0] for row in found["Who is on it"]] == [
        pod_name(tenant.container) for tenant in card.tenants if tenant.mig == instance.mig.uuid
    ]
    assert f"GPU {card.gpu.index} · {instance.mig.profile}" in html(snapshot, 0.0, instance.mig.uuid).decode()


async def test_the_table_links_to_every_card_and_an_unknown_one_shows_the_table() -> None:
    snapshot = await demo()
    whole = html(snapshot, 0.0).decode()
    assert re.findall(r'href="\?gpu=([^"]+)"', whole) == [card.gpu.uuid for card in snapshot.cards]
    assert html(snapshot, 0.0, "GPU-that-is-not-there").decode() == whole


async def test_what_is_booked_to_no_pod_has_its_bounds_too() -> None:
    snapshot = await demo()
    card = snapshot.cards[SHARED]
    rest = Rest(reason="host", memory_bytes=1 << 30, use=Use(0.23, 0.12, 0.34))
    snapshot = replace(snapshot, cards=(replace(card, rest=(rest,)),))
    ((_, busy, *_),) = tables(snapshot, card.gpu.uuid)["Booked to no pod"]
    assert busy == use(0.23, 0.12, 0.34)


async def test_names_are_text() -> None:
    snapshot = await demo()
    card = snapshot.cards[0]
    evil = replace(card.tenants[0], container=ContainerRef("ml", "<script>alert(1)</script>", "main"))
    snapshot = replace(snapshot, cards=(replace(card, tenants=(evil,)),))
    assert b"<script>alert" not in html(snapshot, 0.0, card.gpu.uuid)
