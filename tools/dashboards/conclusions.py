"""What a dashboard may ask: numbers that podgpu publishes, added up, never a conclusion of the dashboard's own.

A query is forbidden

* a comparison, except `> 0` of a divisor, which only keeps it from dividing by nothing;
* `unless`, which concludes from what is absent;
* `and` with anything but a published series, which is there where podgpu concluded so.

`Query.order` excuses a query that compares for another reason, and says for which.
"""

import re
from collections.abc import Iterator
from typing import Any

import promql_parser as ast

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Query

_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})
_LOWEST = "lowest"  # an order of series, and no excuse


def complaints(board: Dashboard) -> Iterator[str]:
    for panel in board.panels:
        for query in panel.queries:
            found = list(conclusions(query))
            is_excused = query.order not in ("", _LOWEST)
            if is_excused and not found:
                yield f"{board.uid}: {panel.title}: nothing is compared there ({query.order})"
            elif not is_excused:
                yield from (f"{board.uid}: {panel.title}: {what}" for what in found)


def conclusions(query: Query) -> Iterator[str]:
    """Say what the query concludes itself."""
    text = re.sub(r"\$__\w+_m?s\b", "60", query.promql)
    yield from _of(ast.parse(re.sub(r"\$__\w+", "5m", text)))


def _of(node: Any, *, divides: bool = False) -> Iterator[str]:
    if isinstance(node, ast.ParenExpr):
        yield from _of(node.expr, divides=divides)
    elif isinstance(node, ast.BinaryExpr):
        sign = str(node.op)
        if sign in _COMPARISONS and not (divides and sign == ">" and _is_zero(node.rhs)):
            yield f"it compares with {sign}"
        elif sign == "unless":
            yield "it concludes from what is absent (unless)"
        elif sign == "and" and not isinstance(_bare(node.rhs), ast.VectorSelector):
            yield "it joins with what podgpu does not publish (and)"
        yield from _of(node.lhs)
        yield from _of(node.rhs, divides=sign == "/")
    elif isinstance(node, ast.Call):
        for argument in node.args:
            yield from _of(argument)
    elif isinstance(node, ast.AggregateExpr | ast.SubqueryExpr | ast.UnaryExpr):
        yield from _of(node.expr)


def _bare(node: Any) -> Any:
    return _bare(node.expr) if isinstance(node, ast.ParenExpr) else node


def _is_zero(node: Any) -> bool:
    return isinstance(node, ast.NumberLiteral) and node.val == 0
