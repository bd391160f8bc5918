"""Short readings of the log at random times, to find tenants that evade the driver's samples.

In the first minute, and then once in two, each shared card's log is open for a cycle, two seconds at least. No tenant
can predict when: the times come from the system's source of secrets. Where the samples of the same seconds leave a
suspicion, the check goes on until it is settled. Where they name a tenant less often than chance allows, the log stays
open and decides, for as long as that lasts. Until then CPU time is a hint: a tenant that computes likely has work
for the card.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from secrets import SystemRandom

from msgspec import Struct, field

from podgpu.ledger.band import BY_SAMPLES
from podgpu.ledger.cycle import Comparison, CycleBooking, CycleBooks, Party
from podgpu.ledger.residency import DOUBT, LEAST_DIFFERENCE, tallies
from podgpu.model import Process, Sampling

CHECK_SECONDS = 2.0  # at least; a reading is never cut short
LONGEST_SECONDS = 30.0  # of a check that leaves a suspicion
EARLY = 0.9  # a cycle may be a little shorter than the interval
FIRST_SECONDS = 60.0  # within these a card that is newly shared is checked
EVERY_SECONDS = 120.0  # with cycles of 5 s the log is open for 2.5 s of each minute
LARGEST_PART = 24  # long cycles are checked less often: the log is open for this part of the time at most
MOST_SAMPLES = 1500.0  # remembered: two hours of checks, or five minutes of an open log
RECENT_SAMPLES = 300.0  # say whether it still goes on: a minute of an open log
FEWEST_SAMPLES = 20.0  # to call a tenant honest
UNKNOWN = "unknown"  # hidden processes and those that ended: no tenant to accuse

_SECRETS = SystemRandom()


class CardCheck(Struct):
    """One card. `due` is when the next check begins, `begun` when this one did, `is_new` if it did in this cycle.

    `evaded` says that the log decides. `suspicious` says that chance is an unlikely, but possible, reason for what the
    samples say about a tenant.
    """

    due: float
    next_period: float
    begun: float | None = None
    is_new: bool = False
    suspicious: bool = False
    evaded: bool = False
    comparisons: deque[Mapping[Party, Comparison]] = field(default_factory=deque)
    verdicts: dict[Party, Sampling] = field(default_factory=dict)


class SamplingChecks:
    """Decides when each card's log is open, and judges tenants. `chance` returns unpredictable numbers from 0 to 1."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = _SECRETS.random,
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._cards: dict[str, CardCheck] = {}

    def begins(self, card: str) -> bool:
        """Whether the log of a shared card is wanted now."""
        now = self._clock()
        state = self._cards.get(card) or self._cards.setdefault(card, self._planned(now))
        if state.begun is None and not state.evaded and now >= state.due:
            state.begun, state.is_new = now, True
        return state.evaded or state.begun is not None

    def decides(self, card: str) -> bool:
        return card in self._cards and self._cards[card].evaded

    def over(self) -> list[str]:
        """End the checks that have lasted long enough, and return their cards: their logs are not wanted any more."""
        now, found = self._clock(), []
        for card, state in self._cards.items():
            enough = LONGEST_SECONDS if state.suspicious else EARLY * CHECK_SECONDS
            if state.is_new:  # to open a log may have taken a while
                state.begun, state.is_new = now, False
            elif state.begun is not None and now - state.begun >= enough:
                self._plan_next(state, now)
                found.append(card)
        return found

    def judge(self, cycle: CycleBooks) -> None:
        """Take one cycle's comparison into account."""
        if not cycle.compared:
            return
        state = self._cards.get(cycle.gpu) or self._cards.setdefault(cycle.gpu, self._planned(self._clock()))
        state.comparisons.append(cycle.compared)
        while len(state.comparisons) > 1 and _samples(state.comparisons) > MOST_SAMPLES:
            state.comparisons.popleft()
        was_evaded = state.evaded
        _judge(state)
        if state.evaded:
            state.begun = None  # it stays open
        elif was_evaded:
            state.begun = self._clock()  # the log is open, and is closed like that of any check

    def mark(self, cycle: CycleBooks) -> None:
        """Enter the verdicts into the bookings."""
        state = self._cards.get(cycle.gpu)
        for party, verdict in state.verdicts.items() if state else ():
            if party in cycle.bookings:
                cycle.bookings[party].sampling = verdict

    def forget(self, cards: Iterable[str]) -> None:
        for card in cards:
            self._cards.pop(card, None)

    def _plan_next(self, state: CardCheck, now: float) -> None:
        lasted = now - (state.begun or now)
        start = max(state.next_period, now)
        length = FIRST_SECONDS if state.suspicious else max(EVERY_SECONDS, LARGEST_PART * lasted)
        state.begun, state.next_period = None, start + length
        state.due = start + self._chance() * (length - CHECK_SECONDS)

    def _planned(self, now: float) -> CardCheck:
        return CardCheck(due=now + self._chance() * (FIRST_SECONDS - CHECK_SECONDS), next_period=now + FIRST_SECONDS)


def _judge(state: CardCheck) -> None:
    """A tenant that was proven to evade does so until the newest samples leave a doubt."""
    whole, recent = tallies(state.comparisons), tallies(_newest(state.comparisons))
    evading = {party for party, verdict in state.verdicts.items() if verdict.evades}
    suspects = {party for party, tally in recent.items() if tally.evidence >= DOUBT and party != UNKNOWN}
    if evading and not evading & suspects:  # it is over: what was before must not prove it again
        state.comparisons.clear()
        state.verdicts.clear()
        state.evaded = state.suspicious = False
        return
    proven = {party for party in suspects if recent[party].is_proof or whole[party].is_proof}
    evades = evading & suspects | proven
    state.evaded, state.suspicious = bool(evades), any(recent[party].differs for party in suspects)
    hidden = whole.get(UNKNOWN)
    # A process that the log hides may be any tenant's.
    sees_all = hidden is None or not hidden.resident > LEAST_DIFFERENCE * hidden.samples
    state.verdicts = {
        party: tally.shown(evades=party in evades)
        for party, tally in recent.items()
        if party in evades or (sees_all and whole[party].samples >= FEWEST_SAMPLES and whole[party].evidence < DOUBT)
    }


def _newest(comparisons: Iterable[Mapping[Party, Comparison]]) -> list[Mapping[Party, Comparison]]:
    """Return the newest ones, up to a minute of samples."""
    found: list[Mapping[Party, Comparison]] = []
    for cycle in reversed(list(comparisons)):
        if found and _samples([*found, cycle]) > RECENT_SAMPLES:
            break
        found.append(cycle)
    return found[::-1]


def _samples(comparisons: Iterable[Mapping[Party, Comparison]]) -> float:
    return sum(next((comparison.samples for comparison in cycle.values()), 0.0) for cycle in comparisons)


Known = tuple[int | None, int]  # when the process started, and its CPU time so far


class ProcessorTime:
    """Reads CPU time, on cards that are divided by samples. `read` returns microseconds so far, None if unknown."""

    def __init__(self, read: Callable[[int], int | None]) -> None:
        self._read = read
        self._last: dict[int, Known] = {}

    def note(self, cycles: Iterable[CycleBooks]) -> None:
        """Add the CPU time since the previous cycle to the bookings."""
        before, self._last = self._last, {}
        for cycle in cycles:
            bookings = [booking for booking in cycle.bookings.values() if booking.running]
            if len(bookings) > 1:
                for booking in bookings:
                    if booking.method in BY_SAMPLES:
                        booking.cpu_us = self._used(booking, before)

    def _used(self, booking: CycleBooking, before: dict[int, Known]) -> int | None:
        """Return the CPU time of its processes; None if it is not known for any."""
        found = [used for process in booking.processes if (used := self._of(process, before)) is not None]
        return sum(found) if found else None

    def _of(self, process: Process, before: dict[int, Known]) -> int | None:
        now = self._read(process.pid)
        if now is None:
            return None
        start = process.holder.start_time if process.holder else None
        self._last[process.pid] = start, now
        last = before.get(process.pid)
        return max(0, now - last[1]) if last and last[0] == start else None
