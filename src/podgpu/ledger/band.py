"""How sure a booking is: the band in which a container's busy time on a shared card must lie.

Five times a second the driver looks at a card. A look names the process that ran last and gives the busy time of the
whole card in the 200 ms before, whoever caused it. So over a period, let `s` be the share of looks that name a
container and `y` the busy share of the card. The container was named for all of its own busy time that was looked at,
and for some of the idle time. Hence its true share lies between

    max(0, s + y - 1)  and  min(s, y)

and the chance of so many looks is added on both sides. What is booked, s * y, lies inside. Where nothing is shared
there is no band, and where nothing was measured it is the whole of what is shared. Where the driver's log of context
switches is read, its bounds take the place of the looks': see `residency`.
"""

from collections.abc import Mapping
from math import sqrt

from msgspec import Struct, field

from podgpu.ledger.account import Account, Entry, Party, Sheet
from podgpu.model import Band

PERIOD_US = 60_000_000  # long enough for 300 looks
LOOK_US = 200_000  # between two looks of the driver
DEVIATIONS = 2  # of chance on each side: 95 % of periods
EXACT = frozenset({"exclusive", "instance"})
BY_LOOKS = frozenset({"measured", ""})  # without a method nothing is booked: no look named it

Group = tuple[str, str]


class Looks(Struct, kw_only=True):
    """What looks say about one party, over the cycles in which it could have run: it had processes on the card."""

    taken: float = 0.0
    named: float = 0.0
    elapsed_us: int = 0
    busy_us: int = 0
    active_mj: int = 0

    def share(self) -> tuple[float, float]:
        """Return for which share of the elapsed time the party was busy, at least and at most."""
        if not self.taken or not self.elapsed_us:
            return 0.0, 0.0
        named, busy = min(self.named / self.taken, 1.0), min(self.busy_us / self.elapsed_us, 1.0)
        # Never to be named in n looks still leaves room for about one of them.
        variance = max(named * (1 - named), 1 / self.taken) / self.taken
        chance = DEVIATIONS * sqrt(variance)
        return max(0.0, named - chance + busy - 1), min(named + chance, busy)

    def active(self, share: float) -> int:
        """The active energy that goes with a share of the elapsed time."""
        return round(self.active_mj * min(share * self.elapsed_us / self.busy_us, 1.0)) if self.busy_us else 0


class Line(Struct, kw_only=True):
    """One party's evidence so far: by looks, and `least` and `most` of the cycles that had none."""

    looks: Looks = field(default_factory=Looks)
    booked_us: int = 0
    booked_mj: int = 0
    idle_mj: int = 0
    least_us: int = 0
    most_us: int = 0
    least_mj: int = 0
    most_mj: int = 0

    def band(self, elapsed_us: int) -> Band:
        """What is booked is never outside: shares of the cycles may differ from the period's."""
        least, most = self.looks.share()
        least_us = self.least_us + round(least * self.looks.elapsed_us)
        most_us = self.most_us + round(most * self.looks.elapsed_us)
        least_mj = self.idle_mj + self.least_mj + self.looks.active(least)
        most_mj = self.idle_mj + self.most_mj + self.looks.active(most)
        return Band(
            elapsed_us=elapsed_us,
            booked_us=self.booked_us,
            least_us=min(least_us, self.booked_us),
            most_us=max(most_us, self.booked_us),
            booked_mj=self.booked_mj,
            least_mj=min(least_mj, self.booked_mj),
            most_mj=max(most_mj, self.booked_mj),
        )


class Period(Struct, kw_only=True):
    """The cycles of one card since the period began."""

    elapsed_us: int = 0
    lines: dict[Party, Line] = field(default_factory=dict)

    def add(self, sheet: Sheet) -> None:
        self.elapsed_us += sheet.elapsed_us
        named_us = sum(entry.named_us or 0 for entry in sheet.entries.values())
        for party, entry in sheet.entries.items():
            line = self.lines.get(party) or self.lines.setdefault(party, Line())
            line.booked_us += entry.busy_us
            line.booked_mj += entry.energy_mj
            line.idle_mj += entry.idle_mj
            if entry.method in BY_LOOKS and named_us:
                _add_looks(line.looks, entry, sheet, named_us)
            elif entry.method in EXACT:
                _add_exact(line, entry)
            elif entry.method == "resident" or entry.most_us:
                _add_proven(line, entry, sheet)
            elif _may_have_run(entry, sheet):
                busy_us, active_mj = _shared(party, entry, sheet)
                line.most_us += busy_us
                line.most_mj += active_mj

    def whole(self) -> Band:
        """What the card itself did is sure."""
        busy_us = sum(line.booked_us for line in self.lines.values())
        energy_mj = sum(line.booked_mj for line in self.lines.values())
        return Band(
            elapsed_us=self.elapsed_us,
            booked_us=busy_us,
            least_us=busy_us,
            most_us=busy_us,
            booked_mj=energy_mj,
            least_mj=energy_mj,
            most_mj=energy_mj,
        )

    def bands(self) -> Mapping[Party, Band]:
        return {party: line.band(self.elapsed_us) for party, line in self.lines.items()}


def _shared(party: Party, entry: Entry, sheet: Sheet) -> tuple[int, int]:
    """Return busy time and active energy of all who cannot be separated from the party.

    They are on its instance, under its MPS server or, where nothing at all was measured, on the card.
    """
    if entry.method != "weighted":
        return sheet.busy_us, sheet.active_mj
    beside = [one for other, one in sheet.entries.items() if _group(other, one) == _group(party, entry)]
    return sum(one.busy_us for one in beside), sum(one.energy_mj - one.idle_mj for one in beside)


def _group(party: Party, entry: Entry) -> Group:
    return (party.mig if isinstance(party, Account) else ""), entry.method


def _may_have_run(entry: Entry, sheet: Sheet) -> bool:
    """Whoever certainly has no process on the card did not run there."""
    return bool(entry.processes) or not sheet.is_watched


def _add_looks(looks: Looks, entry: Entry, sheet: Sheet, named_us: int) -> None:
    if _may_have_run(entry, sheet):
        taken = sheet.elapsed_us / LOOK_US
        looks.taken += taken
        looks.named += taken * (entry.named_us or 0) / named_us
        looks.elapsed_us += sheet.elapsed_us
        looks.busy_us += sheet.busy_us
        looks.active_mj += sheet.active_mj


def _add_exact(line: Line, entry: Entry) -> None:
    active_mj = entry.energy_mj - entry.idle_mj
    line.least_us += entry.busy_us
    line.most_us += entry.busy_us
    line.least_mj += active_mj
    line.most_mj += active_mj


def _add_proven(line: Line, entry: Entry, sheet: Sheet) -> None:
    line.least_us += entry.least_us
    line.most_us += entry.most_us
    if sheet.busy_us:
        line.least_mj += sheet.active_mj * entry.least_us // sheet.busy_us
        line.most_mj += -(-sheet.active_mj * min(entry.most_us, sheet.busy_us) // sheet.busy_us)
