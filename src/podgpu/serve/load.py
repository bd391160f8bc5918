"""Requests in progress."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Load:
    def __init__(self, max_requests: int) -> None:
        self.stopping = False
        self._max_requests = max_requests
        self._pages = 0
        self._waiting = 0
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def full(self) -> bool:
        return self._pages >= self._max_requests

    @contextmanager
    def page(self) -> Iterator[None]:
        """Count a page while it is made, not while it is sent: a client that does not read it takes no other's turn."""
        self._pages += 1
        try:
            yield
        finally:
            self._pages -= 1

    @property
    def waits_full(self) -> bool:
        return self._waiting >= self._max_requests

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count a page that others must answer first: they may be slow, so it takes no place of other pages."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    @contextmanager
    def request(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a request is always handled in a task
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)

    async def finish(self, seconds: float) -> None:
        """Wait for the requests in progress, but no longer than that; then cancel them."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()
