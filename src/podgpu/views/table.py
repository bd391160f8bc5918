"""The snapshot for a terminal: a line for each GPU, and below it those who use it."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Literal

from podgpu.model import Card, Instance, Rest, Snapshot, Tenant
from podgpu.views.advice import next_step
from podgpu.views.glance import UNKNOWN, gib, glance, memory, percent, problem, watts, whole
from podgpu.views.outsider import is_outsider, named
from podgpu.views.rest import REASONS, present
from podgpu.views.tenant import UNSEEN, UNSEEN_MEANS, any_unseen, by_instance, full_name, pids
from podgpu.views.text import line, shortened

if TYPE_CHECKING:
    from rich.table import Table

MAX_PIDS = 3
MAX_NAMED = 2
MAX_UNCLAIMED = 3
# From here on there is room for the PIDs.
WIDE = 110

_NUMBERS: tuple[tuple[str, int], ...] = (("SHARE", 5), ("UTIL", 4), ("MEMORY GiB", 13), ("POWER", 6))
_METHOD, _PIDS = 9, 24
_GAP = 2
_NAME_MOST = 60


def table(snapshot: Snapshot, width: int, *, colour: bool) -> str:
    from rich.console import Console

    out = StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(_title(snapshot), style="bold")
    if snapshot.cards:
        console.print(_Grid(width).filled(snapshot))
    else:
        console.print("No GPU found.")
    if any_unseen(snapshot.cards):
        console.print(f"{UNSEEN}: {UNSEEN_MEANS}.", style="dim")
    for note in _notes(snapshot):
        console.print(note, style="red")
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines()) + "\n"


def _title(snapshot: Snapshot) -> str:
    count = len(snapshot.cards)
    words = ["DEMO" if snapshot.demo else "", line(snapshot.node), f"{count} GPU" + "s" * (count != 1)]
    if snapshot.driver_version:
        words.append(f"driver {line(snapshot.driver_version)}")
    return "  ".join(filter(None, words))


class _Grid:
    """Rows of a name, numbers, the method and, where there is room, PIDs."""

    def __init__(self, width: int) -> None:
        self._wide = width >= WIDE
        taken = sum(size + _GAP for _, size in _NUMBERS) + _GAP + _METHOD
        taken += _GAP + _PIDS if self._wide else 0
        self._name_width = min(max(width - taken, 12), _NAME_MOST)
        self._table = self._empty()

    def filled(self, snapshot: Snapshot) -> Table:
        for card in snapshot.cards:
            self._add_card(card)
        return self._table

    def _empty(self) -> Table:
        from rich.table import Table

        grid = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
        columns: list[tuple[str, int, Literal["left", "right"]]] = [("GPU", self._name_width, "left")]
        columns += [(heading, size, "right") for heading, size in _NUMBERS]
        columns.append(("METHOD", _METHOD, "left"))
        columns += [("PIDS", _PIDS, "left")] if self._wide else []
        for heading, size, side in columns:
            # A long name is cut; it must not push the numbers off the screen.
            grid.add_column(heading, justify=side, no_wrap=True, overflow="ellipsis", width=size)
        return grid

    def _add_card(self, card: Card) -> None:
        gpu = card.gpu
        name = f"{gpu.index}  {line(gpu.model).removeprefix('NVIDIA ') or UNKNOWN}"
        name = f"{line(gpu.node)}  {name}" if gpu.node else name
        if card.fault is not None:
            self._add(f"{name}  {line(card.fault.reason)}", style="red")
            return
        seen = glance(card.readings)
        facts = ["MIG"] * gpu.mig_enabled
        facts += [] if seen.temperature_celsius is None else [whole(seen.temperature_celsius, "°C")]
        numbers = ("", percent(seen.utilization_ratio), memory(seen), whole(seen.power_watts, "W"))
        self._add("  ".join([name, *facts]), *numbers, style="bold")
        tenants = by_instance(card)
        for instance in card.instances:
            self._add_instance(instance, tenants.get(instance.mig.uuid, ()))
        self._add_tenants(tenants.get("", ()), indent=3)
        for rest in present(card):
            self._add_rest(rest)

    def _add_instance(self, instance: Instance, tenants: Sequence[Tenant]) -> None:
        mig, seen = instance.mig, glance(instance.readings)
        name = f"   {line(mig.profile) or UNKNOWN}  {mig.gpu_instance_id}/{mig.compute_instance_id}"
        self._add(name, "", percent(seen.sm_active_ratio), memory(seen))
        self._add_tenants(tenants, indent=5)

    def _add_tenants(self, tenants: Sequence[Tenant], indent: int) -> None:
        for tenant in tenants:
            booking = tenant.booking
            name = " " * indent + shortened(full_name(tenant.container), self._name_width - indent)
            used = gib(booking.memory_bytes)
            if booking.memory_limit_bytes is not None:
                used = f"{used} / {gib(booking.memory_limit_bytes)}"
            numbers = (_share(tenant), percent(booking.sm_ratio), used, watts(booking.power_watts))
            self._add(name, *numbers, _method(tenant), pids(tenant.running, MAX_PIDS))

    def _add_rest(self, rest: Rest) -> None:
        running = rest.running
        count = f"({len(running)})" if running else ""
        words = (REASONS.get(rest.reason, line(rest.reason)), count, named(running, MAX_NAMED))
        name = "   " + " ".join(filter(None, words))
        used = gib(rest.memory_bytes) if rest.memory_bytes else ""
        self._add(name, "", "", used, "", "", pids(running, MAX_PIDS), style="dim")

    def _add(self, *cells: str, style: str | None = None) -> None:
        from rich.text import Text

        # Text, not str: a name in square brackets is a name, not markup.
        self._table.add_row(*(Text(cell) for cell in cells[: len(self._table.columns)]), style=style)


def _share(tenant: Tenant) -> str:
    """Nobody gives a share to those outside Kubernetes, so that they have none is no finding."""
    if tenant.booking.allocated_ratio is None:
        return "" if is_outsider(tenant.container) else "none"
    return percent(tenant.booking.allocated_ratio)


def _method(tenant: Tenant) -> str:
    """How its numbers were found; whether it has a process there at all comes first."""
    if tenant.idle is None:
        return UNSEEN
    return "idle" if tenant.idle else line(tenant.booking.method)


def _notes(snapshot: Snapshot) -> list[str]:
    """Why something is missing, and what to do about it."""
    faults = [(f"GPU {card.gpu.index}", card.fault, "") for card in snapshot.cards]
    faults += [(line(part.name), part.fault, part.name) for part in snapshot.parts if not part.up]
    notes = [
        f"{name}: {problem(fault)}. {next_step(fault, part)}"
        for name, fault, part in faults
        if fault is not None
    ]
    return notes + _unclaimed(snapshot)


def _unclaimed(snapshot: Snapshot) -> list[str]:
    found = snapshot.unclaimed
    notes = [
        f"{full_name(one)}: no sharing system knows the device {line(one.device_id)} of {line(one.resource)}."
        for one in found[:MAX_UNCLAIMED]
    ]
    more = [f"{len(found) - MAX_UNCLAIMED} more such devices."] if len(found) > MAX_UNCLAIMED else []
    return notes + more
