"""A statement of what fits as rows: what `podgpu fit` and the page show, and what they write as JSON and CSV."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from podgpu import __version__, catalog
from podgpu.catalog.row import Scope
from podgpu.model.fit import ADVICE_KINDS, LEAVE, FitAdvice, FitStatement
from podgpu.numbers import UNKNOWN, count, coverage, duration, gib, gpu_number, gpus, money, percent
from podgpu.option.times import utc_text
from podgpu.views.exposition import Format, render
from podgpu.views.format import unpriced_texts
from podgpu.views.row_table import Column, Fields, RowTable, known, rounded
from podgpu.views.series import Family, Labels
from podgpu.views.text import line

_ROWS = {name: rows[0] for name, rows in catalog.families().items() if rows[0].scope is Scope.WORKLOAD}


_FIELDS: Fields[FitAdvice] = {
    "advice": lambda advice: advice.kind,
    "cluster": lambda advice: advice.workload.cluster,
    "namespace": lambda advice: advice.workload.namespace,
    "workload_kind": lambda advice: advice.workload.kind,
    "workload_name": lambda advice: advice.workload.name,
    "container": lambda advice: advice.workload.container,
    "model": lambda advice: advice.workload.model,
    "to": lambda advice: advice.to,
    "together": lambda advice: tuple(map(str, advice.together)),
    "certainty": lambda advice: advice.certainty,
    "peak_bytes": lambda advice: advice.peak_bytes,
    "memory_bytes": lambda advice: advice.memory_bytes,
    "busy_ratio": lambda advice: advice.busy_ratio,
    "gpus": lambda advice: advice.gpus,
    "saved_gpus": lambda advice: advice.saved_gpus,
    "saved_per_hour": lambda advice: advice.saved_per_hour,
    "why": lambda advice: advice.why,
    "change": lambda advice: advice.change,
}


def fit_table(statement: FitStatement) -> RowTable[FitAdvice]:
    places = {"gpus": 6, "saved_gpus": 6, "saved_per_hour": 6}
    rows = [rounded(advice, busy_ratio=6, **places) for advice in statement.rows]
    head = _head(rounded(statement, **places))
    return RowTable(_FIELDS, rows, [*_columns(statement)], head, "no workload holds a GPU in this time")


def fit_heading(statement: FitStatement) -> list[str]:
    """Write the period, how much of it was seen, and what all advice together would save."""
    seen = f"{utc_text(statement.start)} to {utc_text(statement.end)}, {coverage(statement.coverage)} seen"
    found = ", ".join(f"{number} {kind}" for kind, number in _counts(statement))
    saved = f"{gpu_number(statement.saved_gpus or 0.0)} of {gpus(statement.gpus)} to save"
    if statement.saved_per_hour is not None:
        saved += f", {money(statement.saved_per_hour, statement.currency)} an hour"
    demo = "DEMO, " if statement.demo else ""
    return [f"{demo}{seen}", f"{count(len(statement.rows), 'workload')}: {found}", saved]


def fit_problems(statement: FitStatement) -> list[str]:
    return [*statement.notices, *unpriced_texts(statement.unpriced)]


def explained(statement: FitStatement) -> list[str]:
    """Say why, and what to change, for each advice that changes something."""
    texts = []
    for advice in statement.rows:
        if advice.kind == LEAVE:
            continue
        to = f" {line(advice.to)}" if advice.to else ""
        beside = f" with {', '.join(line(str(name)) for name in advice.together)}" if advice.together else ""
        texts.append(f"{line(str(advice.workload))}: {advice.kind}{to}{beside}")
        texts.extend(f"  {line(sentence)}" for sentence in advice.why)
        texts.extend(f"  > {line(text)}" for text in advice.change.splitlines())
    return texts


def _counts(statement: FitStatement) -> Sequence[tuple[str, int]]:
    numbers = Counter(advice.kind for advice in statement.rows)
    return [(kind, numbers[kind]) for kind in ADVICE_KINDS if numbers[kind]]


def _columns(statement: FitStatement) -> Iterator[Column[FitAdvice]]:
    yield Column("WORKLOAD", lambda advice: line(str(advice.workload)))
    yield Column("KIND", lambda advice: line(advice.workload.kind), wide=True)
    yield Column("CONTAINER", lambda advice: line(advice.workload.container), wide=True)
    yield Column("MODEL", lambda advice: line(advice.workload.model).removeprefix("NVIDIA "), wide=True)
    yield Column("ADVICE", lambda advice: advice.kind)
    yield Column("TO", lambda advice: line(advice.to))
    yield Column("HAS", lambda advice: gpu_number(advice.gpus), number=True)
    yield Column("SAVES", lambda advice: gpu_number(advice.saved_gpus) if advice.saved_gpus else "", number=True)
    if statement.currency:
        yield Column(
            f"{statement.currency}/H",
            lambda advice: money(advice.saved_per_hour) if advice.saved_per_hour else "",
            number=True,
        )
    yield Column("PEAK GiB", lambda advice: gib(advice.peak_bytes), number=True)
    yield Column("OF GiB", lambda advice: gib(advice.memory_bytes), number=True, wide=True)
    yield Column("BUSY", lambda advice: percent(advice.busy_ratio), number=True)
    yield Column("SURE", lambda advice: advice.certainty)
    yield Column("WHY", lambda advice: line(advice.why[0]) if advice.why else UNKNOWN, wide=True)


def _head(statement: FitStatement) -> dict[str, Any]:
    terms = statement.terms
    return known(
        {
            "from": utc_text(statement.start),
            "to": utc_text(statement.end),
            "version": __version__,
            "demo": statement.demo,
            "headroom": terms.headroom,
            "percentile": terms.percentile,
            "release_after_seconds": terms.release_seconds,
            "step_seconds": statement.step_seconds,
            "coverage": statement.coverage,
            "gpus": statement.gpus,
            "saved_gpus": statement.saved_gpus,
            "saved_per_hour": statement.saved_per_hour,
            "currency": statement.currency or None,
            "prices": statement.prices or None,
            "unpriced": statement.unpriced,
            "notices": statement.notices,
            "counts": dict(_counts(statement)),
        }
    )


def fit_terms(statement: FitStatement) -> str:
    """State the rules of the advice."""
    terms = statement.terms
    return (
        f"Memory: the peak and {percent(terms.headroom)} headroom. Busy time: in {percent(terms.percentile)} of the "
        f"minutes. Release: not used for {duration(terms.release_seconds)}."
    )


def fit_page(statement: FitStatement) -> bytes:
    return render(_families(statement), Format.TEXT)


def _families(statement: FitStatement) -> Iterator[Family]:
    for name, row in _ROWS.items():
        family = Family(name, row.kind, row.help, row.worth, group=catalog.group_of(row))
        for advice in statement.rows:
            family.put(_value(name, advice, statement.end), *_labels(name, advice))
        yield family


def _labels(name: str, advice: FitAdvice) -> Iterator[Labels]:
    """The cluster is a label only if there are several: else the scraper adds it."""
    workload = advice.workload
    cluster = {"cluster": workload.cluster} if workload.cluster else {}
    values = (workload.namespace, workload.kind, workload.name, workload.container, workload.model)
    yield Labels.of({**cluster, **dict(zip(Scope.WORKLOAD.labels, values, strict=True))})
    if name.endswith("_info"):
        yield Labels.of({"advice": advice.kind, "to": advice.to, "certainty": advice.certainty})


def _value(name: str, advice: FitAdvice, end: float) -> float | None:
    values = {
        "info": 1.0,
        "gpus": advice.gpus,
        "saved_gpus": advice.saved_gpus,
        "peak_memory_bytes": advice.peak_bytes,
        "busy_ratio": advice.busy_ratio,
        "timestamp_seconds": end,
    }
    return values[name.removeprefix(f"{Scope.WORKLOAD.prefix}fit_")]
