import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from podgpu.views.table import table
from tests.conftest import Golden
from tests.views.quirks import SNAPSHOT


@pytest.mark.parametrize("width", [80, 120])
def test_the_table(golden: Golden, width: int) -> None:
    text = table(SNAPSHOT, width, colour=False)
    assert max(map(cell_len, text.splitlines())) <= width
    golden(f"table-{width}.txt", text)


def test_colour_only_when_asked() -> None:
    assert "\x1b" not in table(SNAPSHOT, 80, colour=False)
    assert "\x1b[31m" in table(SNAPSHOT, 80, colour=True)


def test_a_name_cannot_send_codes_to_the_terminal() -> None:
    evil = replace(SNAPSHOT, node="\x1b]0;title\x07\x9b31m")
    assert not {"\x1b", "\x07", "\x9b"} & set(table(evil, 80, colour=False))


def test_a_demo_says_so_and_no_gpu_too() -> None:
    text = table(replace(SNAPSHOT, demo=True, devices=()), 80, colour=False)
    assert text.startswith("DEMO")
    assert "No GPU found." in text
