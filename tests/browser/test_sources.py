"""Rules for the page's own files that no browser would enforce in time."""

import re
import zlib
from pathlib import Path

import pytest

from podgpu.serve.assets import assets

WEB = Path(__file__).parents[2] / "src" / "podgpu" / "web"
SCRIPTS = sorted(WEB.glob("*.js"))
MOST_BYTES = 120_000  # compressed
MOST_LINES = 400

# A command for the reader may have an address with a node's name in it.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment"
    r"|\beval\(|new Function|\.srcdoc|setHTML|https?://(?!www\.w3\.org|\$\{gpu\.node\.name\})"
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_makes_markup_of_text_or_asks_another_server(path: Path) -> None:
    text = path.read_text()
    assert FORBIDDEN.findall(text) == []
    assert text.count("\n") <= MOST_LINES


def test_the_whole_page_is_small() -> None:
    packed = {path: len(asset.gzipped.body) for path, asset in assets().items()}
    assert sum(packed.values()) < MOST_BYTES, packed
    assert all(
        zlib.decompress(asset.gzipped.body, 16 + zlib.MAX_WBITS) == asset.plain.body for asset in assets().values()
    )


def test_every_module_that_is_imported_is_served() -> None:
    served = {path.rpartition("/")[2] for path in assets()}
    imported = {name for path in SCRIPTS for name in re.findall(r'from "\./([a-z]+\.js)"', path.read_text())}
    assert imported <= served
    assert served - imported == {"app.js", "worker.js", "app.css", "table.css", "icon.svg"}
