"""Links between the pages lead to files and headings that exist, and every page can be found."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
LINKS = [
    pytest.param(page, link, id=f"{page.name}: {link}")
    for page in PAGES
    for link in dict.fromkeys(re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]))
    if not link.startswith(("http://", "https://"))
]


def anchors(page: Path) -> set[str]:
    """As the usual viewers make them from headings."""
    titles = re.findall(r"^#+ (.+)$", TEXTS[page], re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_a_link_leads_somewhere(page: Path, link: str) -> None:
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    assert target.exists()
    assert not anchor or anchor in anchors(target)


def test_the_index_lists_every_page() -> None:
    index = TEXTS[ROOT / "docs/index.md"]
    missing = [page.name for page in PAGES if page.parent == ROOT / "docs" and f"({page.name})" not in index]
    assert missing == ["index.md"]


def test_both_readmes_have_the_same_parts() -> None:
    """Headings, commands, tables and pictures are equal in number, and links in where they lead."""
    english, chinese = TEXTS[ROOT / "README.md"], TEXTS[ROOT / "README.zh-CN.md"]
    for pattern in (r"^#+ ", r"^\| ", r"^```", r"^!\[", r"^\* "):
        counts = [len(re.findall(pattern, text, re.MULTILINE)) for text in (english, chinese)]
        assert counts[0] == counts[1], pattern
    links = [set(re.findall(r"\]\(((?:docs/|CONTRIBUTING)[^)]*)\)", text)) for text in (english, chinese)]
    assert {link.partition("#")[0] for link in links[0]} == {link.partition("#")[0] for link in links[1]}
    commands = [re.findall(r"^\$ (.*?)(?: {2,}#.*)?$", text, re.MULTILINE) for text in (english, chinese)]
    assert commands[0] == commands[1]


def test_pictures_are_small() -> None:
    sizes = {picture.name: picture.stat().st_size for picture in (ROOT / "docs/images").iterdir()}
    assert "page-light.png" in sizes
    assert {name: size for name, size in sizes.items() if size > 200_000} == {}
