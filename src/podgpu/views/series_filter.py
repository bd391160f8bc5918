"""Which series a page has: those that the user chose, and of these those within its limit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from podgpu import catalog
from podgpu.catalog.row import Scope
from podgpu.views.series import Family, count

NAMES = frozenset(catalog.families())  # of podgpu's own metrics
GROUPS = catalog.GROUPS  # that a client can ask for
LEVELS = ("billing", "node", "pod", "container", "process")
BILLING, NODE, POD, CONTAINER, PROCESS = LEVELS
# What `podgpu report` is made of, and what says whether it was scraped.
BILLED = frozenset(
    {
        *(f"podgpu_{name}" for name in ("build_info", "up", "series_dropped_total", "pod_info", "gpu_info")),
        *(
            f"podgpu_gpu_{name}_total"
            for name in ("booked_busy_seconds", "booked_energy_joules", "energy_joules")
        ),
        *(f"podgpu_unattributed_{name}_total" for name in ("busy_seconds", "energy_joules")),
        *(
            f"podgpu_container_{name}_total"
            for name in ("allocated_seconds", "busy_seconds", "busy_bound_seconds", "energy_joules")
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFilter:
    """`level` is how far down series go, and `detail` whether those of little worth are included.

    `allow` and `deny` are names of families, in which `*` stands for anything. `deny` takes precedence.
    """

    level: str = CONTAINER
    detail: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def has_scope(self, scope: Scope) -> bool:
        if scope is Scope.PROCESS:
            return self.level == PROCESS
        return scope is not Scope.CONTAINER or self.level != NODE

    def has_native(self, name: str) -> bool:
        """Whether podgpu's own page has the family at this level."""
        return self.level != BILLING or name in BILLED

    def apply(self, families: Iterable[Family]) -> list[Family]:
        if not (self.allow or self.deny):
            return list(families)
        return [family for family in families if self._is_chosen(family.name)]

    def _is_chosen(self, name: str) -> bool:
        is_allowed = not self.allow or any(fnmatchcase(name, pattern) for pattern in self.allow)
        return is_allowed and not any(fnmatchcase(name, pattern) for pattern in self.deny)


EVERYTHING = SeriesFilter(detail=True)


@dataclass(frozen=True, slots=True)
class FamilyQuery:
    """What a client asks for: families by name, or by the group that they are in."""

    names: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def matches(self, family: Family) -> bool:
        return family.name in self.names or family.group in self.groups


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
