"""The newest events of one subject, written once, and those who read them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from secrets import token_hex
from time import monotonic
from typing import Generic, NamedTuple, Protocol

from podgpu.serve.events import message
from podgpu.serve.events.message import Message
from podgpu.serve.events.subject import State, Subject
from podgpu.supervise import Supervisor

HEARTBEAT_SECONDS = 15.0
LINGER_SECONDS = 60.0  # so that a page that is reloaded can go on where it was
KEPT = 32
LARGEST_PART = 10
# Woken at a time; in between, others get their turn: a scrape must not wait for hundreds of streams.
BATCH = 8


class Mark(NamedTuple):
    """An event's place. Numbers of another epoch mean nothing."""

    epoch: str
    number: int

    @classmethod
    def of(cls, text: str) -> "Mark":
        epoch, _, number = text.partition("-")
        return cls(epoch, int(number) if number.isascii() and number.isdigit() and len(number) < 16 else -1)

    def __str__(self) -> str:
        return f"{self.epoch}-{self.number}"


class Chronicle(Protocol):
    """The journal, as a reader knows it."""

    @property
    def mark(self) -> Mark: ...

    def enter(self, reader: "Reader") -> None: ...

    def leave(self, reader: "Reader") -> None: ...

    async def since(self, mark: Mark) -> tuple[Mark, Iterable[Message]]: ...


class Journal(Generic[State]):
    """Follows the subject while somebody reads. At most `max_streams` may read at a time, a tenth from one address."""

    def __init__(
        self, subject: Subject[State], max_streams: int, supervisor: Supervisor | None = None
    ) -> None:
        self._supervisor = supervisor or Supervisor()
        self._subject = subject
        self._max_streams = max_streams
        self._readers: set[Reader] = set()
        self._kept: deque[Message] = deque(maxlen=KEPT)
        self._writer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._begin()

    def has_place(self, address: str) -> bool:
        """Whether one more may read from that address."""
        of_it = sum(reader.address == address for reader in self._readers)
        return len(self._readers) < self._max_streams and of_it < max(1, self._max_streams // LARGEST_PART)

    @property
    def mark(self) -> Mark:
        return self._mark

    async def reader(self, last_id: str, *, address: str = "", packed: bool) -> "Reader":
        """Open a stream that goes on after the event of that id, if it is still known."""
        if self._writer is None or self._writer.done():
            self._begin()
        await self._document()  # raises here, where it becomes an answer
        return Reader(self, Mark.of(last_id), address=address, packed=packed)

    def enter(self, reader: "Reader") -> None:
        self._readers.add(reader)
        if self._writer is None or self._writer.done():
            self._writer = self._supervisor.supervise("events", self._write)

    def leave(self, reader: "Reader") -> None:
        self._readers.discard(reader)

    async def since(self, mark: Mark) -> tuple[Mark, Iterable[Message]]:
        """Return the newest event's place, and what comes after that one.

        That is the changes, or the whole document if they are not known any more, or longer.
        """
        behind = self._mark.number - mark.number
        if mark.epoch == self._mark.epoch and mark.number >= 0 and 0 <= behind <= len(self._kept):
            missed = list(self._kept)[len(self._kept) - behind :]
            if behind < 2 or sum(one.size for one in missed) <= self._full_size:
                return self._mark, missed
        return await self._document()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.cancel()
        self.dismiss()

    def _begin(self) -> None:
        """Begin anew: nobody can go on from what was."""
        self._mark = Mark(token_hex(4), 0)
        self._state = self._subject.state
        self._full: tuple[Mark, Message] | None = None
        self._full_size = 0
        self._kept.clear()

    async def _write(self) -> None:
        read_at = monotonic()
        while self._readers or monotonic() - read_at < LINGER_SECONDS:
            if self._readers:
                read_at = monotonic()
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    state = await self._subject.changed(self._state)
                await self._note(state)
            except TimeoutError:
                pass  # waking them without news makes a heartbeat
            except Exception:  # its readers have to come again, and then begin with the whole document
                self.dismiss()
                self._begin()
                raise
            await self._wake()
        self._kept.clear()
        self._subject.forget()

    async def _note(self, state: State) -> None:
        async with self._writing:
            parts = await self._subject.change(self._state, state)
        self._mark = self._mark._replace(number=self._mark.number + 1)
        self._state, self._full = state, None
        self._kept.append(message.events(message.CHANGE, str(self._mark), parts))

    async def _wake(self) -> None:
        for place, reader in enumerate(list(self._readers), 1):
            reader.wake()
            if place % BATCH == 0:
                await asyncio.sleep(0)

    async def _document(self) -> tuple[Mark, tuple[Message, ...]]:
        """Write the document of now, once for all who need it."""
        async with self._writing:
            if self._full is None:
                mark, state = self._mark, self._state
                whole = message.events(message.FULL, str(mark), [await self._subject.document(state)])
                self._full_size = whole.size
                if mark != self._mark:  # it changed meanwhile, and the change comes next
                    return mark, (whole,)
                self._full = mark, whole
            mark, whole = self._full
            return mark, (whole,)

    def dismiss(self) -> None:
        """End all streams. Who may still read comes again, and goes on where it was."""
        for reader in list(self._readers):
            reader.close()


class Reader:
    """One stream, counted inside its `with`. Nobody waits for it: who is slow misses what was in between."""

    def __init__(self, journal: Chronicle, mark: Mark, *, address: str = "", packed: bool) -> None:
        self.address = address
        self.packed = packed
        self._journal = journal
        self._mark = mark
        self._is_open = True
        self._awaited: asyncio.Future[None] | None = None

    def __enter__(self) -> AsyncIterator[bytes]:
        self._journal.enter(self)
        return self._pieces()

    def __exit__(self, *_: object) -> None:
        self._journal.leave(self)

    def close(self) -> None:
        self._is_open = False
        self.wake()

    def wake(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    async def _pieces(self) -> AsyncIterator[bytes]:
        yield self._form(message.OPENING)
        while self._is_open:
            self._mark, news = await self._journal.since(self._mark)
            for one in news:
                yield self._form(one)
            if not await self._has_news() and self._is_open:
                yield self._form(message.HEARTBEAT)

    async def _has_news(self) -> bool:
        """Wait to be woken, unless there is something already."""
        if self._is_open and self._journal.mark == self._mark:
            self._awaited = asyncio.get_running_loop().create_future()
            await self._awaited
        return self._journal.mark != self._mark

    def _form(self, one: Message) -> bytes:
        return one.packed if self.packed else one.plain
