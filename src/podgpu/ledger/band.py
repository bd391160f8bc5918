"""How sure a booking is: the band in which a container's busy time on a shared card must lie.

Five times a second the driver looks at a card. A look names the process that ran last and gives the busy time of the
whole card in the 200 ms before, whoever caused it. So over a period, let `s` be the share of looks that name a
container and `y` the busy share of the card. The container was named for all of its own busy time that was looked at,
and for some of the idle time. Hence its true share lies between

    max(0, s + y - 1)  and  min(s, y)

and the chance of so many looks is added on both sides. What is booked, s * y, lies inside. Where nothing is shared
there is no band, and where nothing was measured it is the whole of what is shared. Where the driver's log of context
switches is read, its bounds take the place of the looks': see `residency`.

All of this holds if nobody times his work by the looks. A party that holds memory and computes on the processor, but is
named far less often than that suggests, may do so. It can then have had all of the card's busy time, and the others are
sure of nothing. The log settles it: see `sampling`.
"""

from collections.abc import Mapping
from math import sqrt

from msgspec import Struct, field

from podgpu.ledger.cycle import CycleBooking, CycleBooks, Party, TenantKey
from podgpu.model import Band

PERIOD_US = 60_000_000  # long enough for 300 looks
LOOK_US = 200_000  # between two looks of the driver
DEVIATIONS = 2  # of chance on each side: 95 % of periods
EXACT = frozenset({"exclusive", "instance"})
LEAST_CPU = 0.02  # of a core; whoever uses less waits for work
SUSPICIOUS = 0.25  # named for less than this part of what its processor time suggests
HOST = "host"  # the node's own processes hide from nobody
BY_LOOKS = frozenset({"measured", ""})  # without a method nothing is booked: no look named it

Group = tuple[str, str]


class SampleEvidence(Struct, kw_only=True):
    """What looks say about one party, over the cycles in which it could have run: it had processes on the card.

    `cpu_us` is the processor time of its processes, `holds` whether they held memory. `evades` and `is_honest` are what
    the log found of it, if it was read for a while.
    """

    taken: float = 0.0
    named: float = 0.0
    elapsed_us: int = 0
    busy_us: int = 0
    active_mj: int = 0
    cpu_us: int = 0
    holds: bool = False
    evades: bool = False
    is_honest: bool = False

    def share(self) -> tuple[float, float]:
        """Return for which share of the elapsed time the party was busy, at least and at most."""
        if not self.taken or not self.elapsed_us:
            return 0.0, 0.0
        named, busy = min(self.named / self.taken, 1.0), min(self.busy_us / self.elapsed_us, 1.0)
        chance = self.chance(named)
        return max(0.0, named - chance + busy - 1), min(named + chance, busy)

    def chance(self, named: float) -> float:
        """How far off so many looks may be."""
        # Never to be named in n looks still leaves room for about one of them.
        return DEVIATIONS * sqrt(max(named * (1 - named), 1 / self.taken) / self.taken)

    @property
    def cpu(self) -> float:
        """Its processor time as a part of the elapsed time; more than one core counts as one."""
        return min(self.cpu_us / self.elapsed_us, 1.0) if self.elapsed_us else 0.0

    def hides(self, all_cpu: float) -> bool:
        """Whether it may time its work by the looks: they name it far less often than its processor time suggests."""
        if self.evades:
            return True
        if self.is_honest or not self.holds or not self.taken or self.cpu < LEAST_CPU:
            return False
        named = min(self.named / self.taken, 1.0)
        return named + self.chance(named) < SUSPICIOUS * self.cpu / all_cpu

    def active(self, share: float) -> int:
        """The active energy that goes with a share of the elapsed time."""
        return round(self.active_mj * min(share * self.elapsed_us / self.busy_us, 1.0)) if self.busy_us else 0


class PartyEvidence(Struct, kw_only=True):
    """One party's evidence so far: by looks, and `least` and `most` of the cycles that had none."""

    looks: SampleEvidence = field(default_factory=SampleEvidence)
    booked_us: int = 0
    booked_mj: int = 0
    idle_mj: int = 0
    least_us: int = 0
    most_us: int = 0
    least_mj: int = 0
    most_mj: int = 0

    def band(self, elapsed_us: int, *, hides: bool, is_beside: bool) -> Band:
        """What is booked is never outside: shares of the cycles may differ from the period's.

        Whoever `hides` from the looks can have had everything, and whoever `is_beside` it nothing.
        """
        least, most = self.looks.share()
        if hides and self.looks.elapsed_us:
            most = min(self.looks.busy_us / self.looks.elapsed_us, 1.0)
        if is_beside:
            least = 0.0
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
            undersampled=hides,
        )


class Period(Struct, kw_only=True):
    """The cycles of one card since the period began."""

    elapsed_us: int = 0
    lines: dict[Party, PartyEvidence] = field(default_factory=dict)

    def add(self, sheet: CycleBooks) -> None:
        self.elapsed_us += sheet.elapsed_us
        named_us = sum(entry.named_us or 0 for entry in sheet.entries.values())
        for party, entry in sheet.entries.items():
            line = self.lines.get(party) or self.lines.setdefault(party, PartyEvidence())
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
        cpu = sum(line.looks.cpu for line in self.lines.values())
        hiding = {party for party, line in self.lines.items() if party != HOST and line.looks.hides(cpu)}
        return {
            party: line.band(self.elapsed_us, hides=party in hiding, is_beside=bool(hiding - {party}))
            for party, line in self.lines.items()
        }


def _shared(party: Party, entry: CycleBooking, sheet: CycleBooks) -> tuple[int, int]:
    """Return busy time and active energy of all who cannot be separated from the party.

    They are on its instance, under its MPS server or, where nothing at all was measured, on the card.
    """
    if entry.method != "weighted":
        return sheet.busy_us, sheet.active_mj
    beside = [one for other, one in sheet.entries.items() if _group(other, one) == _group(party, entry)]
    return sum(one.busy_us for one in beside), sum(one.energy_mj - one.idle_mj for one in beside)


def _group(party: Party, entry: CycleBooking) -> Group:
    return (party.mig if isinstance(party, TenantKey) else ""), entry.method


def _may_have_run(entry: CycleBooking, sheet: CycleBooks) -> bool:
    """Whoever certainly has no process on the card did not run there."""
    return bool(entry.processes) or not sheet.is_watched


def _add_looks(looks: SampleEvidence, entry: CycleBooking, sheet: CycleBooks, named_us: int) -> None:
    if _may_have_run(entry, sheet):
        taken = sheet.elapsed_us / LOOK_US
        looks.taken += taken
        looks.named += taken * (entry.named_us or 0) / named_us
        looks.elapsed_us += sheet.elapsed_us
        looks.busy_us += sheet.busy_us
        looks.active_mj += sheet.active_mj
        looks.cpu_us += entry.cpu_us or 0
        looks.holds |= bool(entry.memory_bytes)
        looks.evades |= entry.sampling is not None and entry.sampling.evades
        looks.is_honest |= entry.sampling is not None and not entry.sampling.evades


def _add_exact(line: PartyEvidence, entry: CycleBooking) -> None:
    active_mj = entry.energy_mj - entry.idle_mj
    line.least_us += entry.busy_us
    line.most_us += entry.busy_us
    line.least_mj += active_mj
    line.most_mj += active_mj


def _add_proven(line: PartyEvidence, entry: CycleBooking, sheet: CycleBooks) -> None:
    line.least_us += entry.least_us
    line.most_us += entry.most_us
    if sheet.busy_us:
        line.least_mj += sheet.active_mj * entry.least_us // sheet.busy_us
        line.most_mj += -(-sheet.active_mj * min(entry.most_us, sheet.busy_us) // sheet.busy_us)
