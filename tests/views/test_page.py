import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from msgspec.structs import replace

from podgpu.model import Snapshot
from podgpu.views.page import html
from tests.views.quirks import SNAPSHOT
from tests.views.test_native import SNAPSHOTS

VOID = {"meta", "br"}


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
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def test_nothing_is_loaded_or_run() -> None:
    """The page is served under a policy that forbids all but inline styles."""
    outline = Outline(html(SNAPSHOT, 1.0))
    assert not {tag for tag, _ in outline.tags} & {"script", "link", "img", "iframe", "form"}
    assert not [attrs for _, attrs in outline.tags if any(name.startswith("on") for name in attrs)]
    assert not re.search(rb"url\(|@import", html(SNAPSHOT, 1.0))


def test_a_hostile_name_is_shown_as_it_is() -> None:
    assert '<script>alert("1")</script>' in Outline(html(SNAPSHOT, 1.0)).text


def test_the_stuck_call_and_the_next_step_are_named() -> None:
    text = Outline(html(SNAPSHOT, 1.0)).text
    assert "timeout in nvmlDeviceGetPowerUsage for 12 s" in text
    assert "no_permission in List for 90 s: <socket> refused" in text
    assert "drain and reboot the node" in text


def test_numbers_instances_and_processes_are_there() -> None:
    text = Outline(html(SNAPSHOT, 1.0)).text
    for fact in ("97%", "30.5 / 140.4", "690 W", "56 °C", "89%", "3g.71gb", "424", "+5 more"):
        assert fact in text


@pytest.mark.parametrize(("demo", "age", "banners"), [(False, 1.0, 0), (True, 1.0, 1), (True, 16.0, 2)])
def test_a_demo_and_stale_numbers_are_announced(demo: bool, age: float, banners: int) -> None:
    outline = Outline(html(replace(SNAPSHOT, demo=demo), age))
    assert (
        len([attrs for tag, attrs in outline.tags if (attrs.get("class") or "").startswith("banner")])
        == banners
    )
    assert ("DEMO" in outline.text) is demo


def test_the_links() -> None:
    links = [attrs["href"] for tag, attrs in Outline(html(SNAPSHOT, 1.0)).tags if tag == "a"]
    assert links == ["/metrics", "/api/v1/snapshot", "/-/healthy", "/-/ready"]


@given(SNAPSHOTS)
def test_any_snapshot_makes_a_well_formed_page(snapshot: Snapshot) -> None:
    Outline(html(snapshot, 1.0))
