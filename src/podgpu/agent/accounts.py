"""The books over time. Counters only grow; a container's live on for a while after it ended."""

from collections.abc import Iterable, Iterator
from operator import itemgetter

import msgspec
from msgspec import Struct

from podgpu.ledger.account import Account, Entry, Party, Sheet
from podgpu.model import ENDED, Balance, Booking, Remainder

GRACE_SECONDS = 300.0  # enough for the last increase to be scraped
MOST_ENDED = 5000


class Totals(Struct):
    busy_us: int = 0
    energy_mj: int = 0
    allocated_us: int = 0
    seen_at: float = 0.0
    last_active_at: float | None = None
    method: str = ""

    def add(self, entry: Entry) -> None:
        self.busy_us += entry.busy_us
        self.energy_mj += entry.energy_mj
        self.allocated_us += entry.allocated_us
        self.method = entry.method or ("reserved" if entry.share else "")


class Accounts:
    """Totals by account, by reason for what has none, and by device."""

    def __init__(self) -> None:
        self._totals: dict[Account, Totals] = {}
        self._rest: dict[tuple[str, str], Totals] = {}
        self._devices: dict[str, Totals] = {}
        self._entries: dict[tuple[str, Party], tuple[Entry, int]] = {}
        self._memory: dict[str, int | None] = {}

    def post(self, sheets: Iterable[tuple[Sheet, int]], now: float, wall: float) -> None:
        """Add one cycle's sheets, each with its elapsed microseconds. Gauges are those of this cycle alone."""
        self._entries.clear()
        self._memory.clear()
        for sheet, elapsed_us in sheets:
            device = self._devices.setdefault(sheet.gpu, Totals())
            device.busy_us += sheet.busy_us
            device.energy_mj += sheet.energy_mj
            self._memory[sheet.gpu] = sheet.memory_bytes
            for party, entry in sheet.entries.items():
                self._entries[sheet.gpu, party] = (entry, elapsed_us)
                self._post(sheet.gpu, party, entry, now, wall)
        self._bury(now)

    def _post(self, gpu: str, party: Party, entry: Entry, now: float, wall: float) -> None:
        if isinstance(party, Account):
            totals = self._totals.setdefault(party, Totals())
        else:
            totals = self._rest.setdefault((gpu, party), Totals())
        totals.add(entry)
        totals.seen_at = now
        if entry.busy_us or entry.sm_ratio:
            totals.last_active_at = wall

    def _bury(self, now: float) -> None:
        """Move the totals of accounts long ended to one line per device, so that the books still add up.

        One whose name lives on under another UID stays: the two share their series, which must not fall.
        """
        alive = {_name(account) for account, totals in self._totals.items() if totals.seen_at >= now}
        ended = sorted(
            (
                (totals.seen_at, account)
                for account, totals in self._totals.items()
                if totals.seen_at < now and _name(account) not in alive
            ),
            key=itemgetter(0),
        )
        for number, (seen_at, account) in enumerate(ended):
            if now - seen_at > GRACE_SECONDS or len(ended) - number > MOST_ENDED:
                totals = self._totals.pop(account)
                grave = self._rest.setdefault((account.gpu, ENDED), Totals())
                grave.busy_us += totals.busy_us
                grave.energy_mj += totals.energy_mj

    def bookings(self) -> Iterator[Booking]:
        for account in sorted(self._totals):
            entry, elapsed_us = self._entries.get((account.gpu, account), (None, 0))
            yield _booking(account, self._totals[account], entry, elapsed_us)

    def remainders(self) -> Iterator[Remainder]:
        for (gpu, reason), totals in sorted(self._rest.items()):
            entry, _ = self._entries.get((gpu, reason), (Entry(), 0))
            yield Remainder(
                gpu=gpu,
                reason=reason,
                memory_bytes=entry.memory_bytes,
                busy_us=totals.busy_us,
                energy_mj=totals.energy_mj,
                processes=entry.processes,
            )

    def balances(self) -> Iterator[Balance]:
        for gpu, totals in sorted(self._devices.items()):
            yield Balance(
                gpu=gpu,
                memory_bytes=self._memory.get(gpu),
                busy_us=totals.busy_us,
                energy_mj=totals.energy_mj,
            )


def _name(account: Account) -> tuple[str, ...]:
    container = account.container
    return account.gpu, account.mig, container.namespace, container.pod, container.container


def _booking(account: Account, totals: Totals, entry: Entry | None, elapsed_us: int) -> Booking:
    """An account without an entry in this cycle has ended, or its device is silent: its counters are all it has."""
    booking = Booking(
        gpu=account.gpu,
        mig=account.mig,
        container=account.container,
        method=totals.method,
        busy_us=totals.busy_us,
        energy_mj=totals.energy_mj,
        allocated_us=totals.allocated_us,
        ended=entry is None,
    )
    if entry is None:
        return booking
    return msgspec.structs.replace(
        booking,
        processes=entry.processes,
        memory_bytes=entry.memory_bytes,
        memory_limit_bytes=entry.memory_limit_bytes,
        sm_ratio=entry.sm_ratio,
        power_watts=entry.energy_mj * 1e3 / elapsed_us if elapsed_us else None,
        allocated_ratio=entry.share,
        last_active_at=totals.last_active_at,
    )
