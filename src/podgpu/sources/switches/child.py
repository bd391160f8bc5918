"""The child process that reads the logs, driven over stdin and stdout.

It ends with its parent, and with it everything that it holds of the driver. It passes on records as they are. What it
imports is most of the memory that it takes, so it imports neither msgspec nor `typing`.

A request is text: `watch` or `check`, and for each card a line with the minor number of its node and its UUID. With
`watch` the logs of these cards are read from now on, with `check` at random moments. The answer is MessagePack: a list
of `CardRecords`, as in `slices`; with `check`, one for each moment since the previous answer.
"""

import os
import select
import time

from podgpu.sources.child import frame, init_child, next_request, sees_node
from podgpu.sources.switches import layout
from podgpu.sources.switches.driver import CardLog, SwitchLogRefused

DRAIN_SECONDS = 1.0  # the log has room for 20 s
REST_SECONDS = 600.0  # until a card that refused is tried again
CHECK_SECONDS = 0.3  # of the log that each check is about: longer than a tenant's period at most frame rates
LONGEST_CHECK_SECONDS = 1.0  # of a check in which nothing is switched: the next switch says who was there
LARGEST_PART = 12  # the log is open for this part of the time at most
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

    @property
    def delay_seconds(self) -> float:
        """Until a switch is certainly in the log."""
        return self._log.delay_ns / 1e9

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was read yet that is not taken."""
        return not self._drained

    def close(self) -> None:
        self._log.close()


class RefusedLogs:
    """Cards that refused: they are not tried again soon."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, Answer]] = {}

    def note(self, uuid: str, refusal: SwitchLogRefused) -> Answer:
        answer: Answer = [uuid, refusal.reason, refusal.call, refusal.detail]
        self._until[uuid] = time.monotonic() + REST_SECONDS, answer
        return answer

    def of(self, uuid: str) -> Answer | None:
        until, answer = self._until.get(uuid, (0.0, None))
        return answer if time.monotonic() < until else None


class CardLogReaders:
    """At most one reader for each card, open for as long as it is asked for."""

    def __init__(self, refusals: RefusedLogs) -> None:
        self.open: dict[str, CardLogReader] = {}
        self._refusals = refusals

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
        if refused := self._refusals.of(uuid):
            return refused
        try:
            reader = self.open.get(uuid) or self.open.setdefault(uuid, CardLogReader(minor))
            return reader.answer(uuid)
        except SwitchLogRefused as refusal:
            return self._drop(uuid, refusal)

    def _drop(self, uuid: str, refusal: SwitchLogRefused) -> Answer:
        self.close([uuid])
        return self._refusals.note(uuid, refusal)


class SpotChecker:
    """Opens one card's log at a random moment of each stretch of time, for a moment. No tenant can know when.

    A stretch is twelve times as long as the log was open in the one before. A check is about its first part: later it
    only waits for what is not in the log yet, and for a switch, if there was none.
    """

    def __init__(self, uuid: str, minor: int, refusals: RefusedLogs) -> None:
        self._uuid = uuid
        self._minor = minor
        self._refusals = refusals
        self._reader: CardLogReader | None = None
        self._opened_at = 0.0
        self._ends_at = time.monotonic()  # of the stretch
        self._length = 0.0
        self.due = 0.0
        self.found: list[Answer] = []
        self._plan(LARGEST_PART * 2 * CHECK_SECONDS)

    def step(self) -> None:
        """Do what is due."""
        if time.monotonic() < self.due:
            return
        try:
            if self._reader is None:
                self._open()
            else:
                self._read(self._reader)
        except SwitchLogRefused as refusal:
            self.close()
            self.found.append(self._refusals.note(self._uuid, refusal))
            self._plan(REST_SECONDS)

    def close(self) -> None:
        if self._reader:
            self._reader.close()
            self._reader = None

    def _open(self) -> None:
        self._reader = CardLogReader(self._minor)
        self._opened_at = time.monotonic()
        self.due = self._opened_at + self._seconds(self._reader) + self._reader.delay_seconds

    def _read(self, reader: CardLogReader) -> None:
        reader.drain()
        longest = max(LONGEST_CHECK_SECONDS, self.due - self._opened_at)
        if reader.is_quiet and time.monotonic() < self._opened_at + longest:
            self.due = self._opened_at + longest
            return
        seconds = self._seconds(reader)
        self.found.append([*reader.answer(self._uuid), round(self._length * 1e9), round(seconds * 1e9)])
        self.close()
        self._plan(LARGEST_PART * (time.monotonic() - self._opened_at))

    def _seconds(self, reader: CardLogReader) -> float:
        """A driver that logs slowly is better read for longer, and less often."""
        return CHECK_SECONDS if reader.delay_seconds < LONGEST_CHECK_SECONDS else reader.delay_seconds

    def _plan(self, length: float) -> None:
        begin = max(self._ends_at, time.monotonic())
        self._ends_at, self._length = begin + length, length
        self.due = begin + int.from_bytes(os.urandom(7), "big") / 2**56 * length


class SpotCheckers:
    """One for each card that is checked."""

    def __init__(self, refusals: RefusedLogs) -> None:
        self.cards: dict[str, SpotChecker] = {}
        self._refusals = refusals

    def check(self, cards: dict[str, int]) -> list[Answer]:
        for uuid in [uuid for uuid in self.cards if uuid not in cards]:
            self.cards.pop(uuid).close()
        found: list[Answer] = []
        for uuid, minor in cards.items():
            checker = self.cards.get(uuid) or self.cards.setdefault(uuid, SpotChecker(uuid, minor, self._refusals))
            answers, checker.found = checker.found, []
            refused = self._refusals.of(uuid)
            found += [refused] if refused and not answers else answers
        return found

    def step(self) -> None:
        for checker in self.cards.values():
            checker.step()

    @property
    def seconds_left(self) -> float | None:
        """Until something is due; None if nothing is."""
        due = min((checker.due for checker in self.cards.values()), default=None)
        return None if due is None else max(0.0, due - time.monotonic())


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
    refusals, sees = RefusedLogs(), sees_node()
    readers, checkers = CardLogReaders(refusals), SpotCheckers(refusals)
    while True:
        patience = DRAIN_SECONDS if readers.open else checkers.seconds_left
        if not select.select([requests], [], [], patience)[0]:
            readers.drain()
            checkers.step()
            continue
        message = next_request(requests)
        if message is None:
            break
        order, *lines = message.decode().split("\n")
        cards = {uuid: int(minor) for minor, _, uuid in (line.partition(" ") for line in lines)}
        if not sees:
            # The log has the PIDs of the node, and this process has others: no log is opened.
            found: list[Answer] = [[uuid, "pid_namespace", "", "run the agent with hostPID"] for uuid in cards]
        else:
            found = readers.watch(cards if order == "watch" else {})
            found += checkers.check(cards if order == "check" else {})
        answers.write(frame(packed(found)))
        answers.flush()
    readers.close(list(readers.open))
    checkers.check({})
