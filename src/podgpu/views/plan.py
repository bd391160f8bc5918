"""A plan as rows: what `podgpu fit --plan` shows, and what it writes as JSON and CSV."""

from typing import Any

import msgspec
from msgspec import Struct

from podgpu import __version__
from podgpu.model.fit import MIG, PlanMinute, PlanPool, PlanStatement
from podgpu.numbers import count, coverage, duration, energy, integer, memory, money, percent, times, watts
from podgpu.option.times import utc_text
from podgpu.views.row_table import Column, RowTable, known
from podgpu.views.text import line

MOST_MINUTES = 5  # that people are shown


class PlanRow(Struct, frozen=True, kw_only=True):
    cluster: str
    model: str
    plan: str
    cards_now: int
    cards: int
    least_cards: int
    above_least_ratio: float
    solver: str
    replicas: int
    whole: int
    full_seconds: int
    slower_least_seconds: int
    slower_most_seconds: int
    slowdown_least: float
    slowdown_most: float
    free_ratio: float
    useless_ratio: float
    idle_watts: float | None = None
    saved_joules: float | None = None
    saved_per_hour: float | None = None


def plan_row(pool: PlanPool, plan: PlanStatement) -> PlanRow:
    return PlanRow(
        cluster=pool.cluster,
        model=pool.model,
        plan=plan.plan.text,
        cards_now=pool.cards_now,
        cards=pool.cards,
        least_cards=pool.least_cards,
        above_least_ratio=round(pool.above_least, 4),
        solver=pool.solver,
        replicas=pool.replicas,
        whole=pool.whole,
        full_seconds=pool.full_minutes * plan.step_seconds,
        slower_least_seconds=pool.slower_minutes_least * plan.step_seconds,
        slower_most_seconds=pool.slower_minutes_most * plan.step_seconds,
        slowdown_least=round(pool.slowdown_least, 3),
        slowdown_most=round(pool.slowdown_most, 3),
        free_ratio=round(pool.free_ratio, 4),
        useless_ratio=round(pool.useless_ratio, 4),
        idle_watts=pool.idle_watts,
        saved_joules=pool.saved_joules,
        saved_per_hour=None if pool.saved_per_hour is None else round(pool.saved_per_hour, 6),
    )


def plan_table(plan: PlanStatement) -> RowTable[PlanRow]:
    rows = [plan_row(pool, plan) for pool in plan.pools]
    return RowTable(PlanRow, rows, _columns(plan), _head(plan), "no workload holds a GPU that the plan divides")


def plan_heading(plan: PlanStatement) -> list[str]:
    """Say of when the minutes are, and what the plan comes to."""
    seen = f"{utc_text(plan.start)} to {utc_text(plan.end)}, {coverage(plan.coverage)} seen"
    now, cards, least = (
        sum(getattr(pool, name) for pool in plan.pools) for name in ("cards_now", "cards", "least_cards")
    )
    text = f"plan {plan.plan.text}: {count(cards, 'card')} of {integer(now)}"
    if cards < least:
        text += f", where {integer(least)} are needed at least"
    elif least:
        text += f" needed, {percent(cards / least - 1)} above the least, {integer(least)}"
    return [("DEMO, " if plan.demo else "") + seen, text]


def plan_sentences(plan: PlanStatement) -> list[str]:
    """Say below the table what went wrong, on the worst cards, and what would be saved."""
    worst = {
        (pool.cluster, pool.model, minute.card): minute for pool in plan.pools for minute in reversed(pool.minutes)
    }
    ranked = sorted(worst.items(), key=lambda each: (-each[1].missing_bytes, -each[1].busy_least, each[0]))
    found = [f"{line(model)}: {_minute(minute)}" for (_, model, _), minute in ranked[:MOST_MINUTES]]
    if len(ranked) > MOST_MINUTES:
        found.append(
            f"{count(len(ranked) - MOST_MINUTES, 'more card')} would have been too full; -o json names minutes."
        )
    joules = sum(pool.saved_joules or 0.0 for pool in plan.pools)
    if joules > 0:
        idle = sum(pool.idle_watts or 0.0 for pool in plan.pools)
        found.append(f"Idle, the cards that are not needed take {watts(idle)}: {energy(joules)} in this time.")
    if plan.plan.kind != MIG and any(pool.slowdown_most > 1 for pool in plan.pools):
        found.append("SLOWER is of work done over time. The latency of a single request may suffer more.")
    return found


def _minute(minute: PlanMinute) -> str:
    names = ", ".join(line(str(name)) for name in minute.workloads)
    begin = f"at {utc_text(minute.at)} card {minute.card} with {names}"
    if minute.missing_bytes:
        return f"{begin} would have lacked {memory(minute.missing_bytes)}."
    return f"{begin} would have had work for {times(minute.busy_least)} its time at least."


def _columns(plan: PlanStatement) -> tuple[Column[PlanRow], ...]:
    costs: Column[PlanRow] = Column(
        f"{plan.currency}/H", lambda row: money(row.saved_per_hour) if row.saved_per_hour else "", number=True
    )
    return (
        Column("CLUSTER", lambda row: line(row.cluster), wide=True),
        Column("MODEL", lambda row: line(row.model).removeprefix("NVIDIA ")),
        Column("NOW", lambda row: integer(row.cards_now), number=True),
        Column("PLAN", lambda row: integer(row.cards), number=True),
        Column("LEAST", lambda row: integer(row.least_cards), number=True),
        Column("WHOLE", lambda row: integer(row.whole), number=True, wide=True),
        Column("TOO FULL", lambda row: duration(row.full_seconds), number=True),
        Column("TOO BUSY", lambda row: _range(row.slower_least_seconds, row.slower_most_seconds), number=True),
        Column("SLOWER", lambda row: f"{times(row.slowdown_least)}–{times(row.slowdown_most)}", number=True),
        Column("FREE", lambda row: percent(row.free_ratio), number=True, wide=True),
        Column("USELESS", lambda row: percent(row.useless_ratio), number=True),
        *((costs,) if plan.currency else ()),
        Column("BY", lambda row: row.solver, wide=True),
    )


def _range(least: float, most: float) -> str:
    return duration(least) if least == most else f"{duration(least)} – {duration(most)}"


def _head(plan: PlanStatement) -> dict[str, Any]:
    return known(
        {
            "from": utc_text(plan.start),
            "to": utc_text(plan.end),
            "version": __version__,
            "demo": plan.demo,
            "plan": plan.plan.text,
            "headroom": plan.terms.headroom,
            "percentile": plan.terms.percentile,
            "step_seconds": plan.step_seconds,
            "coverage": plan.coverage,
            "currency": plan.currency or None,
            "notices": plan.notices,
            "minutes": [
                {"model": pool.model, "cluster": pool.cluster, **msgspec.to_builtins(minute)}
                for pool in plan.pools
                for minute in pool.minutes
            ],
            "layout": [
                {"model": pool.model, "cluster": pool.cluster, "cards": msgspec.to_builtins(pool.layout)}
                for pool in plan.pools
            ],
        }
    )
