"""A problem as one line of text."""

from collections.abc import Iterable

from podgpu.model import Problem
from podgpu.numbers import integer
from podgpu.views.text import line


def sentence(problem: Problem, *, with_node: bool) -> str:
    """`with_node`: there are several, so the line says on which one it is."""
    named = (
        f"{line(problem.node)}: " if with_node and problem.node and problem.node not in problem.text else ""
    )
    more = f" And {integer(problem.more)} more like it." if problem.more else ""
    return f"{named}{line(problem.text)}{more}"


def sentences(problems: Iterable[Problem], *, with_node: bool) -> list[str]:
    return [sentence(problem, with_node=with_node) for problem in problems]
