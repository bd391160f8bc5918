"""What was had of the GPUs between two times, and by whom."""

from collections.abc import Iterable

from msgspec import Struct

from podgpu.model.quantity import total_of_known

SECONDS_PER_HOUR = 3600
_MICROSECONDS_PER_HOUR = SECONDS_PER_HOUR * 1_000_000
_MILLIJOULES_PER_KWH = 3_600_000_000

# What a line is about. `group`: what the report is grouped by. `unattributed`: what podgpu booked to no container.
# `unbooked`: what the GPUs used and nobody booked, mostly while no agent was running. `free`: time that nobody held.
KINDS = ("group", "unattributed", "unbooked", "free")


class StatementLine(Struct, frozen=True, kw_only=True):
    """Sums, in the books' own integers. A field that nobody measured is absent."""

    kind: str  # one of KINDS
    group: dict[str, str] = {}  # such as {"namespace": "ml"}; empty for the other kinds
    held_us: int | None = None  # microseconds of whole GPUs: the share that was given, times time
    busy_us: int | None = None  # microseconds in which the GPU worked
    energy_mj: int | None = None  # millijoules
    cost: float | None = None  # of the time that was held; absent without a price for every GPU in it

    @property
    def gpu_hours(self) -> float | None:
        return None if self.held_us is None else self.held_us / _MICROSECONDS_PER_HOUR

    @property
    def busy_hours(self) -> float | None:
        return None if self.busy_us is None else self.busy_us / _MICROSECONDS_PER_HOUR

    @property
    def energy_kwh(self) -> float | None:
        return None if self.energy_mj is None else self.energy_mj / _MILLIJOULES_PER_KWH


class Statement(Struct, frozen=True, kw_only=True):
    """The lines add up to the total, which is what the GPUs themselves counted."""

    start: float  # seconds since 1970; what was counted after it
    end: float  # seconds since 1970; what was counted until then
    by: tuple[str, ...]  # the names of the columns that make a group
    lines: tuple[StatementLine, ...] = ()  # groups, most held first; then the other kinds
    total: StatementLine = StatementLine(kind="total")  # of all GPUs; with a filter, of the lines
    currency: str = ""  # of the costs; empty without prices
    gpus: int = 0  # how many were seen
    unpriced: tuple[str, ...] = ()  # models that have no price
    notices: tuple[str, ...] = ()  # what may be missing, in words


def total_of(lines: Iterable[StatementLine]) -> StatementLine:
    """Add lines up. A cost that is not known for one of them is not known for all."""
    all_lines = list(lines)
    costs = [line.cost for line in all_lines if line.held_us is not None]
    return StatementLine(
        kind="total",
        held_us=total_of_known(line.held_us for line in all_lines),
        busy_us=total_of_known(line.busy_us for line in all_lines),
        energy_mj=total_of_known(line.energy_mj for line in all_lines),
        cost=sum(cost for cost in costs if cost is not None) if costs and None not in costs else None,
    )
