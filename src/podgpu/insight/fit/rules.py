"""The rules: what to do about one workload. Each looks at the evidence and answers with a verdict, or with None.

Shrinking goes by the upper end of the likely busy time, and enlarging by the lower one: doubt never costs anyone a GPU.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from podgpu.insight.fit.sizes import (
    USED_RATIO,
    Need,
    PartSize,
    UseFigures,
    figures_of,
    instances_of,
    memory_size,
    need_of,
    portion_for,
    smallest,
)
from podgpu.model.fit import (
    ENLARGE,
    INSTANCE,
    LEAVE,
    PORTION,
    RELEASE,
    SHRINK,
    TIME_SLICE,
    UNJUDGED,
    WHOLE,
    FitTerms,
    WantedPart,
    WorkloadUse,
)
from podgpu.numbers import count, duration, memory, percent

DAY = 86_400.0
LEAST_SEEN = 0.7  # of the time: below, a peak may well have been missed
LEAST_SEEN_UNUSED = 0.9
MOST_DOUBT = 0.25  # of the card, between both ends of the likely busy time
THROTTLED = 0.5  # of the minutes at all of its part
ALWAYS_FULL = 0.95  # of the minutes at all of a whole card
WORTH_IT = 0.1  # of a card: a smaller difference is no advice
LARGER_BY = 1.5
HALF = 0.5


class Verdict(Struct, frozen=True, kw_only=True):
    """What a rule says. `ratio` is what each device would be of a card afterwards."""

    kind: str
    why: str
    to: str = ""
    ratio: float | None = None
    devices: int | None = None
    wanted: WantedPart | None = None
    part_kind: str = ""


class Case(Struct, frozen=True, kw_only=True):
    """A workload with its figures. `portions` is the system that divides cards in its cluster; empty if none does."""

    use: WorkloadUse
    figures: UseFigures
    terms: FitTerms
    step: int
    portions: str = ""

    @property
    def need(self) -> Need | None:
        return need_of(self.figures, self.terms, self.use.dram_ratio)


def case_of(use: WorkloadUse, terms: FitTerms, step: int, portions: str = "") -> Case:
    return Case(use=use, figures=figures_of(use, terms), terms=terms, step=step, portions=portions)


def verdict(case: Case) -> Verdict:
    """The first rule that has something to say decides."""
    found = (rule(case) for rule in _RULES)
    return next((each for each in found if each), None) or _leave(case)


def _unjudged(case: Case) -> Verdict | None:
    use, figures = case.use, case.figures
    reasons = [
        (use.watched_seconds < DAY, f"It was watched for {duration(use.watched_seconds)}; a day is needed."),
        (
            use.seen_ratio < LEAST_SEEN,
            f"Only {percent(use.seen_ratio)} of its time was seen: see why its nodes were not scraped.",
        ),
        (use.held.ratio is None, "It is not known how much of the card it holds."),
        (figures.busy is None, "Its busy time is not measured."),
    ]
    return next((_unknown(text) for is_so, text in reasons if is_so), None)


def _unknown(text: str) -> Verdict:
    return Verdict(kind=UNJUDGED, why=text)


def _larger(case: Case) -> Verdict | None:
    use, figures = case.use, case.figures
    is_whole, is_limited = use.held.kind == WHOLE, use.held.kind in (INSTANCE, PORTION)
    part: PartSize | None
    if figures.out_of_memory:
        times = count(figures.out_of_memory, "time")
        why = f"It ended {times} with all of its memory in use, {memory(figures.peak_bytes)}."
        part = _next_part(use, memory_factor=LARGER_BY)
    elif is_limited and figures.full_ratio >= THROTTLED:
        why = f"It used all of its part in {percent(figures.full_ratio)} of the minutes, at least."
        part = _next_part(use, core_factor=LARGER_BY)
    elif is_whole and figures.full_ratio >= ALWAYS_FULL and not use.workload.kind.endswith("Job"):
        why = f"The card was fully busy in {percent(figures.full_ratio)} of the minutes, at least."
        return Verdict(kind=ENLARGE, to="more replicas", why=why)
    else:
        return None
    if part is None:
        to = "larger card" if is_whole else "whole card"
        return Verdict(kind=ENLARGE, to=to, ratio=1.0, why=why)
    return Verdict(kind=ENLARGE, to=part.name, ratio=part.ratio, wanted=part.wanted, part_kind=part.kind, why=why)


def _next_part(use: WorkloadUse, *, memory_factor: float = 1.0, core_factor: float = 1.0) -> PartSize | None:
    """Return a part that has more of what is short, by a good deal."""
    size, ratio = use.held.memory_limit_bytes, use.held.ratio
    if size is None or ratio is None:
        return None
    need = Need(memory_bytes=int(size * memory_factor), core_ratio=min(ratio * core_factor, 1.0))
    if use.held.kind == INSTANCE:
        own = next((part for part in instances_of(use.card) if part.name == use.held.profile), None)
        if own:
            cores = own.core_ratio * core_factor
            need = Need(memory_bytes=int(own.memory_bytes * memory_factor), core_ratio=min(cores, 1.0))
        return smallest(instances_of(use.card), need)
    return portion_for(need, use.card)


def _release(case: Case) -> Verdict | None:
    use, figures = case.use, case.figures
    if not figures.unused_steps:
        return None
    unused = figures.unused_steps * case.step
    is_seen = figures.unused_seen >= LEAST_SEEN_UNUSED * figures.unused_steps
    never = figures.used_ratio == 0
    if unused >= case.terms.release_seconds and is_seen:
        since = "Not used at all" if never else "Not used"
        held = f" It holds {memory(figures.peak_bytes)} of memory." if figures.peak_bytes else ""
        why = f"{since} in the last {duration(unused)}.{held}"
        return Verdict(kind=RELEASE, ratio=0.0, why=why)
    if never:
        needed = duration(case.terms.release_seconds)
        text = f"Not used in the {duration(use.watched_seconds)} that it was watched; {needed} are needed to say more."
        return _unknown(text)
    return None


def _doubtful(case: Case) -> Verdict | None:
    doubt = case.use.busy_doubt
    if doubt is not None and doubt > MOST_DOUBT:
        least, most = percent(case.figures.mean_least), percent(case.figures.mean_most)
        return _unknown(
            f"Its busy time is between {least} and {most}, which is too wide: let agents read the log of switches."
        )
    if case.figures.peak_bytes is None:
        return _unknown("Its memory is not measured.")
    return None


def _fewer_devices(case: Case) -> Verdict | None:
    held, used = case.use.held, case.use.used_devices
    if used is None or not 0 < used < held.devices:
        return None
    why = f"Only {used} of its {held.devices} devices {'was' if used == 1 else 'were'} ever used."
    to = f"{used} of {held.devices}"
    wanted = WantedPart(devices=used, profile=held.profile)
    return Verdict(kind=SHRINK, to=to, ratio=held.ratio, devices=used, why=why, wanted=wanted, part_kind=held.kind)


def _smaller(case: Case) -> Verdict | None:
    held, need = case.use.held, case.need
    # Parts of several cards cannot exchange data as whole cards do.
    if need is None or held.ratio is None or held.devices > 1:
        return None
    part = _part_for(case, need)
    if part is None or held.ratio - part.ratio < WORTH_IT:
        return None
    why = (
        f"{part.name} has {memory(part.memory_bytes)} of memory and {percent(part.core_ratio)} of the card; with "
        f"{percent(case.terms.headroom)} headroom it needs {memory(need.memory_bytes)} and {percent(need.core_ratio)}."
    )
    return Verdict(kind=SHRINK, to=part.name, ratio=part.ratio, wanted=part.wanted, part_kind=part.kind, why=why)


def _part_for(case: Case, need: Need) -> PartSize | None:
    held = case.use.held
    if held.kind in (WHOLE, INSTANCE):
        part = smallest(instances_of(case.use.card), need)
        if part or held.kind == INSTANCE or not case.portions:
            return part
    elif held.kind != PORTION:
        return None  # the number of time slices is the same for all on a card
    portion = portion_for(need, case.use.card)
    # Beside a part of more than half a card, no other of its size has room.
    return None if portion and held.kind == WHOLE and portion.ratio > HALF else portion


def _leave(case: Case) -> Verdict:
    held = case.use.held
    if held.kind == TIME_SLICE:
        why = "A time slice has no size of its own: how many there are is the same for all on a card."
    elif held.devices > 1:
        why = "All of its devices are used, and parts of several cards cannot work together as whole cards do."
    else:
        why = "Nothing smaller holds what it used, with headroom."
    return Verdict(kind=LEAVE, why=why)


_RULES: Sequence[Callable[[Case], Verdict | None]] = (
    _unjudged,
    _larger,
    _release,
    _doubtful,
    _fewer_devices,
    _smaller,
)


def evidence(case: Case) -> tuple[str, ...]:
    """Say what was seen, in the same words for every advice."""
    use, figures = case.use, case.figures
    sentences = [f"Watched for {duration(use.watched_seconds)}, {percent(use.seen_ratio)} of it seen."]
    if figures.peak_bytes:
        size = memory_size(use)
        grown = f", {memory(figures.growth_bytes)} more than in the first half" if figures.growth_bytes else ""
        usual = f"{memory(figures.usual_bytes)} in {percent(case.terms.percentile)} of the minutes"
        sentences.append(f"Memory: at most {memory(figures.peak_bytes)} of {memory(size)}{grown}; {usual}.")
    if figures.busy is not None:
        mean = percent(figures.mean_most)
        sentences.append(
            f"Busy: at most {mean} on average, and {percent(figures.busy)} in "
            f"{percent(case.terms.percentile)} of the minutes."
        )
    if figures.used_ratio is not None and figures.used_ratio > USED_RATIO:
        pause = f"; longest pause {duration(figures.longest_pause * case.step)}" if figures.longest_pause else ""
        sentences.append(f"Used in {percent(figures.used_ratio)} of the minutes{pause}.")
    if figures.restarts:
        sentences.append(f"It began anew {count(figures.restarts, 'time')}.")
    return tuple(sentences)
