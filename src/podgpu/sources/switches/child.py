"""The child process that reads the logs: `python -m podgpu.sources.switches.child`, driven over stdin and stdout.

It ends with its parent, and with it everything that it holds of the driver.
"""

import select
import time
from collections.abc import Iterable
from typing import BinaryIO

from msgspec import Struct

from podgpu.sources import pipe
from podgpu.sources.child import sees_node, settle
from podgpu.sources.switches import messages
from podgpu.sources.switches.driver import CardLog, SwitchLogRefused
from podgpu.sources.switches.slices import SliceBuilder

DRAIN_SECONDS = 1.0  # the log has room for 20 s
REST_SECONDS = 600.0  # until a card that refused is asked again


class CardLogReader:
    """Reads one card's log."""

    def __init__(self, minor: int) -> None:
        self._log = CardLog(minor)
        self._tape = SliceBuilder(self._log.began_ns)

    def drain(self) -> None:
        drained = self._log.drain()
        if drained.records or drained.dropped:
            self._tape.feed(drained.records, drained.dropped)

    def answer(self) -> messages.CardLogAnswer:
        # The time comes first: what happened before it is in the log by the time it is read, after a delay.
        clock = self._log.clock()
        self.drain()
        log = self._tape.cut(clock, self._log.delay_ns)
        counts = {reason: count for reason, count in self._tape.counts.items() if count}
        self._tape.counts.clear()
        return messages.CardLogAnswer(log=log, counts=counts)

    def close(self) -> None:
        self._log.close()


class RefusedCard(Struct, frozen=True):
    answer: messages.CardLogAnswer
    until: float


class CardLogReaders:
    """At most one reader for each card. What a card refused is not asked again soon."""

    def __init__(self) -> None:
        self._open: dict[str, CardLogReader] = {}
        self._refused: dict[str, RefusedCard] = {}

    def watch(self, cards: dict[str, int]) -> messages.WatchAnswer:
        self.shut(self._open.keys() - cards.keys())
        return messages.WatchAnswer({uuid: self._answer(uuid, minor) for uuid, minor in cards.items()})

    def shut(self, cards: Iterable[str]) -> None:
        for uuid in cards:
            if reader := self._open.pop(uuid, None):
                reader.close()

    def drain(self) -> None:
        for uuid, reader in list(self._open.items()):
            try:
                reader.drain()
            except SwitchLogRefused as refusal:
                self._drop(uuid, refusal)

    def close(self) -> None:
        self.watch({})

    @property
    def are_open(self) -> bool:
        return bool(self._open)

    def _answer(self, uuid: str, minor: int) -> messages.CardLogAnswer:
        rests = self._refused.get(uuid)
        if rests and time.monotonic() < rests.until:
            return rests.answer
        try:
            reader = self._open.get(uuid) or self._open.setdefault(uuid, CardLogReader(minor))
            return reader.answer()
        except SwitchLogRefused as refusal:
            return self._drop(uuid, refusal)

    def _drop(self, uuid: str, refusal: SwitchLogRefused) -> messages.CardLogAnswer:
        self.shut([uuid])
        answer = messages.CardLogAnswer(reason=refusal.reason, call=refusal.call, detail=refusal.detail)
        self._refused[uuid] = RefusedCard(answer, time.monotonic() + REST_SECONDS)
        return answer


class Blind:
    """Stands in where the log would name strangers: it has the PIDs of the node, and this process another view."""

    are_open = False

    def watch(self, cards: dict[str, int]) -> messages.WatchAnswer:
        answer = messages.CardLogAnswer(reason="pid_namespace", detail="run the agent with hostPID")
        return messages.WatchAnswer(dict.fromkeys(cards, answer))

    def shut(self, cards: Iterable[str]) -> None: ...
    def drain(self) -> None: ...
    def close(self) -> None: ...


def serve(readers: CardLogReaders | Blind, requests: BinaryIO, answers: BinaryIO) -> None:
    while True:
        is_asked, _, _ = select.select([requests], [], [], DRAIN_SECONDS if readers.are_open else None)
        if not is_asked:
            readers.drain()
            continue
        message = pipe.next_request(requests)
        if message is None:
            return
        request = messages.decode_request(message)
        if isinstance(request, messages.CloseRequest):
            readers.shut(request.cards)
            continue
        answers.write(pipe.frame(readers.watch(request.cards)))
        answers.flush()


def main() -> None:
    requests, answers = settle()
    readers = CardLogReaders() if sees_node() else Blind()
    serve(readers, requests, answers)
    readers.close()


if __name__ == "__main__":
    main()
