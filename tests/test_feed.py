"""The newest of something: completed when a reader first asks for it, and only then."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from podgpu.feed import Feed


class Sentences(Feed[str]):
    def __init__(self, first: str) -> None:
        super().__init__(first)
        self.completions: list[str] = []

    def _completed(self, newest: str) -> str:
        self.completions.append(newest)
        return f"{newest}."


def test_what_nobody_asks_for_is_not_completed() -> None:
    feed = Sentences("one")
    feed.publish("two")
    feed.publish("three")
    assert [feed.newest, feed.newest] == ["three.", "three."]
    assert feed.completions == ["three"]


async def test_who_waits_gets_it_complete() -> None:
    feed = Sentences("one")
    waiting = asyncio.ensure_future(feed.changed(feed.newest))
    await asyncio.sleep(0)
    feed.publish("two")
    assert await waiting is feed.newest
    assert feed.newest == "two."
    assert feed.completions == ["one", "two"]


def test_what_comes_while_a_reader_asks_is_not_lost() -> None:
    class Hurried(Feed[str]):
        def _completed(self, newest: str) -> str:
            if newest == "one":  # as another thread would, in the midst of it
                self.publish("two")
            return f"{newest}."

    feed = Hurried("one")
    assert feed.newest == "one."
    assert feed.newest == "two."


def test_what_several_threads_ask_for_at_once_is_completed_once() -> None:
    class Slow(Sentences):
        def _completed(self, newest: str) -> str:
            time.sleep(0.1)
            return super()._completed(newest)

    feed = Slow("one")
    with ThreadPoolExecutor() as threads:
        read = [threads.submit(lambda: feed.newest) for _ in range(3)]
    assert len({id(reading.result()) for reading in read}) == 1
    assert feed.completions == ["one"]
