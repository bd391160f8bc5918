"""Groups the catalog's rows into as few NVML calls as possible, and turns the answers into readings."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pynvml
from msgspec import Struct

from podgpu.catalog import device_rows
from podgpu.catalog.row import Cadence, Call, Field, Gpm, Metric
from podgpu.model import Reading
from podgpu.sources.nvml.handle import CallTracker, Handle

# How NVML writes "not available" in each width of number, and DCGM's blank values.
SENTINELS = frozenset({2**32 - 1, 2**64 - 1, *range(2**31 - 16, 2**31 - 12), *range(2**63 - 16, 2**63 - 12)})

FIELD_CALL = "nvmlDeviceGetFieldValues"
FIELD_VALUE = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
}


class Plan(Struct, frozen=True):
    """The calls and fields for one kind of handle at one cadence."""

    calls: dict[tuple[str, tuple[int, ...]], list[Metric]]
    fields: dict[tuple[int, int], Metric]

    @classmethod
    def of(cls, rows: Iterable[Metric]) -> "Plan":
        plan = cls(defaultdict(list), {})
        for row in rows:
            if isinstance(row.read, Call):
                plan.calls[row.read.function, row.read.args].append(row)
            elif isinstance(row.read, Field):
                plan.fields.update({(row.read.id, scope): row for scope in row.read.scopes})
        return plan


DEVICE_ROWS = device_rows()
EVERY_CYCLE = Plan.of(row for row in DEVICE_ROWS if row.cadence is Cadence.EVERY_CYCLE)
COSTLY = Plan.of(row for row in DEVICE_ROWS if row.cadence is Cadence.COSTLY)
SLOW = Plan.of(row for row in DEVICE_ROWS if row.cadence is Cadence.SLOW)
INSTANCE = Plan.of(row for row in DEVICE_ROWS if row.mig)
GPM_ROWS = tuple((row, row.read) for row in DEVICE_ROWS if isinstance(row.read, Gpm))


def read(plan: Plan, handle: Handle) -> Iterator[Reading]:
    """Read a plan's rows."""
    for (function, args), rows in plan.calls.items():
        answer = handle.get(function, *args)
        if answer is not None:
            for row in rows:
                if found := reading(row, picked(row, answer), handle.tracker):
                    yield found
    yield from _read_fields(plan, handle)


class CachedReadings:
    """The readings of a plan that is not read in every cycle. A plan without any answer is tried again."""

    def __init__(self, plan: Plan, seconds: float) -> None:
        self._plan = plan
        self._seconds = seconds
        self._due = 0.0
        self._readings: tuple[Reading, ...] = ()

    def get(self, handle: Handle, *, anew: bool = False) -> tuple[Reading, ...]:
        now = time.monotonic()
        if anew or now >= self._due:
            self._readings = tuple(read(self._plan, handle))
            self._due = now + self._seconds if self._readings else now
        return self._readings


def _read_fields(plan: Plan, handle: Handle) -> Iterator[Reading]:
    """A row is the sum of its fields. If one is missing that was there before, the sum would fall, so it is absent."""
    wanted = tuple(field for field in plan.fields if not handle.refusals.is_paused((FIELD_CALL, field)))
    answers = handle.get("FieldValues", wanted) if wanted else None
    values = {
        field: _field_value(field, answer, handle)
        for field, answer in zip(wanted, answers if answers is not None else (), strict=False)
    }
    parts: dict[Metric, list[float | None]] = defaultdict(list)
    for field, row in plan.fields.items():
        key = (FIELD_CALL, field)
        if handle.refusals.was_answered(key) or (field in values and not handle.refusals.is_refused(key)):
            parts[row].append(values.get(field))
    for row, numbers in parts.items():
        known = [number for number in numbers if number is not None]
        total = sum(known) if len(known) == len(numbers) else None
        if found := reading(row, total, handle.tracker):
            yield found


def _field_value(field: tuple[int, int], answer: Any, handle: Handle) -> float | None:
    code = answer.nvmlReturn
    if code == pynvml.NVML_SUCCESS:
        handle.refusals.record_answer((FIELD_CALL, field))
        member = FIELD_VALUE.get(answer.valueType)  # a newer driver may have another type
        value: float | None = getattr(answer.value, member) if member else None
        return None if value in SENTINELS else value
    # INVALID_ARGUMENT: the driver does not know the field.
    is_unknown = code == pynvml.NVML_ERROR_INVALID_ARGUMENT
    handle.fail(pynvml.NVML_ERROR_NOT_SUPPORTED if is_unknown else code, FIELD_CALL, *field)
    return None


def picked(row: Metric, answer: Any) -> float | None:
    """Return the part of an answer that a row describes, or None if this library's answer lacks it."""
    if not isinstance(row.read, Call):
        return None
    value: float | None = answer
    if isinstance(row.read.pick, int):
        value = answer[row.read.pick]
    elif callable(row.read.pick):
        value = row.read.pick(answer)
    elif row.read.pick is not None:
        value = getattr(answer, row.read.pick, None)
    if row.read.bit is not None and value is not None:
        return float(bool(int(value) & row.read.bit))
    return value


def reading(row: Metric, value: float | None, tracker: CallTracker) -> Reading | None:
    """Return the value in base units, or None if it is unknown or impossible."""
    if value is None or value in SENTINELS or row.read is None:
        return None
    base = row.read.unit.base(value)
    if not row.read.unit.floor <= base <= row.read.unit.ceiling:
        tracker.errors["implausible_value"] += 1
        return None
    return Reading(row.name, base, row.label_values)
