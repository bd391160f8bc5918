"""Makes the statement: a row for each workload, those that save most first."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from podgpu.insight.fit.company import companies
from podgpu.insight.fit.figures import memory_size
from podgpu.insight.fit.rules import DAY, Case, Verdict, case_of, evidence, verdict
from podgpu.model.fit import (
    ADVICE_KINDS,
    CERTAINTIES,
    LEAVE,
    PORTION,
    RELEASE,
    SHARE,
    TIME_SLICE,
    UNJUDGED,
    FitAdvice,
    FitStatement,
    FitTerms,
    WantedPart,
    WorkloadName,
    WorkloadUse,
)
from podgpu.model.insight import Prices
from podgpu.model.kube import total_of_known

# Writes lines of YAML: by the kind of part, the sharing system if that is known, and what is wanted.
PartWriter = Callable[[str, str, WantedPart], str]

HIGH, MEDIUM, LOW = CERTAINTIES
# How long it must have been watched, how much of that seen, and how wide its bounds may be.
_SURE = ((HIGH, 7 * DAY, 0.95, 0.05), (MEDIUM, 3 * DAY, 0.8, 0.15))
_SCALED = ("Deployment", "StatefulSet", "ReplicaSet", "LeaderWorkerSet", "RayService")
_SUSPENDED = ("Job", "CronJob", "JobSet")


class FitPeriodFacts(Struct, frozen=True, kw_only=True):
    """Of when the evidence is, and what it costs."""

    start: float
    end: float
    step: int = 60
    terms: FitTerms = FitTerms()
    prices: Prices | None = None
    demo: bool = False
    notices: tuple[str, ...] = ()


def fit_statement(uses: Sequence[WorkloadUse], facts: FitPeriodFacts, write: PartWriter) -> FitStatement:
    portions = _portion_systems(uses)
    cases = [case_of(use, facts.terms, facts.step, portions.get(use.workload.cluster, "")) for use in uses]
    verdicts = {case.use.workload: verdict(case) for case in cases}
    left = [case for case in cases if verdicts[case.use.workload].kind == LEAVE]
    groups = {name: group for group in companies(left) for name in group}
    prices = facts.prices.at(facts.end) if facts.prices else None
    rows = [
        _row(
            case,
            _shared(verdicts[case.use.workload], groups.get(case.use.workload, ())),
            prices,
            groups,
            write,
        )
        for case in cases
    ]
    models = sorted({use.card.model for use in uses})
    known = {model: prices.of(model) for model in models} if prices else {}
    return FitStatement(
        start=facts.start,
        end=facts.end,
        terms=facts.terms,
        rows=tuple(sorted(rows, key=_rank)),
        step_seconds=facts.step,
        coverage=coverage_of(uses),
        gpus=total_of_known(row.gpus for row in rows),
        saved_gpus=total_of_known(row.saved_gpus for row in rows if (row.saved_gpus or 0.0) > 0),
        saved_per_hour=total_of_known(row.saved_per_hour for row in rows if (row.saved_per_hour or 0.0) > 0),
        currency=prices.currency if prices else "",
        prices={model: price for model, price in known.items() if price is not None},
        unpriced=tuple(model for model, price in known.items() if price is None),
        demo=facts.demo,
        notices=facts.notices,
    )


def _portion_systems(uses: Iterable[WorkloadUse]) -> Mapping[str, str]:
    """Return the sharing system by which the workloads of each cluster hold parts of cards."""
    return {
        use.workload.cluster: use.held.system for use in uses if use.held.kind == PORTION and use.held.system
    }


def _shared(found: Verdict, group: Sequence[WorkloadName]) -> Verdict:
    if not group:
        return found
    why = "Their memory peaks fit side by side, and so does their busy time, minute by minute."
    wanted = WantedPart(devices=len(group))
    return Verdict(
        kind=SHARE,
        to=f"1/{len(group)} card",
        ratio=1 / len(group),
        why=(why,),
        wanted=wanted,
        part_kind=TIME_SLICE,
    )


def _row(
    case: Case,
    found: Verdict,
    prices: Prices | None,
    groups: Mapping[WorkloadName, tuple[WorkloadName, ...]],
    write: PartWriter,
) -> FitAdvice:
    use = case.use
    price = prices.of(use.card.model) if prices else None
    saved = _saved(use, found)
    others = tuple(name for name in groups.get(use.workload, ()) if name != use.workload)
    return FitAdvice(
        workload=use.workload,
        kind=found.kind,
        to=found.to,
        together=others,
        why=(*found.why, *evidence(case)),
        certainty=LOW if found.kind == UNJUDGED else _certainty(use),
        peak_bytes=case.figures.peak_bytes,
        memory_bytes=memory_size(use),
        busy_ratio=case.figures.busy,
        gpus=use.gpus,
        saved_gpus=saved,
        saved_per_hour=None if saved is None or price is None else saved * price,
        change=_change(use, found, case.portions, write),
    )


def _saved(use: WorkloadUse, found: Verdict) -> float | None:
    if found.ratio is None or use.gpus is None:
        return 0.0 if found.kind == LEAVE else None
    devices = use.held.devices if found.devices is None else found.devices
    return use.gpus - found.ratio * devices * use.replicas


def _certainty(use: WorkloadUse) -> str:
    """Without bounds nothing says how sure the busy time is."""
    if use.busy_doubt is None:
        return LOW
    for name, watched, seen, doubt in _SURE:
        if use.watched_seconds >= watched and use.seen_ratio >= seen and use.busy_doubt <= doubt:
            return name
    return LOW


def _change(use: WorkloadUse, found: Verdict, portions: str, write: PartWriter) -> str:
    if found.kind == RELEASE:
        if use.workload.kind in _SCALED:
            return "replicas: 0"
        return (
            "suspend: true"
            if use.workload.kind in _SUSPENDED
            else f"# delete {use.workload.kind} {use.workload}"
        )
    if found.wanted is None:
        return ""
    system = use.held.system or portions if found.part_kind == PORTION else ""
    return write(found.part_kind, system, found.wanted)


def coverage_of(uses: Sequence[WorkloadUse]) -> float | None:
    watched = sum(use.watched_seconds for use in uses)
    return sum(use.watched_seconds * use.seen_ratio for use in uses) / watched if watched else None


def _rank(row: FitAdvice) -> tuple[float, float, int, WorkloadName]:
    return -(row.saved_per_hour or 0.0), -(row.saved_gpus or 0.0), ADVICE_KINDS.index(row.kind), row.workload
