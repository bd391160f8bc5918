"""Prints what `podgpu fit --plan` found. OR-Tools' CP-SAT improves a plan, where that is installed."""

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podgpu.assembly.machine import has_package
from podgpu.cli._output import is_for_people, print_problems, print_sentences, print_table
from podgpu.insight.packing import Counts, Improver, Packing, Place, parts_of
from podgpu.insight.plan.statement import plan_statement
from podgpu.views.plan import plan_heading, plan_sentences, plan_table

if TYPE_CHECKING:
    from podgpu.cluster.fit.statement import FitEvidence
    from podgpu.model.fit import PlanLayout

WARNED = 1  # exit code
SOLVER = "CP-SAT"
MOST_CHOICES = 60_000  # demands times cards: a larger pool keeps the plan it has
SECONDS = 20.0


def print_plan(evidence: "FitEvidence", layout: "PlanLayout", arguments: Namespace) -> int:

    statement = plan_statement(evidence.uses, evidence.facts, layout, evidence.pools, improver())
    if is_for_people(arguments):
        print(*plan_heading(statement), "", sep="\n\n" if arguments.output == "markdown" else "\n")
    print_table(plan_table(statement), arguments)
    print_sentences(plan_sentences(statement), arguments)
    print_problems(statement.notices)
    return WARNED if statement.notices else 0


def improver() -> Improver | None:
    return improved if has_package("ortools") else None


def improved(demands: Sequence[Counts], capacity: Counts, packing: Packing) -> Packing:
    """Return a plan with fewer cards, or with a better bound; the same one if there is nothing to gain."""
    if packing.cards <= packing.least_cards or len(demands) * packing.cards > MOST_CHOICES:
        return packing
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    cards = range(packing.cards)
    # The nth largest is on one of the first n cards: the same plan with other numbers of cards is no other plan.
    order = sorted(range(len(demands)), key=lambda at: (-max(parts_of(demands[at], capacity)), at))
    is_on = {number: [model.new_bool_var("") for _ in cards[: rank + 1]] for rank, number in enumerate(order)}
    is_used = [model.new_bool_var("") for _ in cards]
    for choices in is_on.values():
        model.add_exactly_one(choices)
    for card in cards:
        for measure, most in enumerate(capacity):
            own = [demands[number][measure] * choices[card] for number, choices in is_on.items() if card < len(choices)]
            model.add(sum(own) <= most * is_used[card])
    model.add(sum(is_used) >= packing.least_cards)
    model.minimize(sum(is_used))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = SECONDS
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    least = max(packing.least_cards, round(solver.best_objective_bound))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE) or solver.objective_value >= packing.cards:
        return Packing(places=packing.places, cards=packing.cards, least_cards=least, solver=packing.solver)
    chosen = [
        next(card for card, choice in enumerate(is_on[number]) if solver.value(choice))
        for number in range(len(demands))
    ]
    numbers = {card: number for number, card in enumerate(sorted(set(chosen)))}
    return Packing(
        places=tuple(Place(numbers[card]) for card in chosen),
        cards=len(numbers),
        least_cards=least,
        solver=SOLVER,
    )
