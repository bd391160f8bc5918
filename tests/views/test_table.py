import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from podgpu.views.table import table
from tests.conftest import Golden
from tests.views.quirks import BUSY, SNAPSHOT


@pytest.mark.parametrize("width", [80, 120])
def test_the_table(golden: Golden, width: int) -> None:
    text = table(SNAPSHOT, width, colour=False)
    assert max(map(cell_len, text.splitlines())) <= width
    golden(f"table-{width}.txt", text)


def test_everybody_on_a_card_stands_below_it() -> None:
    names = [text[:30].strip() for text in table(SNAPSHOT, 80, colour=False).splitlines()]
    assert names[2:9] == [
        "0  H200  56 °C",
        "ml/llama-0/server",
        "team-b/not…f6b5f-x2x7k/jupy",
        "overhead",
        "host processes (1)",
        "other containers (4)",
        "unknown (6)",
    ]


def test_pids_are_for_wide_terminals() -> None:
    assert "424" not in table(SNAPSHOT, 80, colour=False)
    assert "1000, 1001, 1002 +1 more" in table(SNAPSHOT, 120, colour=False)


def test_colour_only_when_asked() -> None:
    assert "\x1b" not in table(SNAPSHOT, 80, colour=False)
    assert "\x1b[31m" in table(SNAPSHOT, 80, colour=True)


def test_a_name_cannot_send_codes_to_the_terminal() -> None:
    evil = replace(SNAPSHOT, node="\x1b]0;title\x07\x9b31m")
    assert not {"\x1b", "\x07", "\x9b"} & set(table(evil, 80, colour=False))


def test_a_demo_says_so_and_no_gpu_too() -> None:
    text = table(replace(SNAPSHOT, demo=True, cards=()), 80, colour=False)
    assert text.startswith("DEMO")
    assert "No GPU found." in text


def test_idle_is_said_of_a_proven_one_only() -> None:
    first = BUSY.tenants[0]
    for idle, word in ((True, "idle"), (None, "unseen"), (False, "measured")):
        card = replace(BUSY, tenants=(replace(first, idle=idle),))
        text = table(replace(SNAPSHOT, cards=(card,)), 80, colour=False)
        (row,) = [row for row in text.splitlines() if "llama-0" in row]
        assert row.split()[-1] == word
        assert ("unseen: it holds a share, but whether" in text) is (idle is None)
