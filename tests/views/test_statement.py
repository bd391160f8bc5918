"""What a bill says besides its sums: what was wasted, and what is missing."""

from msgspec.structs import replace

from podgpu.model import Coverage, GpuCoverage, Statement, StatementLine
from podgpu.model.statement import total_of
from podgpu.views.statement import findings, report_table, short_heading

HOUR = 3_600_000_000
START = 1_793_491_200.0  # 2026-11-01
LINE = StatementLine(
    kind="group", group={"namespace": "ml"}, held_us=10 * HOUR, busy_us=4 * HOUR, charged=10 * HOUR, cost_units=3500
)


def bill(*lines: StatementLine, **facts: object) -> Statement:
    made = Statement(
        start=START,
        end=START + 36_000,
        by=("namespace",),
        lines=lines,
        total=total_of(lines),
        currency="EUR",
        coverage=Coverage(seen_us=10 * HOUR),
    )
    return replace(made, **facts)


def wasted(statement: Statement) -> list[tuple[object, object]]:
    table = report_table(statement, {})
    rows = [*({name: field(row) for name, field in table.fields.items()} for row in table.rows), table.head["total"]]
    return [(row.get("wasted_hours"), row.get("wasted_cost")) for row in rows]


def test_what_was_held_and_not_used_costs_what_the_group_pays_for_its_time() -> None:
    assert wasted(bill(LINE)) == [(6.0, 21.0), (6.0, 21.0)]


def test_who_uses_more_than_it_holds_wastes_nothing() -> None:
    assert wasted(bill(replace(LINE, busy_us=12 * HOUR)))[0] == (0.0, 0.0)


def test_waste_is_known_only_where_both_sides_are() -> None:
    unknown = (
        replace(LINE, busy_us=None),
        replace(LINE, held_us=None),
        replace(LINE, unsized_us=HOUR),
        replace(LINE, kind="free", group={}),
    )
    assert [wasted(bill(line))[0] for line in unknown] == [(None, None)] * len(unknown)


def test_waste_without_a_price_has_no_cost_and_neither_has_the_sum() -> None:
    unpriced = replace(LINE, group={"namespace": "web"}, cost_units=None)
    assert wasted(bill(LINE, unpriced)) == [(6.0, 21.0), (6.0, None), (12.0, None)]
    assert wasted(bill(LINE, basis="energy"))[0] == (6.0, None)


def test_a_share_of_what_nobody_held_is_no_price_of_waste() -> None:
    assert wasted(bill(replace(LINE, cost_units=4500, shared_units=1000)))[0] == (6.0, 21.0)


def test_a_bill_says_what_it_lacks() -> None:
    gap = GpuCoverage(cluster="", node="gpu-1", uuid="GPU-1", model="H200", coverage=Coverage(unseen_us=HOUR))
    incomplete = bill(LINE, by_gpu=(gap,), coverage=Coverage(unseen_us=HOUR), unpriced=("H100",), notices=("late",))
    assert [(found["title"], found["text"]) for found in findings(incomplete)] == [
        ("Incomplete", "1 GPU hour of 1 GPU were not seen, on gpu-1. See why the agents were not scraped."),
        ("No price", "There is none for H100. Add it to the file of --price."),
        ("Notice", "late"),
    ]
    assert findings(bill(LINE)) == []


def test_the_heading_names_time_zone_currency_and_basis() -> None:
    told = "1 Nov 2026 00:00 to 1 Nov 2026 10:00 UTC · GPU-hours and EUR · by held time · 100% seen"
    assert short_heading(bill(LINE)) == told
