"""The child process that reads the logs, driven over stdin and stdout.

It ends with its parent, and with it everything that it holds of the driver. It passes on records as they are. What it
imports is most of the memory that it takes, so it imports neither msgspec nor `typing`.

A request is text: `watch`, and for each card a line with the minor number of its node and its UUID; or `shut`, and for
each card a line with its UUID. Only the first is answered, in MessagePack: a list of `CardRecords`, as in `slices`.
"""

import select
import time

from podgpu.sources.child import frame, init_child, next_request, sees_node
from podgpu.sources.switches import layout
from podgpu.sources.switches.driver import CardLog, SwitchLogRefused

DRAIN_SECONDS = 1.0  # the log has room for 20 s
REST_SECONDS = 600.0  # until a card that refused is tried again
MOST_BYTES = 8 * layout.RECORDS * layout.RECORD_BYTES  # if records are not taken for so long, they are lost

Answer = list[object]  # the fields of CardRecords


class CardLogReader:
    """Reads one card's log."""

    def __init__(self, minor: int) -> None:
        self._log = CardLog(minor)
        self._drained: list[list[object]] = []  # records as bytes, and how many the driver dropped after them
        self._size = 0

    def drain(self) -> None:
        records, dropped = self._log.drain()
        if records or dropped:
            self._size += len(records)
            self._drained.append([records, dropped])
        if self._size > MOST_BYTES:
            self._drained, self._size = [[b"", self._size // layout.RECORD_BYTES]], 0

    def answer(self, uuid: str = "") -> Answer:
        # The time comes first: what happened before it is in the log by the time it is read, after a delay.
        clock = list(self._log.clock())
        self.drain()
        drained, self._drained, self._size = self._drained, [], 0
        return [uuid, "", "", "", self._log.began_ns, self._log.delay_ns, clock, drained]

    def close(self) -> None:
        self._log.close()


class CardLogReaders:
    """At most one reader for each card. A card that refused is not tried again soon.

    The log has the PIDs of the node. Without `sees_node` this process has other PIDs, and no log is opened.
    """

    def __init__(self, *, sees_node: bool) -> None:
        self.open: dict[str, CardLogReader] = {}
        self._sees_node = sees_node
        self._refused: dict[str, tuple[float, Answer]] = {}  # each until when

    def watch(self, cards: dict[str, int]) -> list[Answer]:
        self.close([uuid for uuid in self.open if uuid not in cards])
        return [self._answer(uuid, minor) for uuid, minor in cards.items()]

    def close(self, cards: list[str]) -> None:
        for uuid in cards:
            if reader := self.open.pop(uuid, None):
                reader.close()

    def drain(self) -> None:
        for uuid, reader in list(self.open.items()):
            try:
                reader.drain()
            except SwitchLogRefused as refusal:
                self._drop(uuid, refusal)

    def _answer(self, uuid: str, minor: int) -> Answer:
        if not self._sees_node:
            return [uuid, "pid_namespace", "", "run the agent with hostPID"]
        until, answer = self._refused.get(uuid, (0.0, []))
        if time.monotonic() < until:
            return answer
        try:
            reader = self.open.get(uuid) or self.open.setdefault(uuid, CardLogReader(minor))
            return reader.answer(uuid)
        except SwitchLogRefused as refusal:
            return self._drop(uuid, refusal)

    def _drop(self, uuid: str, refusal: SwitchLogRefused) -> Answer:
        self.close([uuid])
        answer: Answer = [uuid, refusal.reason, refusal.call, refusal.detail]
        self._refused[uuid] = time.monotonic() + REST_SECONDS, answer
        return answer


def packed(value: object) -> bytes:
    """Write MessagePack, always in its widest form."""
    if isinstance(value, int):
        return b"\xd3" + value.to_bytes(8, "big", signed=True)
    if isinstance(value, list):
        return b"\xdd" + len(value).to_bytes(4, "big") + b"".join(map(packed, value))
    kind, data = (b"\xc6", value) if isinstance(value, bytes) else (b"\xdb", str(value).encode())
    return kind + len(data).to_bytes(4, "big") + data


def main() -> None:
    requests, answers = init_child()
    readers = CardLogReaders(sees_node=sees_node())
    while True:
        if not select.select([requests], [], [], DRAIN_SECONDS if readers.open else None)[0]:
            readers.drain()
            continue
        message = next_request(requests)
        if message is None:
            break
        order, *cards = message.decode().split("\n")
        if order == "shut":
            readers.close(cards)
        else:
            minors = {uuid: int(minor) for minor, _, uuid in (card.partition(" ") for card in cards)}
            answers.write(frame(packed(readers.watch(minors))))
            answers.flush()
    readers.close(list(readers.open))
