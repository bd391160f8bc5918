"""A statement as rows: what `podgpu report` and the page show, and what they write as JSON and CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import msgspec

from podgpu import __version__
from podgpu.insight.problem_kind import few
from podgpu.model import ESTIMATED, ChargePeriod, Statement, StatementLine, total_of
from podgpu.model.kube import total_of_known
from podgpu.model.statement import MICROSECONDS_PER_HOUR
from podgpu.numbers import (
    LIKELY,
    UNKNOWN,
    bare,
    column,
    column_range,
    count,
    coverage,
    duration,
    minute,
    money,
    percent,
    write,
)
from podgpu.option.times import utc_text
from podgpu.views.format import STATEMENT_ROWS, unpriced_texts
from podgpu.views.row_table import Column, RowTable, csv_text, json_text, known
from podgpu.views.text import cut, line, shortened

Row = dict[str, Any]
SECONDS_PER_DAY = 86_400
_WASTE = ("wasted_hours", "wasted_cost")


def report_table(
    statement: Statement, request: Mapping[str, Any], *, has_total: bool = False, describes_rows: bool = False
) -> RowTable[Row]:
    """`request` is what it takes to make the report again. With `has_total`, the sum stands below the rows.

    With `describes_rows`, each row repeats what is said about the whole bill, as CSV needs it.
    """
    shown = (*statement.lines, statement.total) if has_total and statement.lines else statement.lines
    about = _about(statement) if describes_rows else {}
    rows = [
        {name: each.group.get(name, "") for name in statement.by}
        | {
            "row": each.kind,
            **_numbers(each, statement.digits),
            **_waste(statement, [each]),
            **_certainty(each),
            **about,
        }
        for each in shown
    ]
    names = (*statement.by, "row", *_numbers(statement.total, statement.digits), *_WASTE, "certainty", *about)
    fields = {name: itemgetter(name) for name in names}
    empty = "the store has no counters of podgpu in this time; check --prometheus.url, --from and --to"
    return RowTable(fields, rows, [*_report_columns(statement)], _report_head(statement, request), empty)


def report_json(statement: Statement, request: Mapping[str, Any], *, has_periods: bool = False) -> str:
    """With `has_periods`, also what the groups had in each charge period."""
    table = report_table(statement, request)
    if has_periods:
        table = replace(table, head={**table.head, "periods": _periods(statement)})
    return json_text(table)


def report_csv(statement: Statement, request: Mapping[str, Any]) -> str:
    return csv_text(report_table(statement, request, describes_rows=True))


def heading(statement: Statement) -> tuple[str, str]:
    """Write what the rows do not say: the period, the basis and how much was seen; then what the bill was made from."""
    parts = [f"{utc_text(statement.start, 'seconds')} to {utc_text(statement.end, 'seconds')}", f"by {statement.basis}"]
    if statement.share != "none":
        parts.append(
            f"the rest shared by {statement.share} hours" if statement.share == "held" else "the rest shared evenly"
        )
    parts += [statement.currency] if statement.currency else []
    parts.append(f"{coverage(statement.coverage.ratio)} seen")
    jobs = [f"job {job}" for job in statement.jobs if job]
    made_of = [f"podgpu {__version__}", *jobs, *_price_list(statement), f"inputs {statement.inputs_sha256[:12]}"]
    return ("DEMO, " if statement.demo else "") + ", ".join(parts), ", ".join(made_of)


_BASES = {
    "held": "by held time",
    "used": "by used time",
    "greater": "by the greater of held and used time",
    "energy": "by energy",
}
_SHARES = {"held": "the rest shared by held hours", "even": "the rest shared evenly"}


def short_heading(statement: Statement) -> str:
    """The period, the currency, the basis and how much was seen, for a line above the rows."""
    parts = (
        f"{minute(statement.start)} to {minute(statement.end)} UTC",
        f"GPU-hours and {statement.currency}" if statement.currency else "GPU-hours, no prices",
        _BASES.get(statement.basis, statement.basis),
        _SHARES.get(statement.share, ""),
        f"{coverage(statement.coverage.ratio)} seen",
    )
    return " · ".join(filter(None, parts))


def _price_list(statement: Statement) -> list[str]:
    return [f"{model} {price}" for model, price in statement.prices.items()]


def report_notes(statement: Statement) -> list[str]:
    """Explain the rows in brackets."""
    kinds = {each.kind for each in statement.lines}
    return [f"{name}: {text}." for kind, (name, text) in STATEMENT_ROWS.items() if kind in kinds]


def problems(statement: Statement) -> list[str]:
    """Say what the bill lacks, in a sentence each."""
    listed = [*dispute_texts(statement), *statement.notices, *unpriced_texts(statement.unpriced)]
    if statement.demo:
        listed.append("DEMO: some of these numbers are made up, by an agent that runs the demo or a recording")
    unseen = [gpu for gpu in statement.by_gpu if gpu.coverage.unseen_us]
    if unseen:
        where = few(sorted({gpu.node for gpu in unseen}))
        time = bare("gpu hours", statement.coverage.unseen_us / MICROSECONDS_PER_HOUR)
        listed.append(
            f"the bill is incomplete: {time} GPU-hours of {count(len(unseen), 'GPU')} were not seen, on {where}; "
            "see why the agents were not scraped, or give --allow-gaps or --min-coverage"
        )
    if holders := [each for each in statement.lines if each.unsized_us]:
        who = few([_name(each, statement.by) for each in holders])
        time = duration(statement.total.unsized_us / 1_000_000)
        listed.append(
            f"the bill is incomplete: {who} held shares of unknown size for {time}, which is in no hour of this bill; "
            "see `podgpu doctor` on the nodes"
        )
    return listed


def findings(statement: Statement) -> list[dict[str, str]]:
    """What the bill lacks, each with a word that says what kind of lack it is."""
    listed = [("Disputed", dispute.detail) for dispute in statement.disputes]
    unseen = [gpu for gpu in statement.by_gpu if gpu.coverage.unseen_us]
    if unseen:
        hours = write("gpu hours", statement.coverage.unseen_us / MICROSECONDS_PER_HOUR)
        where = few(sorted({gpu.node for gpu in unseen}))
        text = f"{hours} of {count(len(unseen), 'GPU')} were not seen, on {where}. See why the agents were not scraped."
        listed.append(("Incomplete", text))
    if statement.total.unsized_us:
        time = duration(statement.total.unsized_us / 1_000_000)
        text = f"Shares of unknown size were held for {time}, which is in no hour of this bill."
        listed.append(("Incomplete", f"{text} See podgpu doctor on the nodes."))
    listed += [
        ("No price", f"There is none for {model}. Add it to the file of --price.") for model in statement.unpriced
    ]
    listed += [("Notice", text) for text in statement.notices]
    return [{"title": title, "text": text} for title, text in listed]


MOST_DISPUTES = 5


def dispute_texts(statement: Statement) -> list[str]:
    """Say what is disputed, in a sentence each, and how much more there is."""
    shown = [f"disputed: {dispute.detail}" for dispute in statement.disputes[:MOST_DISPUTES]]
    more = len(statement.disputes) - len(shown)
    return [*shown, f"disputed: {more} more, which -o json has"] if more else shown


def _name(each: StatementLine, by: Sequence[str]) -> str:
    return _group_name({**each.group, "row": each.kind}, by)


def _numbers(sums: StatementLine, digits: int) -> dict[str, float | None]:
    """Hours and kWh for people, and exact numbers: costs and counters add up to the last digit."""
    ends = {end: getattr(sums.busy_range, end, None) for end in ("least", "most", "likely_least", "likely_most")}
    hours = {
        "gpu_hours": sums.gpu_hours,
        "busy_hours": sums.busy_hours,
        **{f"busy_hours_{end}": _per_hour(microseconds) for end, microseconds in ends.items()},
        "energy_kwh": sums.energy_kwh,
        "coverage": sums.coverage,
        "unknown_share_hours": _per_hour(sums.unsized_us or None),
    }
    # An integer of the books, divided once: its shortest decimal is that integer exactly.
    exact = {
        "cost": (sums.cost_units, 10**digits),
        "shared_cost": (sums.shared_units, 10**digits),
        "gpu_seconds": (sums.held_us, 1_000_000),
        "busy_seconds": (sums.busy_us, 1_000_000),
        "energy_joules": (sums.energy_mj, 1_000),
    }
    return {
        **{name: None if value is None else round(value, 6) for name, value in hours.items()},
        **{name: None if value is None else value / unit for name, (value, unit) in exact.items()},
    }


def _waste(statement: Statement, lines: Sequence[StatementLine]) -> dict[str, float | None]:
    """What these groups held and did not use, and its cost; absent if a part of it has none."""
    wasteful = [each for each in lines if each.wasted_us is not None]
    costs = [statement.wasted_units(each) for each in wasteful]
    known_costs = [units for units in costs if units is not None]
    hours = total_of_known(each.wasted_us for each in wasteful)
    is_priced = bool(costs) and len(known_costs) == len(costs)
    return {
        "wasted_hours": None if hours is None else round(hours / MICROSECONDS_PER_HOUR, 6),
        "wasted_cost": sum(known_costs) / 10**statement.digits if is_priced else None,
    }


def _periods(statement: Statement) -> list[dict[str, Any]]:
    """The sums of the groups, period by period: what nobody held is no group's."""
    return [
        known(
            {
                "name": _period_name(period),
                "from": utc_text(period.start, "seconds"),
                "to": utc_text(period.end, "seconds"),
                **_group_sums([each for each in period.lines if each.kind == "group"], statement),
            }
        )
        for period in statement.periods
    ]


def _period_name(period: ChargePeriod) -> str:
    """Write `2026-11-16`, and if it is no whole day, how much of it is in the bill."""
    length = period.end - period.start
    rest = "" if length >= SECONDS_PER_DAY else f", {duration(length)}"
    return f"{utc_text(period.start)[:10]}{rest}"


def _group_sums(groups: Sequence[StatementLine], statement: Statement) -> dict[str, float | None]:
    sums = _numbers(total_of(groups), statement.digits)
    return {name: sums[name] for name in ("gpu_hours", "busy_hours", "cost")} | _waste(statement, groups)


def _certainty(sums: StatementLine) -> dict[str, str | None]:
    return {"certainty": sums.busy_range.certainty if sums.busy_range else None}


def _per_hour(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / MICROSECONDS_PER_HOUR


def _about(statement: Statement) -> dict[str, Any]:
    """What each row of CSV repeats about the whole bill: a spreadsheet has no other place for it."""
    return {
        "from": utc_text(statement.start, "seconds"),
        "to": utc_text(statement.end, "seconds"),
        "zone": "UTC",
        "currency": statement.currency,
        "price_list": "; ".join(_price_list(statement)),
        "basis": statement.basis,
        "share": statement.share,
        "bill_coverage": statement.coverage.ratio,
        "complete": str(statement.complete).lower(),
        "demo": str(statement.demo).lower(),
        "version": __version__,
        "notices": "; ".join(problems(statement)),
        "inputs_sha256": statement.inputs_sha256,
    }


def _report_head(statement: Statement, request: Mapping[str, Any]) -> dict[str, Any]:
    covered = statement.coverage
    head = {
        **_about(statement),
        "by": statement.by,
        "gpus": statement.gpus,
        "currency": statement.currency or None,
        "currency_decimals": statement.digits if statement.currency else None,
        "prices": statement.prices or None,
        "complete": statement.complete,
        "demo": statement.demo,
        "coverage": {
            "ratio": covered.ratio,
            "seen_gpu_hours": _per_hour(covered.seen_us),
            "unseen_gpu_hours": _per_hour(covered.unseen_us),
            "absent_gpu_hours": _per_hour(covered.absent_us),
            "gpus": [
                {
                    "node": gpu.node,
                    "uuid": gpu.uuid,
                    "model": gpu.model,
                    "seen_seconds": gpu.coverage.seen_us / 1_000_000,
                    "unseen_seconds": gpu.coverage.unseen_us / 1_000_000,
                    "absent_seconds": gpu.coverage.absent_us / 1_000_000,
                }
                for gpu in statement.by_gpu
            ],
        },
        "notices": statement.notices,
        "heading": short_heading(statement),
        "findings": findings(statement),
        "jobs": statement.jobs,
        "ignored_jobs": statement.ignored_jobs,
        "disputes": [known(msgspec.to_builtins(dispute)) for dispute in statement.disputes],
        "unpriced": statement.unpriced,
        "total": known({**_numbers(statement.total, statement.digits), **_waste(statement, statement.lines)}),
        "request": request,
    }
    del head["bill_coverage"], head["price_list"]
    return known(head)


def _report_columns(statement: Statement) -> Iterator[Column[Row]]:
    title = "/".join(name.removeprefix("label_").removeprefix("workload_") for name in statement.by)
    sums, digits = statement.total, statement.digits
    # The name of a workload is the last part.
    yield Column(
        title.upper(), lambda row: _group_name(row, statement.by), cut=cut if len(statement.by) > 2 else shortened
    )
    yield _hours("GPU-HOURS", "gpu_hours", sums.gpu_hours)
    yield _hours("BUSY-HOURS", "busy_hours", sums.busy_hours)
    if statement.basis == "used":
        yield Column("RANGE", lambda row: _range(row, sums.busy_hours), number=True)
        yield _hours("LEAST", "busy_hours_least", sums.busy_hours, wide=True)
        yield _hours("MOST", "busy_hours_most", sums.busy_hours, wide=True)
    yield Column("USE", _use, number=True)
    yield Column("KWH", lambda row: column("kilowatt hours", row["energy_kwh"], sums.energy_kwh), number=True)
    if statement.currency:
        yield Column(f"COST {statement.currency}", lambda row: money(row["cost"], digits=digits), number=True)
        yield Column("SHARED", lambda row: money(row["shared_cost"], digits=digits), number=True, wide=True)
    yield Column("SEEN", lambda row: coverage(row["coverage"]), number=True, wide=True)


def _hours(title: str, name: str, total: float | None, *, wide: bool = False) -> Column[Row]:
    return Column(title, lambda row: column("gpu hours", row[name], total), number=True, wide=wide)


def _group_name(row: Row, by: Sequence[str]) -> str:
    if row["row"] in STATEMENT_ROWS:
        return STATEMENT_ROWS[row["row"]][0]
    return "/".join(line(row[name]) or UNKNOWN for name in by)


def _range(row: Row, total: float | None) -> str:
    """Write the range that is to be read, or in a word how sure the number is."""
    span = column_range("gpu hours", row["busy_hours_likely_least"], row["busy_hours_likely_most"], total)
    mark = LIKELY if row["certainty"] == ESTIMATED else ""
    return f"{mark}{span}" if span else row["certainty"] or UNKNOWN


def _use(row: Row) -> str:
    is_held = row["row"] in ("group", "total") and row["gpu_hours"] and not row["unknown_share_hours"]
    known = is_held and row["busy_hours"] is not None
    return percent(row["busy_hours"] / row["gpu_hours"]) if known else UNKNOWN
