import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from msgspec.structs import replace

from podgpu.model import Snapshot, Tenant
from podgpu.views.page import COLUMNS, POLICY
from tests.views.concluded import html, table
from tests.views.quirks import BUSY, SNAPSHOT, band
from tests.views.test_native import SNAPSHOTS

VOID = {"meta", "br", "link"}


class Outline(HTMLParser):
    """Collects tags and text, and demands that every tag is closed in turn."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page.decode())
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["script"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def test_nothing_is_loaded_but_its_own_files_and_nothing_is_inline_but_the_one_script_of_the_policy() -> None:
    outline = Outline(html(SNAPSHOT, 1.0))
    assert not {tag for tag, _ in outline.tags} & {"style", "img", "iframe", "form"}
    loaded = [attrs.get("src") or attrs["href"] for tag, attrs in outline.tags if tag in ("script", "link") and attrs]
    assert loaded == ["page/icon.svg", "page/table.css", "page/app.css", "page/app.js"]
    (inline,) = re.findall(r"<script>(.*?)</script>", html(SNAPSHOT, 1.0).decode())
    digest = b64encode(sha256(inline.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in POLICY and "unsafe" not in POLICY
    assert not [attrs for _, attrs in outline.tags if any(name.startswith("on") or name == "style" for name in attrs)]


def test_without_a_script_the_page_reloads_itself() -> None:
    assert b'<noscript><meta http-equiv="refresh" content="5"></noscript>' in html(SNAPSHOT, 1.0)


def test_a_hostile_name_is_shown_as_it_is() -> None:
    assert '<script>alert("1")<' in Outline(html(SNAPSHOT, 1.0)).text


def test_the_stuck_call_and_the_next_step_are_named() -> None:
    text = " ".join(Outline(html(SNAPSHOT, 1.0)).text.split())
    assert "timeout in nvmlDeviceGetPowerUsage for 13 s" in text
    assert "no_socket in List for 90 s: <socket> missing" in text
    assert "Mount /var/lib/kubelet/pod-resources" in text
    assert "drain and reboot the node" in text


def rows(snapshot: Snapshot) -> list[str]:
    """The text of each row of the table's body, its cells divided by bars."""
    found = re.findall(r"<tr class[^>]*>(.*?)</tr>", html(snapshot, 1.0).decode())
    return [re.sub("<[^>]*>", "", row.replace("</td>", "|").replace("<br>", " ")) for row in found]


def with_first(**facts: object) -> Snapshot:
    """The first card with its first tenant alone, changed."""
    tenant: Tenant = replace(BUSY.tenants[0], **facts)
    return replace(SNAPSHOT, cards=(replace(BUSY, tenants=(tenant,)),))


@pytest.mark.parametrize(("demo", "age", "banners"), [(False, 1.0, 0), (True, 1.0, 1), (True, 16.0, 2)])
def test_a_demo_and_stale_numbers_are_announced(demo: bool, age: float, banners: int) -> None:
    outline = Outline(html(replace(SNAPSHOT, demo=demo), age))
    assert len([attrs for tag, attrs in outline.tags if (attrs.get("class") or "").startswith("banner")]) == banners
    assert ("DEMO" in outline.text) is demo


def test_the_links() -> None:
    links = [attrs["href"] for tag, attrs in Outline(html(SNAPSHOT, 1.0)).tags if tag == "a"]
    cards = [link for link in links if link and link.startswith("?gpu=")]
    assert len(cards) == len([card for card in SNAPSHOT.cards if card.gpu.uuid])
    assert links == [*cards, "/metrics", "/api/v1/snapshot", "/-/healthy", "/-/ready"]


@given(SNAPSHOTS)
def test_any_snapshot_makes_a_well_formed_page(snapshot: Snapshot) -> None:
    Outline(html(snapshot, 1.0))


EXACT = replace(BUSY.tenants[0].booking, band=band(0.78))


def test_it_is_the_table_of_podgpu_snapshot_as_text() -> None:
    (pre,) = re.findall(r"<pre[^>]*>(.*?)</pre>", html(SNAPSHOT, 1.0).decode(), re.DOTALL)
    assert unescape(pre) == table(SNAPSHOT, COLUMNS, colour=False)
