"""A plan as rows: what `podgpu fit --plan` shows, and what it writes as JSON and CSV."""

from collections.abc import Iterator
from typing import Any

import msgspec

from podgpu import __version__
from podgpu.model.fit import MIG, PlanMinute, PlanPool, PlanStatement
from podgpu.numbers import count, coverage, duration, energy, integer, memory, money, percent, times, watts
from podgpu.option.times import utc_text
from podgpu.views.row_table import Column, Fields, RowTable, known, rounded
from podgpu.views.text import line

MOST_MINUTES = 5  # that people are shown


def plan_table(plan: PlanStatement) -> RowTable[PlanPool]:
    places = {"above_least": 4, "slowdown_least": 3, "slowdown_most": 3, "free_ratio": 4, "useless_ratio": 4}
    rows = [rounded(pool, **places, saved_per_hour=6) for pool in plan.pools]
    empty = "no workload holds a GPU that the plan divides"
    return RowTable(_fields(plan), rows, [*_columns(plan)], _head(plan), empty)


def plan_heading(plan: PlanStatement) -> list[str]:
    """Write the period, and how many cards the plan needs."""
    seen = f"{utc_text(plan.start)} to {utc_text(plan.end)}, {coverage(plan.coverage)} seen"
    now, cards, least = (
        sum(getattr(pool, name) for pool in plan.pools) for name in ("cards_now", "cards", "least_cards")
    )
    is_short = cards < least
    text = f"plan {plan.plan.text}: {count(cards, 'card')} {'used' if is_short else 'needed'}"
    text += f", there are {'only ' if cards > now else ''}{integer(now)}"
    if least:
        text += f"; {'too few: ' if is_short else ''}no plan needs fewer than {integer(least)}"
    return [("DEMO, " if plan.demo else "") + seen, text]


def plan_sentences(plan: PlanStatement) -> list[str]:
    """Write what would have gone wrong, on the worst cards, and what would be saved."""
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


def _fields(plan: PlanStatement) -> Fields[PlanPool]:
    step = plan.step_seconds
    return {
        "cluster": lambda pool: pool.cluster,
        "model": lambda pool: pool.model,
        "plan": lambda _: plan.plan.text,
        "cards_now": lambda pool: pool.cards_now,
        "cards": lambda pool: pool.cards,
        "least_cards": lambda pool: pool.least_cards,
        "above_least_ratio": lambda pool: pool.above_least,
        "solver": lambda pool: pool.solver,
        "replicas": lambda pool: pool.replicas,
        "whole": lambda pool: pool.whole,
        "full_seconds": lambda pool: pool.full_minutes * step,
        "slower_least_seconds": lambda pool: pool.slower_minutes_least * step,
        "slower_most_seconds": lambda pool: pool.slower_minutes_most * step,
        "slowdown_least": lambda pool: pool.slowdown_least,
        "slowdown_most": lambda pool: pool.slowdown_most,
        "free_ratio": lambda pool: pool.free_ratio,
        "useless_ratio": lambda pool: pool.useless_ratio,
        "idle_watts": lambda pool: pool.idle_watts,
        "saved_joules": lambda pool: pool.saved_joules,
        "saved_per_hour": lambda pool: pool.saved_per_hour,
    }


def _columns(plan: PlanStatement) -> Iterator[Column[PlanPool]]:
    step = plan.step_seconds
    yield Column("CLUSTER", lambda pool: line(pool.cluster), wide=True)
    yield Column("MODEL", lambda pool: line(pool.model).removeprefix("NVIDIA "))
    yield Column("NOW", lambda pool: integer(pool.cards_now), number=True)
    yield Column("PLAN", lambda pool: integer(pool.cards), number=True)
    yield Column("LEAST", lambda pool: integer(pool.least_cards), number=True)
    yield Column("WHOLE", lambda pool: integer(pool.whole), number=True, wide=True)
    yield Column("TOO FULL", lambda pool: duration(pool.full_minutes * step), number=True)
    yield Column("TOO BUSY", lambda pool: _too_busy(pool, step), number=True)
    yield Column("SLOWER", lambda pool: f"{times(pool.slowdown_least)}–{times(pool.slowdown_most)}", number=True)
    yield Column("FREE", lambda pool: percent(pool.free_ratio), number=True, wide=True)
    yield Column("USELESS", lambda pool: percent(pool.useless_ratio), number=True)
    if plan.currency:
        yield Column(
            f"{plan.currency}/H", lambda pool: money(pool.saved_per_hour) if pool.saved_per_hour else "", number=True
        )
    yield Column("BY", lambda pool: pool.solver, wide=True)


def _too_busy(pool: PlanPool, step: int) -> str:
    least, most = pool.slower_minutes_least * step, pool.slower_minutes_most * step
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
