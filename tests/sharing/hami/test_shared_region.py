"""A tenant writes the bytes: they are read rightly, or refused."""

import gzip
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podgpu.sharing.hami.cache_files import BadRegion, Region, parse
from tests.sharing.hami.cachefile import GIB, LAYOUTS, ONE, TWO, CacheFile, Process

EACH_LAYOUT = pytest.mark.parametrize("layout", LAYOUTS)
LIVE = Path(__file__).parent / "live" / "live-v1.2-torch-2-processes.cache.gz"
WORK = Process(pid=70, cards=[(1, 2, 3, 6, 40), (10, 20, 30, 60, 7)])


def parsed(data: bytes) -> Region:
    return parse(len(data), lambda offset, length: data[offset : offset + length])


def reason(data: bytes) -> str:
    with pytest.raises(BadRegion) as refused:
        parsed(data)
    return refused.value.reason


@EACH_LAYOUT
def test_a_file_tells_cards_limits_and_processes(layout: str) -> None:
    file = CacheFile([ONE, TWO], [8 * GIB, 0], [30, 0], [WORK, Process(71, [(0, 0, 0, 5, 1)] * 2)])
    region = parsed(file.bytes_of(layout))
    assert [(card.uuid, card.memory, card.cores) for card in region.cards] == [
        (ONE, 8 * GIB, 30),
        (TWO, None, None),
    ]
    assert [slot.pid for slot in region.slots] == [70, 71]
    first, second = region.slots[0].uses
    has_activity = layout != "first"
    assert (first.context, first.module, first.buffer, first.total) == (1, 2, 3, 6)
    assert (second.context, second.module, second.buffer, second.total) == (10, 20, 30, 60)
    assert (first.sm, second.sm) == ((40, 7) if has_activity else (None, None))
    assert region.last_kernel_at == (None if layout in ("first", "old") else 1_760_000_000.0)


@EACH_LAYOUT
def test_slots_that_are_free_or_beyond_the_number_in_use_are_skipped(layout: str) -> None:
    free = Process(72, WORK.cards, status=0)
    left_over = Process(73, WORK.cards)
    region = parsed(CacheFile(processes=[free, WORK, left_over], process_count=2).bytes_of(layout))
    assert [slot.pid for slot in region.slots] == [70]


@EACH_LAYOUT
@pytest.mark.parametrize(
    ("file", "why"),
    [
        (CacheFile(magic=0), "magic"),
        (CacheFile(magic=-1), "magic"),
        (CacheFile(count=0), "devices"),
        (CacheFile(count=17), "devices"),
        (CacheFile(count=(1 << 64) - 1), "devices"),
        (CacheFile(process_count=-1), "processes"),
        (CacheFile(process_count=257), "processes"),
        (CacheFile(process_count=(1 << 31) - 1), "processes"),
        (CacheFile([b"G" * 96]), "uuid"),
        (CacheFile([ONE.encode().ljust(96, b"x")]), "uuid"),
        (CacheFile([f"{ONE}\n"]), "uuid"),
        (CacheFile([ONE.lower()]), "uuid"),
        (CacheFile(["../../etc/passwd"]), "uuid"),
        (CacheFile([b"\xff" * 40]), "uuid"),
        (CacheFile([ONE, ""]), "uuid"),
        (CacheFile([ONE, ONE]), "uuid"),
    ],
)
def test_what_makes_no_sense_is_refused(file: CacheFile, why: str, layout: str) -> None:
    assert reason(file.bytes_of(layout)) == why


@pytest.mark.parametrize("version", [(0, 0), (1, 0), (1, 3), (2, 1), (-1, 1)])
@pytest.mark.parametrize("layout", ["1.1", "2.8.1", "1.2"])
def test_a_version_that_is_not_known_is_refused(layout: str, version: tuple[int, int]) -> None:
    assert reason(CacheFile(version=version).bytes_of(layout)) == "version"


def test_the_odd_layout_has_no_second_minor_version() -> None:
    assert reason(CacheFile(version=(1, 2)).bytes_of("2.8.1")) == "version"


def test_the_file_of_a_real_card_is_read() -> None:
    """Two processes of PyTorch under HAMi-core on an H200; outside a container it does not find their host PIDs."""
    region = parsed(gzip.decompress(LIVE.read_bytes()))
    (card,) = region.cards
    assert (card.uuid, card.memory, card.cores) == (
        "GPU-13c3be75-f6f8-a3c7-f306-695c82e4d1a1",
        20_000 << 20,
        30,
    )
    assert [slot.pid for slot in region.slots] == [0, 0]
    assert region.last_kernel_at == 1_794_740_477.0


SIZES = [layout.size + 1 for layout in LAYOUTS.values()]


@pytest.mark.parametrize("size", [0, 1, *({size + by for size in SIZES for by in (-1, 1)} - {*SIZES})])
def test_a_size_that_is_not_known_is_refused_unread(size: int) -> None:
    def read(offset: int, length: int) -> bytes:
        raise AssertionError

    with pytest.raises(BadRegion, match="size"):
        parse(size, read)


@EACH_LAYOUT
@pytest.mark.parametrize("left", [0, 1, 1000, 100_000, 800_000])
def test_a_file_that_shrinks_under_the_reader_is_refused(layout: str, left: int) -> None:
    data = CacheFile(processes=[WORK]).bytes_of(layout)
    with pytest.raises(BadRegion, match="truncated"):
        parse(len(data), lambda offset, length: data[:left][offset : offset + length])


@EACH_LAYOUT
def test_limits_are_what_a_card_can_have(layout: str) -> None:
    file = CacheFile([ONE, TWO], [(1 << 44) + 1, 1 << 63], [101, (1 << 64) - 1])
    assert [(card.memory, card.cores) for card in parsed(file.bytes_of(layout)).cards] == [(None, None)] * 2


@EACH_LAYOUT
@pytest.mark.parametrize("place", range(4))
def test_a_process_with_more_memory_than_a_card_can_have_is_refused_alone(layout: str, place: int) -> None:
    absurd = [0, 0, 0, 0, 0]
    absurd[place] = (1 << 44) + 1
    context, module, buffer, total, sm = absurd
    liar = Process(80, [(context, module, buffer, total, sm)])
    region = parsed(CacheFile(processes=[liar, WORK]).bytes_of(layout))
    assert ([slot.pid for slot in region.slots], region.refused) == ([70], 1)


@pytest.mark.parametrize("percent", [101, 255, (1 << 64) - 1])
def test_more_than_all_of_the_multiprocessors_is_all_of_them(percent: int) -> None:
    region = parsed(CacheFile(processes=[Process(70, [(0, 0, 0, 0, percent)])]).new())
    assert region.slots[0].uses[0].sm == 100


@pytest.mark.parametrize("seconds", [0, 1 << 33, (1 << 64) - 1])
def test_a_time_that_is_none_is_absent(seconds: int) -> None:
    assert parsed(CacheFile(last_kernel=seconds).new()).last_kernel_at is None


EDITS = st.lists(st.tuples(st.integers(0, 2_100_000) | st.integers(0, 6_000), st.binary(max_size=40)))


@settings(max_examples=200)
@given(
    layout=st.sampled_from(list(LAYOUTS)),
    edits=EDITS,
    length=st.none() | st.integers(0, 2_008_985),
    processes=st.integers(-3, 300),
)
@example(layout="1.1", edits=[(56, b"\xff" * 8)], length=None, processes=1)
def test_no_bytes_break_the_parser(
    layout: str, edits: list[tuple[int, bytes]], length: int | None, processes: int
) -> None:
    file = CacheFile([ONE, TWO], processes=[WORK], process_count=processes)
    data = bytearray(file.bytes_of(layout))
    size = len(data)
    for offset, patch in edits:
        data[offset : offset + len(patch)] = patch
    readable = bytes(data[:length])
    try:
        region = parse(size, lambda offset, count: readable[offset : offset + count])
    except BadRegion:
        return
    assert 1 <= len(region.cards) <= 16
    assert all(card.uuid.startswith("GPU-") and len(card.uuid) == 40 for card in region.cards)
    assert len(region.slots) + region.refused <= 256
    for slot in region.slots:
        assert len(slot.uses) == len(region.cards)
        assert all(0 <= use.total <= 1 << 44 and 0 <= (use.sm or 0) <= 100 for use in slot.uses)


@given(st.sampled_from(SIZES) | st.integers(-1, 3_000_000), st.binary(max_size=5000))
def test_no_reader_breaks_the_parser(size: int, data: bytes) -> None:
    """Even one that gives more than it was asked for."""
    with pytest.raises(BadRegion):
        parse(size, lambda _offset, _length: data)
