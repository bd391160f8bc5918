"""Prints what `podgpu fit --plan` found."""

from argparse import Namespace
from typing import TYPE_CHECKING

from podgpu.cli._cp_sat import improver
from podgpu.cli._output import FOR_PEOPLE, FORMATS, print_problems, print_sentences, print_table
from podgpu.errors import UserError
from podgpu.insight.plan.statement import plan_statement
from podgpu.views.plan import plan_heading, plan_sentences, plan_table

if TYPE_CHECKING:
    from podgpu.cluster.fit.fitting import FitEvidence
    from podgpu.model.fit import PlanLayout

WARNED = 1  # exit code


def print_plan(evidence: "FitEvidence", layout: "PlanLayout", arguments: Namespace) -> int:
    if arguments.output not in FORMATS:
        raise UserError(f"-o {arguments.output} is of the advice; leave out --plan, or give another format")
    found = plan_statement(evidence.uses, evidence.facts, layout, evidence.pools, improver())
    is_for_people = arguments.output in FOR_PEOPLE and not arguments.no_headers
    if is_for_people:
        print(*plan_heading(found), "", sep="\n\n" if arguments.output == "markdown" else "\n")
    print_table(plan_table(found), arguments)
    if is_for_people:
        print_sentences(plan_sentences(found))
    print_problems(found.notices)
    return WARNED if found.notices else 0
