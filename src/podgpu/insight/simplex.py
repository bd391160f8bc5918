"""Solves small linear programs exactly, by the simplex method with fractions."""

from collections.abc import Sequence
from fractions import Fraction

NOTHING = Fraction(0)


def largest(gains: Sequence[int], rows: Sequence[Sequence[int]]) -> tuple[Fraction, list[Fraction]]:
    """Find weights, none below 0, that gain most if no row weighs more than 1.

    Returns the gain, and for each row by how much more the gain would be if the row might weigh 1 more. Each gain must
    be limited by a row, or there is no largest.
    """
    columns, slacks = len(gains), len(rows)
    table = [
        [*map(Fraction, row), *(Fraction(number == other) for other in range(slacks)), Fraction(1)]
        for number, row in enumerate(rows)
    ]
    costs = [*(Fraction(-gain) for gain in gains), *[NOTHING] * slacks, NOTHING]
    basis = list(range(columns, columns + slacks))
    # Bland's rule, always the first that gains, cannot run in circles.
    while (enters := next((at for at, cost in enumerate(costs[:-1]) if cost < 0), None)) is not None:
        _, _, leaves = min(
            (row[-1] / row[enters], basis[number], number)
            for number, row in enumerate(table)
            if row[enters] > 0
        )
        pivot = table[leaves][enters]
        table[leaves] = [value / pivot for value in table[leaves]]
        basis[leaves] = enters
        for row in (*table[:leaves], *table[leaves + 1 :], costs):
            factor = row[enters]
            if factor:
                row[:] = [value - factor * own for value, own in zip(row, table[leaves], strict=True)]
    return costs[-1], costs[columns:-1]
