"""The books over time. Counters only grow; a container's live on for a while after it ended."""

from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter

import msgspec
from msgspec import Struct

from podgpu.agent.attendance import MOST_CARDS, Attendance
from podgpu.ledger.account import Account, Entry, Party, Sheet
from podgpu.model import ENDED, UNATTRIBUTED, Balance, Booking, Remainder

GRACE_SECONDS = 300.0  # enough for the last increase to be scraped
MOST_ENDED = 5000


class Totals(Struct):
    busy_us: int = 0
    energy_mj: int = 0
    allocated_us: int = 0
    seen_at: float = 0.0
    last_active_at: float | None = None
    method: str = ""
    power_watts: float | None = None

    def note_power(self, entry: Entry, energy_us: int | None) -> None:
        if energy_us is None:
            self.power_watts = None
        elif energy_us:
            self.power_watts = entry.energy_mj * 1e3 / energy_us

    def add(self, entry: Entry) -> None:
        self.busy_us += entry.busy_us
        self.energy_mj += entry.energy_mj
        self.allocated_us += entry.allocated_us
        self.method = entry.method or ("reserved" if entry.share else "")


class Accounts:
    """Totals by account, by reason for what has none, and by device."""

    def __init__(self, most_cards: int = MOST_CARDS) -> None:
        self._totals: dict[Account, Totals] = {}
        self._rest: dict[tuple[str, str], Totals] = {}
        self._devices: dict[str, Totals] = {}
        self._entries: dict[tuple[str, Party], Entry] = {}
        self._memory: dict[str, int | None] = {}
        self._attendance = Attendance(most_cards)

    def post(
        self, sheets: Iterable[tuple[Sheet, int | None]], now: float, wall: float, silent: Iterable[str] = ()
    ) -> None:
        """Add one cycle's sheets, each with the microseconds that its energy is of.

        None is unknown, and so is the power then. 0 is a counter that stood still: the power is what it was. Other
        gauges are those of this cycle alone. Of cards that are there and `silent` the books are kept.
        """
        self._entries.clear()
        self._memory.clear()
        sheets = list(sheets)
        present = [*silent, *(sheet.gpu for sheet, _ in sheets)]
        self._forget({gone for card in present for gone in self._attendance.note(card, now)})
        for sheet, energy_us in sheets:
            device = self._devices.setdefault(sheet.gpu, Totals())
            device.busy_us += sheet.busy_us
            device.energy_mj += sheet.energy_mj
            self._memory[sheet.gpu] = sheet.memory_bytes
            # A counter that first appears with a value would hide its first increase.
            for reason in (*UNATTRIBUTED, ENDED):
                self._rest.setdefault((sheet.gpu, reason), Totals())
            for party, entry in sheet.entries.items():
                self._entries[sheet.gpu, party] = entry
                self._post(sheet.gpu, party, entry, now, wall).note_power(entry, energy_us)
        self._tidy(now, self._memory)

    def _post(self, gpu: str, party: Party, entry: Entry, now: float, wall: float) -> Totals:
        if isinstance(party, Account):
            totals = self._totals.setdefault(party, Totals())
        else:
            totals = self._rest.setdefault((gpu, party), Totals())
        totals.add(entry)
        totals.seen_at = now
        if entry.busy_us or entry.sm_ratio:
            totals.last_active_at = wall
        return totals

    def _forget(self, cards: Collection[str]) -> None:
        """Keep nothing of a card, so that its books add up from the start should it come back."""
        if cards:
            self._totals = {one: totals for one, totals in self._totals.items() if one.gpu not in cards}
            self._rest = {key: totals for key, totals in self._rest.items() if key[0] not in cards}
            self._devices = {gpu: totals for gpu, totals in self._devices.items() if gpu not in cards}

    def _tidy(self, now: float, cards: Collection[str]) -> None:
        """Bury what ended long ago. On a card that is silent nobody is known to have ended.

        Pods of one name share their series, which must not fall: they go together or not at all.
        """
        ended = []
        for accounts in self._by_name(cards):
            seen_at = max(self._totals[account].seen_at for account in accounts)
            if seen_at < now:
                ended.append((seen_at, accounts))
            if now - seen_at <= GRACE_SECONDS:
                self._fold(accounts, now)
        ended.sort(key=itemgetter(0))
        for number, (seen_at, accounts) in enumerate(ended):
            if now - seen_at > GRACE_SECONDS or len(ended) - number > MOST_ENDED:
                self._bury(accounts)

    def _by_name(self, cards: Collection[str]) -> Iterable[list[Account]]:
        named: dict[tuple[str, ...], list[Account]] = {}
        for account in self._totals:
            if account.gpu in cards:
                named.setdefault(_name(account), []).append(account)
        return named.values()

    def _fold(self, accounts: list[Account], now: float) -> None:
        """A name that lives on keeps one line for all that bore it before, however often it was made again."""
        old = [one for one in accounts if now - self._totals[one].seen_at > GRACE_SECONDS]
        for account in old:
            nameless = msgspec.structs.replace(account.container, pod_uid="")
            by_name = msgspec.structs.replace(account, container=nameless)
            if account != by_name:
                self._move(account, self._totals.setdefault(by_name, Totals()))
                accounts[accounts.index(account)] = by_name

    def _bury(self, accounts: list[Account]) -> None:
        """Move totals to one line per device, so that the books still add up."""
        for account in set(accounts):
            self._move(account, self._rest.setdefault((account.gpu, ENDED), Totals()))

    def _move(self, account: Account, to: Totals) -> None:
        totals = self._totals.pop(account)
        to.busy_us += totals.busy_us
        to.energy_mj += totals.energy_mj
        to.allocated_us += totals.allocated_us
        to.seen_at = max(to.seen_at, totals.seen_at)

    def bookings(self) -> Iterator[Booking]:
        for account in sorted(self._totals):
            yield _booking(account, self._totals[account], self._entries.get((account.gpu, account)))

    def remainders(self) -> Iterator[Remainder]:
        for (gpu, reason), totals in sorted(self._rest.items()):
            entry = self._entries.get((gpu, reason), Entry())
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


def _booking(account: Account, totals: Totals, entry: Entry | None) -> Booking:
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
        power_watts=totals.power_watts,
        allocated_ratio=entry.share,
        last_active_at=totals.last_active_at,
    )
