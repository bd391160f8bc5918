"""The examples of docs/library.md, with their documented output."""

import re
from pathlib import Path
from typing import NamedTuple

DOCUMENT = Path(__file__).parents[2] / "docs" / "library.md"
_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    code: str
    output: str | None


def examples() -> list[Example]:
    blocks = [(found["kind"], found["text"]) for found in _BLOCK.finditer(DOCUMENT.read_text())]
    following = [*blocks[1:], ("", "")]
    return [
        Example(code, text if after == "text" else None)
        for (kind, code), (after, text) in zip(blocks, following, strict=True)
        if kind == "python"
    ]
