import pytest
from msgspec.structs import replace

from podgpu.model import UNKNOWN, Booking, Instance, MigInstance, Problem
from podgpu.views.table import table as written
from podgpu.views.text import NO_LIMIT, width_of
from tests.conftest import Golden
from tests.tree import judged
from tests.views.concluded import table
from tests.views.quirks import BUSY, SNAPSHOT


@pytest.mark.parametrize("width", [80, 120])
def test_the_table(golden: Golden, width: int) -> None:
    text = table(SNAPSHOT, width, colour=False)
    assert max(map(width_of, text.splitlines())) <= width
    golden(f"table-{width}.txt", text)


def test_everybody_on_a_card_stands_below_it() -> None:
    names = [text[:24].strip() for text in table(SNAPSHOT, 80, colour=False).splitlines()]
    assert names[2:10] == [
        "0  H200  56 °C",
        "ml/llama-0/server",
        "team-b/n…2x7k/jupyter",
        "idle",
        "overhead",
        "host processes (1)",
        "other containers (4)",
        "unknown (6)",
    ]


def test_without_a_limit_no_name_is_cut() -> None:
    text = table(SNAPSHOT, NO_LIMIT, colour=False)
    assert "team-b/notebook-7c9d8f6b5f-x2x7k/jupyter" in text and "x" * 200 in text


def test_the_ids_of_an_instance_are_left_out_where_they_are_not_known() -> None:
    """So it is with MIG devices that dcgm-exporter's page names by their UUID alone."""
    mig = MigInstance(uuid="MIG-1", gpu_instance_id=UNKNOWN, compute_instance_id=UNKNOWN, profile="1g.18gb")
    snapshot = replace(SNAPSHOT, cards=(replace(BUSY, instances=(Instance(mig=mig),)),))
    (row,) = (text for text in table(snapshot, 120, colour=False).splitlines() if "1g.18gb" in text)
    assert "-1" not in row


def test_pids_are_for_wide_terminals() -> None:
    assert "424" not in table(SNAPSHOT, 80, colour=False)
    assert "1000, 1001, 1002 +1 more" in table(SNAPSHOT, 120, colour=False)


def test_colour_only_when_asked() -> None:
    assert "\x1b" not in table(SNAPSHOT, 80, colour=False)
    assert "\x1b[31m" in table(SNAPSHOT, 80, colour=True)


def test_a_name_cannot_send_codes_to_the_terminal() -> None:
    evil = replace(SNAPSHOT, node="\x1b]0;title\x07\x9b31m")
    assert not {"\x1b", "\x07", "\x9b"} & set(table(evil, 80, colour=False))


def test_neither_can_the_advice_of_a_problem() -> None:
    found = judged(SNAPSHOT)
    assert found.insight is not None
    evil = Problem(kind="idle", severity="warning", title="t", text="t", next_step="Look.\x1b]0;title\x07")
    snapshot = replace(found, insight=replace(found.insight, problems=(evil,)))
    assert not {"\x1b", "\x07"} & set(written(snapshot, 80, colour=False))


def test_a_demo_says_so_and_no_gpu_too() -> None:
    text = table(replace(SNAPSHOT, demo=True, cards=()), 80, colour=False)
    assert text.startswith("DEMO")
    assert "No GPU found." in text


def test_idle_is_said_of_a_proven_one_only() -> None:
    first = BUSY.tenants[0]
    resting = replace(first.booking, sm_ratio=None, last_active_at=SNAPSHOT.taken_at - 3600)
    for idle, word in ((True, "idle 60m"), (None, "unknown")):
        card = replace(BUSY, tenants=(replace(first, idle=idle, booking=resting),))
        text = table(replace(SNAPSHOT, cards=(card,)), 80, colour=False)
        (row,) = [row for row in text.splitlines() if "llama-0/server" in row]
        assert row[70:].split() == word.split()
        assert ("unknown: whether it uses what it holds" in text) is (idle is None)


def utils(text: str) -> dict[str, str]:
    """The column of utilization at a width of 80 with bounds, by the first word of the row."""
    return {row.split()[0]: row[33:46].strip() for row in text.splitlines()[2:-2]}


def test_on_a_card_with_a_doubt_all_numbers_are_of_the_last_minute() -> None:
    found = utils(table(replace(SNAPSHOT, cards=(BUSY,)), 80, colour=False))
    assert (found["0"], found["ml/llama-0/server"], found["host"]) == ("94%", "78% (~61–90)", "4% (~1–10)")


def test_a_tenant_that_came_within_the_minute_makes_them_those_of_the_previous_reading() -> None:
    first, second = BUSY.tenants
    new = replace(second, booking=replace(second.booking, band=None))
    text = table(replace(SNAPSHOT, cards=(replace(BUSY, tenants=(first, new)),)), 80, colour=False)
    rows = [row for row in text.splitlines() if "llama-0" in row or "H200" in row]
    assert ["97%" in rows[0], "80%" in rows[1], "(" in rows[1]] == [True, True, False]


def test_since_when_a_holder_is_idle() -> None:
    booking = replace(BUSY.tenants[0].booking, last_active_at=None)
    idler = replace(BUSY.tenants[0], idle=True, held_since=SNAPSHOT.taken_at - 7300, booking=booking)
    text = table(replace(SNAPSHOT, cards=(replace(BUSY, tenants=(idler,)),)), 80, colour=False)
    (row,) = [row for row in text.splitlines() if "llama-0/server" in row]
    assert row.endswith("  idle 2h")


def test_a_share_that_is_not_known_is_a_dash() -> None:
    unsized = replace(BUSY.tenants[0], booking=Booking(bookable=False))
    text = table(replace(SNAPSHOT, cards=(replace(BUSY, tenants=(unsized,)),)), 80, colour=False)
    (row,) = [row for row in text.splitlines() if "llama-0" in row]
    assert row.split()[1:] == ["-", "-", "-", "-", "unknown"]
