"""The child process that reads the logs: `python -m podgpu.sources.switches.child`, driven over stdin and stdout.

It ends with its parent, and with it everything that it holds of the driver.
"""

import select
import time
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from podgpu.sources.child import frame, init_child, next_request, sees_node
from podgpu.sources.switches import CardLogAnswer, CloseRequest, WatchAnswer, WatchRequest
from podgpu.sources.switches.driver import CardLog, SwitchLogRefused
from podgpu.sources.switches.slices import SliceBuilder

DRAIN_SECONDS = 1.0  # the log has room for 20 s
REST_SECONDS = 600.0  # until a card that refused is tried again


class CardLogReader:
    """Reads one card's log."""

    def __init__(self, minor: int) -> None:
        self._log = CardLog(minor)
        self._slices = SliceBuilder(self._log.began_ns)

    def drain(self) -> None:
        drained = self._log.drain()
        if drained.records or drained.dropped:
            self._slices.feed(drained.records, drained.dropped)

    def answer(self) -> CardLogAnswer:
        # The time comes first: what happened before it is in the log by the time it is read, after a delay.
        clock = self._log.clock()
        self.drain()
        log = self._slices.cut(clock, self._log.delay_ns)
        counts = {reason: count for reason, count in self._slices.counts.items() if count}
        self._slices.counts.clear()
        return CardLogAnswer(log=log, counts=counts)

    def close(self) -> None:
        self._log.close()


class RefusedCard(Struct, frozen=True):
    answer: CardLogAnswer
    until: float


class CardLogReaders:
    """At most one reader for each card. A card that refused is not tried again soon.

    The log has the PIDs of the node. Without `sees_node` this process has other PIDs, and no log is opened.
    """

    def __init__(self, *, sees_node: bool) -> None:
        self.open: dict[str, CardLogReader] = {}
        self._sees_node = sees_node
        self._refused: dict[str, RefusedCard] = {}

    def watch(self, cards: dict[str, int]) -> WatchAnswer:
        self.close(self.open.keys() - cards.keys())
        return WatchAnswer({uuid: self._answer(uuid, minor) for uuid, minor in cards.items()})

    def close(self, cards: Iterable[str]) -> None:
        for uuid in cards:
            if reader := self.open.pop(uuid, None):
                reader.close()

    def drain(self) -> None:
        for uuid, reader in list(self.open.items()):
            try:
                reader.drain()
            except SwitchLogRefused as refusal:
                self._drop(uuid, refusal)

    def _answer(self, uuid: str, minor: int) -> CardLogAnswer:
        if not self._sees_node:
            return CardLogAnswer(reason="pid_namespace", detail="run the agent with hostPID")
        refused = self._refused.get(uuid)
        if refused and time.monotonic() < refused.until:
            return refused.answer
        try:
            reader = self.open.get(uuid) or self.open.setdefault(uuid, CardLogReader(minor))
            return reader.answer()
        except SwitchLogRefused as refusal:
            return self._drop(uuid, refusal)

    def _drop(self, uuid: str, refusal: SwitchLogRefused) -> CardLogAnswer:
        self.close([uuid])
        answer = CardLogAnswer(reason=refusal.reason, call=refusal.call, detail=refusal.detail)
        self._refused[uuid] = RefusedCard(answer, time.monotonic() + REST_SECONDS)
        return answer


def main() -> None:
    requests, answers = init_child()
    decode = msgspec.msgpack.Decoder(WatchRequest | CloseRequest).decode
    readers = CardLogReaders(sees_node=sees_node())
    while True:
        if not select.select([requests], [], [], DRAIN_SECONDS if readers.open else None)[0]:
            readers.drain()
            continue
        message = next_request(requests)
        if message is None:
            break
        request = decode(message)
        if isinstance(request, CloseRequest):
            readers.close(request.cards)
        else:
            answers.write(frame(readers.watch(request.cards)))
            answers.flush()
    readers.close(list(readers.open))


if __name__ == "__main__":
    main()
