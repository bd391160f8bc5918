"""The books of one card: everybody on it, and the sum that shows whether they balance."""

from msgspec import Struct

from podgpu.insight.problems.cards import adds_up
from podgpu.model import ENDED, Card, Rest, Tenant
from podgpu.numbers import UNKNOWN, exact
from podgpu.views.format import REASONS
from podgpu.views.tenants import full_name
from podgpu.views.text import line, shortened

_HEADINGS = ("memory bytes", "busy seconds", "energy joules")
_COLUMN = 17
_LEAST_NAME = 8
_USUAL_NAME = 27  # wider only for longer names, so that numbers stay near them


class _Row(Struct, frozen=True):
    name: str
    memory: int | None
    busy_us: int
    energy_mj: int


def sheet(card: Card, width: int, indent: int, *, has_books: bool) -> list[str]:
    profiles, balance = _profiles(card), card.balance
    rows = [_tenant(one, profiles) for one in card.tenants]
    rows += [_tenant(one, profiles, "ended:") for one in card.ended]
    rows += [_rest(one) for one in card.rest if one.memory_bytes or one.busy_us or one.energy_mj]
    if not rows or balance is None:
        return []
    total = _Row("sum", _memory(rows), sum(one.busy_us for one in rows), sum(one.energy_mj for one in rows))
    booked = _Row("booked of the GPU", balance.memory_bytes, balance.busy_us, balance.energy_mj)
    longest = max(len(one.name) for one in (*rows, total, booked))
    room = min(width - indent - _COLUMN * len(_HEADINGS), max(longest + 1, _USUAL_NAME))
    name_width = max(room, _LEAST_NAME)
    margin = " " * indent
    head = " " * name_width + "".join(f"{heading:>{_COLUMN}}" for heading in _HEADINGS)
    written = [_written(row, name_width) for row in (*rows, total, booked)]
    verdict = [_verdict(card)] if has_books else []
    return [f"{margin}{text}" for text in (head, *written, *verdict)]


def profile(card: Card, mig: str) -> str:
    return _profiles(card).get(mig, "")


def _profiles(card: Card) -> dict[str, str]:
    return {one.mig.uuid: line(one.mig.profile) for one in card.instances}


def _tenant(one: Tenant, profiles: dict[str, str], standing: str = "") -> _Row:
    name = " ".join(filter(None, (standing, profiles.get(one.mig, ""), full_name(one.container))))
    return _Row(name, one.booking.memory_bytes, one.booking.busy_us, one.booking.energy_mj)


def _rest(one: Rest) -> _Row:
    name = REASONS.get(one.reason, line(one.reason))
    name = name if one.reason == ENDED else f"no pod: {name}"
    return _Row(name, one.memory_bytes, one.busy_us, one.energy_mj)


def _memory(rows: list[_Row]) -> int | None:
    known = [one.memory for one in rows if one.memory is not None]
    return sum(known) if known else None


def _written(row: _Row, name_width: int) -> str:
    memory = UNKNOWN if row.memory is None else exact(row.memory, 0)
    numbers = (memory, exact(row.busy_us, 6), exact(row.energy_mj, 3))
    name = shortened(row.name, name_width - 1)
    return f"{name:<{name_width}}" + "".join(f"{number:>{_COLUMN}}" for number in numbers)


def _verdict(card: Card) -> str:
    if adds_up(card):
        return "The books balance."
    return "The books do NOT balance. Please report this with the JSON snapshot."
