"""A source is one folder and a dialect one file. Flags, choices, docs and pages follow automatically."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = '''
"""Numbers from a crystal ball."""

from podgpu.model import Report
from podgpu.sources.protocols import SourceEntry


class Crystal:
    name = "crystal"
    demo = False

    def __init__(self, depth, node):
        self.seen = (depth, node)

    async def read(self):
        return Report()

    async def release(self, seconds):
        return True

    async def close(self):
        pass


SOURCE = SourceEntry(
    name="crystal", help="a crystal ball", open=lambda options, site: Crystal(options.depth, site.node)
)
'''

OPTIONS = """
from dataclasses import dataclass

from podgpu.option import SOURCE
from podgpu.option.value import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    depth: int = SOURCE.single(
        "--crystal.depth",
        help="How deep to look.",
        parse=whole(1, 9),
        default="3",
    )
"""

DIALECT = '''
"""The words of nobody."""

from dataclasses import dataclass

from podgpu import option
from podgpu.catalog.row import Kind, Worth
from podgpu.option.value import OneOf
from podgpu.views.dialects import Dialect
from podgpu.views.series import Family, Labels


@dataclass(frozen=True, kw_only=True)
class Options:
    voice: str = option.DIALECTS.single(
        "--dialect.nobody.voice",
        help="How loud /metrics/nobody is.",
        parse=OneOf(("low", "loud")),
        default="low",
    )


def families(snapshot, options):
    value = 2.0 if options.voice == "loud" else 1.0
    family = Family("nobody", Kind.GAUGE, "Nobody.", Worth.CORE)
    family.put(value, Labels((), ()))
    return [family]


DIALECT = Dialect(pages={"/metrics/nobody": families}, options=Options)
'''

PROBE = """
import json
import sys

import podgpu.sources
import podgpu.views.dialects

podgpu.sources.__path__.append(sys.argv[1])
podgpu.views.dialects.__path__.append(sys.argv[2])

from podgpu.assembly.server import open_pages
from podgpu.assembly.source import open_source
from podgpu.cli._commands import find_command
from podgpu.config import OPTIONS
from podgpu.config.precedence import load
from tools.configuration import markdown
from podgpu.model import Snapshot

flags = {"source": ["crystal"], "node_name": ["n"], "crystal_depth": ["7"]}
config = load(flags, {"PODGPU_DIALECT_NOBODY_VOICE": "loud"})
menu = open_pages(config)
snapshot = Snapshot(node="n", taken_at=0.0, interval_seconds=1.0, version="")
(family,) = menu.pages["/metrics/nobody"](snapshot, {})
print(
    json.dumps(
        {
            "choices": OPTIONS["source"].choices,
            "flags": [OPTIONS[name].flag for name in find_command("agent").options],
            "docs": markdown(),
            "opened": open_source(config).seen,
            "dialects": menu.dialects,
            "samples": list(family.samples.values()),
        }
    )
)
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return what podgpu offers with one more folder and one more file."""
    sources, dialects = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("dialects")
    put(sources / "crystal" / "__init__.py", SOURCE)
    put(sources / "crystal" / "options.py", OPTIONS)
    put(dialects / "nobody.py", DIALECT)
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(sources), str(dialects)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def put(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_a_new_source_can_be_chosen(seen: dict[str, object]) -> None:
    assert seen["choices"] == ["nvml", "crystal", "dcgm", "replay", "nvml+dcgm", "simulator"]


def test_it_is_opened_with_its_options_and_where_it_is(seen: dict[str, object]) -> None:
    assert seen["opened"] == [7, "n"]


def test_the_flags_of_both_are_offered(seen: dict[str, object]) -> None:
    flags = seen["flags"]
    assert isinstance(flags, list)
    assert {"--crystal.depth", "--dialect.nobody.voice"} <= set(flags)


def test_the_docs_have_both(seen: dict[str, object]) -> None:
    docs = str(seen["docs"])
    assert "crystal (a crystal ball)" in docs
    assert "| `--crystal.depth` NUMBER | `PODGPU_CRYSTAL_DEPTH` | `crystal.depth` | 3 | How deep to look. |" in docs
    assert "| `--dialect.nobody.voice` low\\|loud |" in docs
    assert "crystal:\n  depth: 3\n" in docs


def test_the_page_of_a_new_dialect_is_served_as_its_option_says(seen: dict[str, object]) -> None:
    dialects = seen["dialects"]
    assert isinstance(dialects, list) and "nobody" in dialects
    assert seen["samples"] == [2.0]
