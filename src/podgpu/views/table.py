"""The snapshot for a terminal: a line for each GPU, and below it its tenants."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from podgpu.insight.card_problems import switching_text
from podgpu.insight.tenants import IDLE, MINUTE, WAITING, idle_seconds, is_outsider, reading
from podgpu.insight.tenants import UNKNOWN as NOT_KNOWN
from podgpu.insight.without_claim import NOT_LISTED, NOT_UNDERSTOOD
from podgpu.model import BOUNDED, ESTIMATED, REPRESENTED, Card, GuestCard, Instance, Rest, Snapshot, Tenant
from podgpu.numbers import UNKNOWN, age, celsius, count, gib, gib_of, integer, moment, percent, watts
from podgpu.views.format import (
    REASONS,
    guests_text,
    is_visible,
    number_text,
    problem_line,
    use_text,
    visible_rest,
)
from podgpu.views.tenants import by_instance, excused_texts, full_name, owner_titles, pids
from podgpu.views.text import BOLD, DIM, GAP, RED, YELLOW, line, shortened, styled, table_row, width_of, wrapped

MAX_PIDS = 3
MAX_NAMED = 2
MAX_EXCUSED = 3
# From here on there is room for the PIDs.
WIDE = 110

_SHARE, _UTIL, _MEMORY, _POWER = 5, 4, 13, 7
_NUMBERS = range(1, 5)  # columns after the name
_METHOD, _PIDS = 9, 24
_NAME_LEAST = 12
_RANGES = {
    BOUNDED: "23% (12–34): proven to lie between the two.",
    ESTIMATED: "23% (~12–34): likely, not proven.",
}
_OF_MINUTE = "On such a card, UTIL and POWER are of the last full minute; see podgpu why POD."
_STATES = {
    WAITING: "waiting: given not long ago, and not used yet.",
    NOT_KNOWN: "unknown: whether it uses what it holds is not known; see podgpu why POD.",
}
_OF_CARD = "UTIL of a container is of the whole card; that of a MIG instance is of the instance."


def table(snapshot: Snapshot, width: int, *, colour: bool) -> str:
    def paragraph(text: str, style: str = "") -> str:
        return "".join(f"{styled(row, style, colour=colour)}\n" for row in wrapped(text, width))

    has_ranges = any(card.use is not None and card.use.period == MINUTE for card in snapshot.cards)
    page = [paragraph(_title(snapshot), BOLD)]
    if snapshot.cards:
        page += _card_lines(snapshot, width, colour=colour)
    else:
        page.append(paragraph("Every GPU is given to virtual machines." if snapshot.guests else "No GPU found."))
    notes = _legend(snapshot, has_ranges=has_ranges)
    if snapshot.guests:
        notes.append(f"Given to virtual machines, and not measured: {_guests(snapshot.guests)}.")
    notes += [f"Not charged: {text}." for text in _few(excused_texts(snapshot.cards))]
    page += [paragraph(note, DIM) for note in notes]
    for problem in snapshot.insight.problems if snapshot.insight else ():
        style = RED if problem.severity == "critical" else YELLOW if problem.severity == "warning" else DIM
        page.append(paragraph(f"! {problem_line(problem, with_node=False)}", style))
    return "".join(page)


def _legend(snapshot: Snapshot, *, has_ranges: bool) -> list[str]:
    """Explain the words and numbers of the table that need it."""
    tenants = [tenant for card in snapshot.cards for tenant in card.tenants]
    states = {tenant.holding.state for tenant in tenants if tenant.holding}
    notes = [text for state, text in _STATES.items() if state in states]
    if has_ranges:
        shown = {tenant.use.certainty for tenant in tenants if tenant.use}
        words = [text for certainty, text in _RANGES.items() if certainty in shown]
        notes.append(" ".join((*words, _OF_MINUTE)))
    return notes + [_OF_CARD] * any(card.instances for card in snapshot.cards)


def _guests(guests: Iterable[GuestCard]) -> str:
    return ", ".join(
        " ".join(filter(None, (line(guest.model).removeprefix("NVIDIA "), line(guest.pci_bus_id)))) for guest in guests
    )


def _few(texts: list[str]) -> list[str]:
    more = len(texts) - MAX_EXCUSED
    return [*texts[:MAX_EXCUSED], *([f"{integer(more)} more"] if more > 0 else [])]


def _title(snapshot: Snapshot) -> str:
    words = (
        f"REPLAY {moment(snapshot.taken_at)}" if snapshot.replayed else "",
        "DEMO" if snapshot.demo else "",
        line(snapshot.node),
        ", ".join(filter(None, (count(len(snapshot.cards), "GPU"), guests_text(snapshot.insight)))),
        f"driver {line(snapshot.driver_version)}" if snapshot.driver_version else "",
    )
    return "  ".join(filter(None, words))


class CardTableRow(NamedTuple):
    """A name and the cells after it: share, use, memory, power, method, PIDs. Containers are cut in the middle."""

    name: str
    cells: tuple[str, ...] = ()
    style: str = ""
    is_container: bool = False


def _card_lines(snapshot: Snapshot, width: int, *, colour: bool) -> list[str]:
    """A long name is cut, so that it cannot push the numbers off the screen. What has no numbers has the whole line."""
    uses = [tenant.use for card in snapshot.cards for tenant in card.tenants]
    uses += [rest.use for card in snapshot.cards for rest in visible_rest(card)]
    longest = max([_UTIL, *(len(use_text(use)) for use in uses)])
    columns = [("SHARE", _SHARE), ("UTIL", longest), ("MEMORY GiB", _MEMORY)]
    columns += [("POWER", _POWER), ("METHOD", _METHOD), *([("PIDS", _PIDS)] if width >= WIDE else [])]
    headings, sizes = zip(*columns, strict=True)
    rows = [CardTableRow("GPU", headings, BOLD)]
    for card in snapshot.cards:
        rows += _card_rows(card, snapshot.taken_at)
    room = max(width - sum(size + GAP for size in sizes), _NAME_LEAST)
    sizes = (min(room, max(width_of(row.name) for row in rows if row.cells)), *sizes)
    return [_line(row, sizes, colour=colour) for row in rows]


def _line(row: CardTableRow, sizes: Sequence[int], *, colour: bool) -> str:
    name, cells, style, is_container = row
    if is_container:
        indent = len(name) - len(name.lstrip())
        name = name[:indent] + shortened(name[indent:], sizes[0] - indent)
    if not cells:
        sizes = (sum(sizes) + GAP * (len(sizes) - 1),)
    return f"{styled(table_row((name, *cells), sizes, _NUMBERS).rstrip(), style, colour=colour)}\n"


def _card_rows(card: Card, now: float) -> Iterator[CardTableRow]:
    gpu = card.gpu
    name = f"{gpu.number}  {line(gpu.model).removeprefix('NVIDIA ') or UNKNOWN}"
    if card.fault is not None:
        yield CardTableRow(f"{name}  {line(card.fault.reason)}", style=RED)
        return
    heat = reading(card.readings, "temperature_celsius")
    facts = ["MIG"] * gpu.mig_enabled
    facts += [] if heat is None else [celsius(heat)]
    facts += [f"switching {lost}"] if (lost := switching_text(card)) else []
    power = watts(card.use.watts if card.use else None)
    yield CardTableRow("  ".join([name, *facts]), ("", use_text(card.use), _memory(card), power), BOLD)
    tenants = by_instance(card)
    for instance in card.instances:
        yield _instance_row(instance)
        yield from _tenant_rows(tenants.get(instance.mig.uuid, ()), now, indent=5)
    yield from _tenant_rows(tenants.get("", ()), now, indent=3)
    yield from map(_rest_row, visible_rest(card))


def _instance_row(instance: Instance) -> CardTableRow:
    mig = instance.mig
    ids = "/".join(filter(None, map(number_text, (mig.gpu_instance_id, mig.compute_instance_id))))
    name = f"   {line(mig.profile) or UNKNOWN}  {ids}".rstrip()
    return CardTableRow(name, ("", percent(reading(instance.readings, "sm_active_ratio")), _memory(instance)))


def _tenant_rows(tenants: Iterable[Tenant], now: float, indent: int) -> Iterator[CardTableRow]:
    for tenant in tenants:
        booking = tenant.booking
        used, limit = booking.memory_bytes, booking.memory_limit_bytes
        held = gib(used) if limit is None else gib_of(used, limit)
        power = watts(tenant.use.watts if tenant.use else None)
        numbers = (_share(tenant), use_text(tenant.use), held, power)
        cells = (*numbers, _method(tenant, now), pids(tenant.running, MAX_PIDS))
        yield CardTableRow(" " * indent + full_name(tenant.container), cells, is_container=True)
        if (seen := booking.sampling) and seen.found != REPRESENTED:
            shares = f"on the GPU {percent(seen.resident_ratio)}, sampled {percent(seen.named_ratio)}"
            yield CardTableRow(f"{' ' * (indent + 2)}{line(seen.found)}: {shares}")


def _method(tenant: Tenant, now: float) -> str:
    """Whether it uses what it holds; if it does, how its numbers were found."""
    held = tenant.holding
    seconds = idle_seconds(held, now)
    if seconds is not None:
        return f"{IDLE} {age(seconds)}"
    return held.state if held and held.state in _STATES else line(tenant.booking.method)


def _rest_row(rest: Rest) -> CardTableRow:
    running = rest.running
    many = f"({integer(len(running))})" if running else ""
    words = (REASONS.get(rest.reason, line(rest.reason)), many, owner_titles(running, MAX_NAMED))
    used = gib(rest.memory_bytes) if rest.memory_bytes else ""
    util = use_text(rest.use) if is_visible(rest.use) else ""
    power = "" if rest.use is None or rest.use.watts is None else watts(rest.use.watts)
    cells = ("", util, used, power, "", pids(running, MAX_PIDS))
    return CardTableRow("   " + " ".join(filter(None, words)), cells, DIM)


def _memory(device: Card | Instance) -> str:
    return gib_of(reading(device.readings, "memory_used_bytes"), reading(device.readings, "memory_total_bytes"))


def _share(tenant: Tenant) -> str:
    """Outside Kubernetes there are no shares, so a missing one is not worth a word."""
    is_unknown = bool(tenant.claims) or tenant.without_claim in (NOT_UNDERSTOOD, NOT_LISTED)
    if is_unknown and tenant.booking.allocated_ratio is None:
        return UNKNOWN
    if tenant.booking.allocated_ratio is None:
        return "" if is_outsider(tenant.container) else "none"
    return percent(tenant.booking.allocated_ratio)
