"""Pages of the past: made once for all, one at a time, and never more of them in memory than there is room for."""

import asyncio
import gc
import gzip
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from podgpu.serve.past_pages import MOST_WAITING, PIECE_BYTES, LineIsFullError, PackedPage, PastPages
from tests.patience import until

PARTS = [b"{", b"a" * 10, b"b" * (PIECE_BYTES + 1), b"", b"}"]


def test_a_page_unpacks_to_the_parts_it_was_made_of() -> None:
    page = PackedPage(iter(PARTS))
    assert gzip.decompress(b"".join(page.gzipped())) == b"".join(page.plain()) == b"".join(PARTS)
    assert page.size == sum(map(len, PARTS))
    assert page.packed_bytes < page.size / 10
    assert page.plain()[1:3] == [b"a" * 10, b"b" * PIECE_BYTES]


class Maker:
    """Counts what is made. Nothing is done before `go` is set."""

    def __init__(self, size: int = 10) -> None:
        self.made: Counter[object] = Counter()
        self.at_once = self.most_at_once = 0
        self.go = threading.Event()
        self._size = size

    def of(self, key: object) -> Callable[[], Callable[[], PackedPage]]:
        def make() -> PackedPage:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.go.wait()
            self.made[key] += 1
            self.at_once -= 1
            return PackedPage([repr(key).encode(), bytes(number % 251 for number in range(self._size))])

        return lambda: make


async def test_a_page_is_made_once_for_all_who_ask_and_one_at_a_time() -> None:
    pages, maker = PastPages(), Maker()
    asked = [asyncio.ensure_future(pages.page(key, maker.of(key))) for key in range(MOST_WAITING) for _ in range(20)]
    await until(lambda: maker.at_once == 1)
    maker.go.set()
    found = await asyncio.gather(*asked)
    assert maker.made == dict.fromkeys(range(MOST_WAITING), 1)
    assert maker.most_at_once == 1
    assert [bytes(b"".join(page.plain()))[:1] for page in found if page] == [b"%d" % (n // 20) for n in range(80)]
    assert await pages.page(2, maker.of(2)) is found[40] and maker.made[2] == 1


async def test_whoever_comes_on_top_is_refused_and_those_in_line_are_not() -> None:
    pages, maker = PastPages(), Maker()
    asked = [asyncio.ensure_future(pages.page(key, maker.of(key))) for key in range(MOST_WAITING)]
    await until(lambda: maker.at_once == 1)
    with pytest.raises(LineIsFullError, match="try again"):
        await pages.page("another", maker.of("another"))
    late = asyncio.ensure_future(pages.page(0, maker.of(0)))
    maker.go.set()
    assert None not in await asyncio.gather(*asked, late)


async def test_clients_that_leave_end_nothing_and_leave_nothing_behind() -> None:
    pages, maker = PastPages(), Maker()
    asked = [asyncio.ensure_future(pages.page(key, maker.of(key))) for key in (1, 1, 2)]
    await until(lambda: maker.at_once == 1)
    for task in asked:
        task.cancel()
    maker.go.set()
    assert await pages.page(1, maker.of(1)) is not None
    assert await pages.page(2, maker.of(2)) is not None
    assert maker.made == {1: 1, 2: 1}


async def test_pages_that_are_kept_go_for_newer_ones_the_least_used_first() -> None:
    maker = Maker()
    maker.go.set()
    size = maker.of(0)()().packed_bytes
    pages = PastPages(most_bytes=3 * size)
    maker.made.clear()
    for key in (0, 1, 2, 0, 3, 0, 1):
        await pages.page(key, maker.of(key))
        gc.collect()
        assert pages.packed_bytes <= 4 * size
    assert maker.made == {0: 1, 1: 2, 2: 1, 3: 1}


async def test_what_clients_have_not_read_counts_too() -> None:
    pages, maker = PastPages(most_bytes=1), Maker()
    maker.go.set()
    unread = await pages.page(0, maker.of(0))
    with pytest.raises(LineIsFullError, match="not yet read"):
        await pages.page(1, maker.of(1))
    assert unread is not None
    del unread
    await until(lambda: pages.packed_bytes == 0)  # the thread that made it has let go of it
    assert await pages.page(1, maker.of(1)) is not None


async def test_a_moment_that_is_forgotten_while_it_waits_is_not_found() -> None:
    pages = PastPages()
    assert await pages.page(0, lambda: None) is None
    maker = Maker()
    maker.go.set()
    assert await pages.page(0, maker.of(0)) is not None  # nothing was kept


async def test_a_page_that_cannot_be_made_fails_for_those_who_wait_and_is_made_anew() -> None:
    pages, maker = PastPages(), Maker()
    maker.go.set()

    def broken() -> PackedPage:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        await pages.page(0, lambda: broken)
    assert await pages.page(0, maker.of(0)) is not None
