"""A page that outgrows its budget loses its least valuable families."""

from collections.abc import Sequence

from podgpu.views.series import Family, count


def fit(families: Sequence[Family], limit: int) -> tuple[list[Family], dict[str, int]]:
    """Return the families that fit, in page order, and the number of series dropped by family.

    Cut first is the lowest worth, within it the largest family, within that the later one. A family is cut
    whole: `sum()` over a part of one would be a wrong number that looks right.
    """
    excess = count(families) - limit
    order = sorted(enumerate(families), key=lambda at: (at[1].worth.value, -len(at[1].samples), -at[0]))
    cut = set()
    dropped: dict[str, int] = {}
    for position, family in order:
        if excess <= 0:
            break
        size = len(family.samples)
        excess -= size
        cut.add(position)
        dropped[family.name] = dropped.get(family.name, 0) + size
    kept = [family for position, family in enumerate(families) if position not in cut]
    return kept, {name: size for name, size in dropped.items() if size}
