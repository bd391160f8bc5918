"""A statement of what fits as metric families."""

from collections.abc import Iterator

from podgpu import catalog
from podgpu.catalog.row import Scope
from podgpu.model.fit import FitAdvice, FitStatement
from podgpu.views.exposition import Format, render
from podgpu.views.series import Family, Labels

_ROWS = {name: rows[0] for name, rows in catalog.families().items() if rows[0].scope is Scope.WORKLOAD}


def fit_page(statement: FitStatement) -> bytes:
    return render(_families(statement), Format.TEXT)


def _families(statement: FitStatement) -> Iterator[Family]:
    for name, row in _ROWS.items():
        family = Family(name, row.kind, row.help, row.worth, group=catalog.group_of(row))
        for advice in statement.rows:
            family.put(_value(name, advice, statement.end), *_labels(name, advice))
        yield family


def _labels(name: str, advice: FitAdvice) -> Iterator[Labels]:
    """What is of several clusters says of which; else whoever scrapes it does."""
    who = advice.workload
    cluster = {"cluster": who.cluster} if who.cluster else {}
    values = (who.namespace, who.kind, who.name, who.container, who.model)
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
