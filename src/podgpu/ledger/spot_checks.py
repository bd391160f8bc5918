"""Short readings of the driver's log of context switches at secret random moments, and what they say of the samples.

Who was on the card at random moments is an unbiased sample of who is on it at all, whatever rhythm tenants have. The
driver's samples are more, but come at fixed moments. So within a period a party's share is estimated by

    mean(R) + b * (L - mean(l))

where `R` are its shares of the time on the card in the checks, `l` its shares of the samples around each check, and `L`
that of all samples of the period. `b` says how well the samples follow what the checks see: it is 0 for work that keeps
time with them, and near 1 where work comes and goes over seconds. It is fitted to the checks themselves, so nothing
rests on the samples where they mislead. The error follows from how much the checks scatter.

In a check without any switch one context was on the card throughout. The log names none then, and the samples say whose
it likely was.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt

from msgspec import Struct
from msgspec.structs import replace

from podgpu.ledger.cycle import Party, SpotCheck
from podgpu.model import REPRESENTED, Sampling, SpotLog

UNKNOWN = "unknown"  # hidden processes, and those that ended
MOST_UNKNOWN = 0.05  # of the time; beyond it the log may hide any tenant, and the checks say nothing
FEWEST = 4  # checks, to estimate anything by them
FEWEST_TO_FIT = 8  # to trust the samples with what is between them
FEWEST_TO_JUDGE = 16  # to say that samples mislead
KEPT = 20  # of earlier periods: about two minutes
LEAST_ERROR = 0.01  # of the time
LEAST_DIFFERENCE = 0.05  # of the time; less is not worth a word
PROOF = 6  # deviations
UNDERSAMPLED, OVERSAMPLED = "undersampled", "oversampled"


class Estimate(Struct, frozen=True, gc=False):
    """A party's share of the time on the card, and by how much it may be off."""

    share: float
    error: float

    @property
    def span(self) -> tuple[float, float]:
        return max(0.0, self.share - self.error), min(1.0, self.share + self.error)


class Correction(Struct, frozen=True, gc=False):
    """How a party's share of the samples becomes its share of the time."""

    slope: float
    offset: float

    def share(self, named: float) -> float:
        return max(0.0, self.slope * named + self.offset)


def spot_check(
    log: SpotLog, parties: Mapping[int, Party], named: Mapping[Party, float], busy: float
) -> SpotCheck | None:
    """Return what a check found; None if the log is incomplete, or if nothing says who was on the card."""
    if log.is_incomplete:
        return None
    there: dict[Party, float] = {}
    for piece in log.slices:
        party = parties.get(piece.pid, UNKNOWN)
        there[party] = there.get(party, 0.0) + piece.end_ns - piece.begin_ns
    resident = shares(there)
    if not resident and not named:
        return None
    return SpotCheck(
        seconds=log.stands_for,
        busy_seconds=log.stands_for * busy,
        resident=resident or named,
        named=named,
        is_guess=not resident,
    )


def shares(parts: Mapping[Party, float]) -> dict[Party, float]:
    whole = sum(parts.values())
    return {party: part / whole for party, part in parts.items() if part} if whole else {}


def are_useful(checks: Sequence[SpotCheck]) -> bool:
    """Whether there are enough, and the log hides nobody."""
    if len(checks) < FEWEST:
        return False
    return _mean(checks, [check.resident.get(UNKNOWN, 0.0) for check in checks]) <= MOST_UNKNOWN


def estimate(party: Party, checks: Sequence[SpotCheck], earlier: Sequence[SpotCheck], named: float) -> Estimate:
    """Estimate a share of a period by its `checks`; `named` is the party's share of all samples of that period.

    `earlier` checks help to say how well samples follow, and how much checks scatter.
    """
    known = [*earlier, *checks]
    slope = _slope(party, known)
    rests, mean = _rests(party, checks, slope)
    scatter = max(_variance(rests), _variance(_rests(party, known, slope)[0]))
    weights = _weights(checks)
    guessed = sum(
        (weight * weight * own * (1 - own))
        for weight, check in zip(weights, checks, strict=True)
        if check.is_guess and (own := check.resident.get(party, 0.0))
    )
    error = _deviations(len(checks) - 1) * sqrt(scatter * sum(weight * weight for weight in weights) + guessed)
    share = mean + slope * named
    return Estimate(min(1.0, max(0.0, share)), max(error, LEAST_ERROR))


def corrections(checks: Sequence[SpotCheck]) -> dict[Party, Correction]:
    """Say how each party's samples are to be read, for as long as the checks are of the recent past."""
    of_busy = _by_busy(checks)
    if not are_useful(of_busy):
        return {}
    found = {}
    for party in _parties(of_busy):
        slope = _slope(party, of_busy)
        found[party] = Correction(slope, _rests(party, of_busy, slope)[1])
    return found


def corrected(named: Mapping[Party, int], found: Mapping[Party, Correction]) -> dict[Party, int]:
    """Divide the sampled time anew, all of it. A party that no check is about keeps what its samples say."""
    total = sum(named.values())
    if not total:
        return dict(named)
    raw = {party: found[party].share(part / total) if party in found else part / total for party, part in named.items()}
    whole = sum(raw.values())
    return {party: round(total * part / whole) for party, part in raw.items()} if whole else dict(named)


def judged(checks: Sequence[SpotCheck]) -> dict[Party, Sampling]:
    """Say of each party whether its samples represent it. No rhythm is a reproach: a camera has one."""
    of_busy = _by_busy(checks)
    if len(of_busy) < FEWEST_TO_JUDGE or not are_useful(of_busy):
        return {}
    return {party: _judged(party, of_busy) for party in _parties(of_busy) if party != UNKNOWN}


def _by_busy(checks: Iterable[SpotCheck]) -> list[SpotCheck]:
    """Let checks count by how busy the card was: an idle card keeps the last context, which does nothing."""
    return [replace(check, seconds=check.busy_seconds) for check in checks if check.busy_seconds]


def _judged(party: Party, checks: Sequence[SpotCheck]) -> Sampling:
    rests, difference = _rests(party, checks, 1.0)
    error = sqrt(_variance(rests) * sum(weight * weight for weight in _weights(checks)))
    found = REPRESENTED
    if abs(difference) >= max(LEAST_DIFFERENCE, PROOF * error):
        found = UNDERSAMPLED if difference > 0 else OVERSAMPLED
    return Sampling(
        checks=len(checks),
        named_ratio=_mean(checks, [check.named.get(party, 0.0) for check in checks]),
        resident_ratio=_mean(checks, [check.resident.get(party, 0.0) for check in checks]),
        found=found,
    )


def _parties(checks: Iterable[SpotCheck]) -> list[Party]:
    return list(dict.fromkeys(party for check in checks for party in (*check.resident, *check.named)))


def _slope(party: Party, checks: Sequence[SpotCheck]) -> float:
    """How much of what changes in the samples is true, from 0 to 1; 0 if too little is known."""
    if len(checks) < FEWEST_TO_FIT:
        return 0.0
    named = [check.named.get(party, 0.0) for check in checks]
    resident = [check.resident.get(party, 0.0) for check in checks]
    middle, centre = _mean(checks, named), _mean(checks, resident)
    together = sum((own - middle) * (there - centre) for own, there in zip(named, resident, strict=True))
    alone = sum((own - middle) ** 2 for own in named)
    return min(1.0, max(0.0, together / alone)) if alone else 0.0


def _rests(party: Party, checks: Sequence[SpotCheck], slope: float) -> tuple[list[float], float]:
    """Return what the samples leave unexplained in each check, and its mean."""
    found = [check.resident.get(party, 0.0) - slope * check.named.get(party, 0.0) for check in checks]
    return found, _mean(checks, found)


def _weights(checks: Sequence[SpotCheck]) -> list[float]:
    whole = sum(check.seconds for check in checks)
    return [check.seconds / whole for check in checks]


def _mean(checks: Sequence[SpotCheck], values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(_weights(checks), values, strict=True))


def _variance(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    middle = sum(values) / len(values)
    return sum((value - middle) ** 2 for value in values) / (len(values) - 1)


def _deviations(freedom: int) -> float:
    """Student's t for 95 %, or up to a hundredth more."""
    return 1.96 + 2.4 / freedom + 4 / freedom**2
