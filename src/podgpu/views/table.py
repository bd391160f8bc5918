"""The snapshot for a terminal: a line for each GPU, and below it those who use it."""

from collections.abc import Iterable, Sequence
from io import StringIO

from podgpu.model import Allocation, Card, Instance, Rest, Snapshot, Tenant
from podgpu.views.advice import next_step
from podgpu.views.glance import (
    UNKNOWN,
    Uses,
    age,
    gib,
    glance,
    memory,
    moment,
    percent,
    problem,
    switching,
    watts,
    whole,
)
from podgpu.views.outsider import is_outsider, named
from podgpu.views.rest import REASONS, present
from podgpu.views.tenant import (
    UNSEEN,
    UNSEEN_MEANS,
    any_unseen,
    by_instance,
    full_name,
    idle_seconds,
    is_unseen,
    pids,
)
from podgpu.views.text import fitted, line, shortened

MAX_PIDS = 3
MAX_NAMED = 2
MAX_UNCLAIMED = 3
# From here on there is room for the PIDs.
WIDE = 110

_SHARE, _UTIL, _UTIL_BOUNDED, _MEMORY, _POWER = 5, 4, 13, 13, 6
_NUMBERS = 4  # columns of numbers, after the name
_METHOD, _PIDS = 9, 24
_GAP = 2
_NAME_MOST = 60
_BOUNDS = "23% (12–34): of the last full minute, and what it was at least and at most; see podgpu why POD."
_OF_CARD = "UTIL of a container is of the whole card; that of a MIG instance is of the instance."
_PLAIN, _BOLD, _DIM, _RED = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m"


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
    cards = [(card, Uses(card, glance(card.readings).utilization_ratio)) for card in snapshot.cards]
    has_bounds = any(uses.is_minute for _, uses in cards)
    if cards:
        grid = _Grid(width, snapshot.taken_at, has_bounds=has_bounds, colour=colour)
        out.write(grid.filled(cards))
    else:
        console.print("No GPU found.")
    if any_unseen(snapshot.cards):
        console.print(f"{UNSEEN}: {UNSEEN_MEANS}.", style="dim")
    if has_bounds:
        console.print(_BOUNDS, style="dim")
    if any(card.instances for card in snapshot.cards):
        console.print(_OF_CARD, style="dim")
    for note in _notes(snapshot):
        console.print(note, style="red")
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines()) + "\n"


def _title(snapshot: Snapshot) -> str:
    count = len(snapshot.cards)
    replay = f"REPLAY {moment(snapshot.taken_at)}" if snapshot.replayed else ""
    words = [
        replay,
        "DEMO" if snapshot.demo else "",
        line(snapshot.node),
        f"{count} GPU" + "s" * (count != 1),
    ]
    if snapshot.driver_version:
        words.append(f"driver {line(snapshot.driver_version)}")
    return "  ".join(filter(None, words))


class _Grid:
    """Rows of a name, numbers, the method and, where there is room, PIDs.

    A column has a fixed size, and a long name is cut: it must not push the numbers off the screen. So rows are written
    one by one; rich's own table takes twenty times as long, which shows with a thousand cards.
    """

    def __init__(self, width: int, now: float, *, has_bounds: bool, colour: bool) -> None:
        util = _UTIL_BOUNDED if has_bounds else _UTIL
        numbers = (("SHARE", _SHARE), ("UTIL", util), ("MEMORY GiB", _MEMORY), ("POWER", _POWER))
        wide = (("PIDS", _PIDS),) if width >= WIDE else ()
        after = (*numbers, ("METHOD", _METHOD), *wide)
        self._now = now
        self._name_width = min(max(width - sum(size + _GAP for _, size in after), 12), _NAME_MOST)
        self._sizes = (self._name_width, *(size for _, size in after))
        self._colour = colour
        self._lines: list[str] = []
        self._add("GPU", *(heading for heading, _ in after), style=_BOLD)

    def filled(self, cards: Iterable[tuple[Card, Uses]]) -> str:
        for card, uses in cards:
            self._add_card(card, uses)
        return "".join(self._lines)

    def _add_card(self, card: Card, uses: Uses) -> None:
        gpu = card.gpu
        name = f"{gpu.index}  {line(gpu.model).removeprefix('NVIDIA ') or UNKNOWN}"
        if card.fault is not None:
            self._add(f"{name}  {line(card.fault.reason)}", style=_RED)
            return
        seen = glance(card.readings)
        facts = ["MIG"] * gpu.mig_enabled
        facts += [] if seen.temperature_celsius is None else [whole(seen.temperature_celsius, "°C")]
        facts += [f"switching {lost}"] if (lost := switching(card)) else []
        numbers = ("", str(uses.of_card), memory(seen), whole(seen.power_watts, "W"))
        self._add("  ".join([name, *facts]), *numbers, style=_BOLD)
        tenants = by_instance(card)
        for instance in card.instances:
            self._add_instance(card, uses, instance, tenants.get(instance.mig.uuid, ()))
        self._add_tenants(card, uses, tenants.get("", ()), indent=3)
        for rest in present(card):
            self._add_rest(rest, uses)

    def _add_instance(self, card: Card, uses: Uses, instance: Instance, tenants: Sequence[Tenant]) -> None:
        mig, seen = instance.mig, glance(instance.readings)
        name = f"   {line(mig.profile) or UNKNOWN}  {mig.gpu_instance_id}/{mig.compute_instance_id}"
        self._add(name, "", percent(seen.sm_active_ratio), memory(seen))
        self._add_tenants(card, uses, tenants, indent=5)

    def _add_tenants(self, card: Card, uses: Uses, tenants: Sequence[Tenant], indent: int) -> None:
        for tenant in tenants:
            booking = tenant.booking
            name = " " * indent + shortened(full_name(tenant.container), self._name_width - indent)
            used = gib(booking.memory_bytes)
            if booking.memory_limit_bytes is not None:
                used = f"{used} / {gib(booking.memory_limit_bytes)}"
            numbers = (_share(tenant), str(uses.of_tenant(tenant)), used, watts(booking.power_watts))
            self._add(name, *numbers, self._method(tenant, card), pids(tenant.running, MAX_PIDS))
            if (seen := booking.sampling) and seen.evades:
                shares = f"{percent(seen.resident_ratio)}, named {percent(seen.named_ratio)}"
                self._add(f"{' ' * (indent + 2)}evades samples: {shares}", style=_RED)

    def _method(self, tenant: Tenant, card: Card) -> str:
        """How its numbers were found; whether it has a process there at all comes first."""
        if is_unseen(tenant, card):
            return UNSEEN
        if not tenant.idle:
            return line(tenant.booking.method)
        seconds = idle_seconds(tenant, self._now)
        return "idle" if seconds is None else f"idle {age(seconds)}"

    def _add_rest(self, rest: Rest, uses: Uses) -> None:
        running = rest.running
        count = f"({len(running)})" if running else ""
        words = (REASONS.get(rest.reason, line(rest.reason)), count, named(running, MAX_NAMED))
        name = "   " + " ".join(filter(None, words))
        used = gib(rest.memory_bytes) if rest.memory_bytes else ""
        use = uses.of_rest(rest)
        util = str(use) if use.shows else ""
        power = "" if rest.power_watts is None else watts(rest.power_watts)
        self._add(name, "", util, used, power, "", pids(running, MAX_PIDS), style=_DIM)

    def _add(self, *cells: str, style: str = "") -> None:
        sizes = zip(cells, self._sizes, strict=False)
        row = (" " * _GAP).join(
            [fitted(cell, size, right=0 < n <= _NUMBERS) for n, (cell, size) in enumerate(sizes)]
        )
        self._lines.append(f"{style}{row}{_PLAIN}\n" if style and self._colour else f"{row}\n")


def _share(tenant: Tenant) -> str:
    """Nobody gives a share to those outside Kubernetes, so that they have none is no finding."""
    if tenant.claims and tenant.booking.allocated_ratio is None:
        return UNKNOWN
    if tenant.booking.allocated_ratio is None:
        return "" if is_outsider(tenant.container) else "none"
    return percent(tenant.booking.allocated_ratio)


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


def _not_claimed(one: Allocation) -> str:
    device = f"the device {line(one.device_id)} of {line(one.resource)}"
    return f"another pod has {device} too" if one.disputed else f"no sharing system knows {device}"


def _unclaimed(snapshot: Snapshot) -> list[str]:
    found = snapshot.unclaimed
    notes = [f"{full_name(one)}: {_not_claimed(one)}." for one in found[:MAX_UNCLAIMED]]
    more = [f"{len(found) - MAX_UNCLAIMED} more such devices."] if len(found) > MAX_UNCLAIMED else []
    return notes + more
