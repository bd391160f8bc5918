"""What a PromQL expression asks for: the series it selects and the labels it names."""

from dataclasses import dataclass

import promql_parser as ast

_SIGNS = {"MatchOp.Equal": "=", "MatchOp.NotEqual": "!=", "MatchOp.Re": "=~", "MatchOp.NotRe": "!~"}


@dataclass(frozen=True)
class Matcher:
    label: str
    is_regex: bool
    is_negative: bool
    value: str

    def __str__(self) -> str:
        sign = ("!" if self.is_negative else "=") + ("~" if self.is_regex else "=" if self.is_negative else "")
        escaped = self.value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{self.label}{sign}"{escaped}"'


@dataclass(frozen=True)
class Selector:
    metric: str
    matchers: tuple[Matcher, ...]

    def __str__(self) -> str:
        return f"{self.metric}{{{', '.join(map(str, self.matchers))}}}"


def selectors(expression: str) -> list[Selector]:
    """Every selector of the expression, without the time it looks at."""
    found = (_selector(node) for node in _nodes(expression) if isinstance(node, ast.VectorSelector))
    return list(dict.fromkeys(found))


def grouped_labels(expression: str) -> set[str]:
    """The labels that aggregations keep."""
    found: set[str] = set()
    for node in _nodes(expression):
        if isinstance(node, ast.AggregateExpr) and node.modifier:
            found |= set(node.modifier.labels)
    return found


def matched_labels(expression: str) -> set[str]:
    """The labels that joins go by, and those that they bring over."""
    found: set[str] = set()
    for node in _nodes(expression):
        if isinstance(node, ast.BinaryExpr) and node.modifier:
            found |= set(node.modifier.matching.labels if node.modifier.matching else ())
            found |= set(node.modifier.group_labels or ())
    return found


def made_labels(expression: str) -> set[str]:
    """The labels that the expression writes itself."""
    return {
        node.args[1].val
        for node in _nodes(expression)
        if isinstance(node, ast.Call) and node.func.name == "label_replace"
    }


def _nodes(expression: str) -> list[ast.Expr]:
    found: list[ast.Expr] = []
    ast.walk(ast.parse(expression), found.append)
    return found


def _selector(node: ast.VectorSelector) -> Selector:
    matchers = tuple(_matcher(matcher) for matcher in node.matchers.matchers if matcher.name != "__name__")
    return Selector(node.name or "", matchers)


def _matcher(matcher: ast.Matcher) -> Matcher:
    sign = _SIGNS[str(matcher.op)]
    return Matcher(matcher.name, "~" in sign, "!" in sign, matcher.value)
