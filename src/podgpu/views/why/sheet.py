"""The books of one card: everybody on it, and the sum that shows whether they balance."""

from decimal import Decimal

from msgspec import Struct

from podgpu.model import ENDED, Balance, Booking, Device, Remainder, Snapshot
from podgpu.views.glance import UNKNOWN
from podgpu.views.tenancy import REASONS, full_name
from podgpu.views.text import line, shortened

_HEADINGS = ("memory bytes", "busy seconds", "energy joules")
_COLUMN = 17
_LEAST_NAME = 8


class _Row(Struct, frozen=True):
    name: str
    memory: int | None
    busy_us: int
    energy_mj: int


def sheet(snapshot: Snapshot, uuid: str, width: int, indent: int) -> list[str]:
    device = next((one for one in snapshot.devices if one.gpu.uuid == uuid), None)
    rows = [_booking(one, device) for one in snapshot.bookings if one.gpu == uuid]
    rows += [_remainder(one) for one in snapshot.remainders if one.gpu == uuid and _counts(one)]
    balance = next((one for one in snapshot.balances if one.gpu == uuid), None)
    if not rows or balance is None:
        return []
    total = _Row("sum", _memory(rows), sum(one.busy_us for one in rows), sum(one.energy_mj for one in rows))
    booked = _Row("booked of the GPU", balance.memory_bytes, balance.busy_us, balance.energy_mj)
    name_width = max(width - indent - _COLUMN * len(_HEADINGS), _LEAST_NAME)
    margin = " " * indent
    head = " " * name_width + "".join(f"{heading:>{_COLUMN}}" for heading in _HEADINGS)
    written = [_written(row, name_width) for row in (*rows, total, booked)]
    return [f"{margin}{text}" for text in (head, *written, _verdict(total, balance))]


def profile(device: Device | None, mig: str) -> str:
    instances = device.instances if device else ()
    return next((line(one.mig.profile) for one in instances if one.mig.uuid == mig), "")


def decimal(number: int, places: int) -> str:
    return f"{Decimal(number).scaleb(-places):f}"


def _booking(one: Booking, device: Device | None) -> _Row:
    ended = "ended:" if one.ended else ""
    name = " ".join(filter(None, (ended, profile(device, one.mig), full_name(one.container))))
    return _Row(name, one.memory_bytes, one.busy_us, one.energy_mj)


def _counts(one: Remainder) -> bool:
    return bool(one.memory_bytes or one.busy_us or one.energy_mj)


def _remainder(one: Remainder) -> _Row:
    name = REASONS.get(one.reason, line(one.reason))
    return _Row(
        name if one.reason == ENDED else f"no pod: {name}", one.memory_bytes, one.busy_us, one.energy_mj
    )


def _memory(rows: list[_Row]) -> int | None:
    known = [one.memory for one in rows if one.memory is not None]
    return sum(known) if known else None


def _written(row: _Row, name_width: int) -> str:
    memory = UNKNOWN if row.memory is None else str(row.memory)
    numbers = (memory, decimal(row.busy_us, 6), decimal(row.energy_mj, 3))
    name = shortened(row.name, name_width - 1)
    return f"{name:<{name_width}}" + "".join(f"{number:>{_COLUMN}}" for number in numbers)


def _verdict(total: _Row, balance: Balance) -> str:
    memory_fits = balance.memory_bytes is None or (total.memory or 0) == balance.memory_bytes
    if memory_fits and (total.busy_us, total.energy_mj) == (balance.busy_us, balance.energy_mj):
        return "The books balance."
    return "The books do NOT balance. Please report this with the JSON snapshot."
