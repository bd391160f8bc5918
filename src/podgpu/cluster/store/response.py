"""Label matchers of PromQL, and the responses of Prometheus' HTTP API: samples, warnings and errors."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import msgspec
from msgspec import Struct

from podgpu.errors import ReasonedError
from podgpu.model.document import is_moment, is_sound

_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")


def any_of(label: str, values: Iterable[str]) -> str:
    """Match any of the values, whatever characters they have."""
    pattern = "|".join(_SPECIAL.sub(r"\\\g<0>", value) for value in values)
    return f"{label}=~{quoted(pattern)}"


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_MOVED = "exported_"


def own_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Undo what a scrape without `honor_labels` does: it renames labels that it has other values for.

    Without this, everything would be booked to the pod of the agent itself.
    """
    if _MOVED not in " ".join(labels):  # as most are, and there are millions
        return labels
    moved = {name.removeprefix(_MOVED): value for name, value in labels.items() if name.startswith(_MOVED)}
    if "container" in moved and "pod" not in moved:  # outside Kubernetes: its own labels for these are empty
        moved |= {"namespace": "", "pod": ""}
    return {**labels, **moved} if moved else labels


Sample = tuple[float, float]  # when, and the value
K = TypeVar("K")

PARTIAL = "store_partial"
TOO_LARGE = "store_too_large"
CHOOSE_LESS = "choose less with --prometheus.selector, or check what answers at --prometheus.url"
MOST_PARTS = 5_000_000  # labels, samples and series; all nodes of a cluster with 8,000 GPUs have 3.4 million
LARGEST_SERIES = 4 << 20  # of JSON: it is decoded in one piece, in which no other thread runs
EMPTY = "store_empty"
NOTHING = "the store has no samples of podgpu: see whether agents are scraped, and check --prometheus.selector"
# The same query about less time or fewer nodes may be answered.
ANSWERABLE_IN_PARTS = frozenset({"store_late", "store_limited", TOO_LARGE})

LONGEST_TEXT = 300
# How stores say that a query is beyond their limits.
_LIMIT = re.compile(
    r"too many (samples|chunks|series|bytes|points)|max[- _]?(samples|series|points|chunks|bytes|unique|query)|"
    r"limit|exceed|-search\.|cannot select more than",
    re.IGNORECASE,
)
# How stores say that one of their own parts is down, when they must not answer without it.
_HALF = re.compile(r"code = Unavailable|vmstorage")
# Notes on the query itself, and what Thanos says of a time without data.
_HARMLESS = ("PromQL ", "No StoreAPIs matched")


class StoreFault(ReasonedError):
    """The store gave no answer that can be used. `reason` is one of those in docs/report.md."""


class DecodeBudget:
    """How much of the answers that are held together may be decoded: as objects they take many times their size."""

    def __init__(self, parts: int | None = None) -> None:
        self._left = MOST_PARTS if parts is None else parts
        self._is_wanted = True

    def spend(self, body: bytes) -> None:
        """Count the labels, samples and series of an answer before one of them is decoded. Raises StoreFault."""
        self._left -= body.count(b",") + body.count(b"{")
        if self._left < 0:
            detail = "the answers have more labels and samples than a cluster of 10,000 GPUs"
            raise StoreFault(TOO_LARGE, f"{detail}; {CHOOSE_LESS}")

    def stop(self) -> None:
        """Nobody waits any longer: end what another thread decodes."""
        self._is_wanted = False

    def rows(self, rows: Iterable[msgspec.Raw]) -> Iterator[msgspec.Raw]:
        """Return them for as long as somebody waits. Raises StoreFault."""
        for row in rows:
            if not self._is_wanted:
                raise StoreFault("store_late", "nobody waits for the answer any longer")
            if len(memoryview(row)) > LARGEST_SERIES:
                detail = f"the answer has a series of more than {LARGEST_SERIES >> 20} MiB"
                raise StoreFault(TOO_LARGE, f"{detail}; {CHOOSE_LESS}")
            yield row


class Notice(Struct, frozen=True, order=True):
    """The store answered, but not all may be there: `store_partial`, `store_warning` or `store_ambiguous`."""

    reason: str
    detail: str


class Point(Struct, frozen=True, gc=False):
    labels: dict[str, str]
    value: float


class Series(Struct, frozen=True, gc=False):
    """Samples as they were scraped, in order of time. `unsound` counts those that no card and no clock can show."""

    labels: dict[str, str]
    samples: list[Sample]
    unsound: int = 0


class _ResultSeries(Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = []


class _ResultValue(Struct, gc=False):
    metric: msgspec.Raw
    value: tuple[float, str] | None = None


class _QueryData(Struct):
    result: list[msgspec.Raw] | None = None
    resultType: str = ""  # noqa: N815 - as the store writes it


class _QueryResponse(Struct):
    status: str
    data: _QueryData | None = None
    errorType: str = ""  # noqa: N815 - as the store writes it
    error: str = ""
    warnings: list[str] | None = None
    isPartial: bool = False  # noqa: N815 - as VictoriaMetrics writes it


# Series are decoded one by one: a whole answer takes seconds, in which no other thread runs.
_decode = msgspec.json.Decoder(_QueryResponse).decode
_decode_series = msgspec.json.Decoder(_ResultSeries).decode
_decode_value = msgspec.json.Decoder(_ResultValue).decode


def points(status: int, body: bytes, budget: DecodeBudget) -> tuple[list[Point], list[Notice]]:
    """Decode the response to a query for a value of each series."""
    with _sound(status, body):
        rows, notices = _read(status, body, "vector", budget)
        decoded = map(_decode_series, rows)
        known = ((row.metric, float(row.value[1])) for row in decoded if row.value)
        return [Point(labels, value) for labels, value in known if is_sound(value)], notices


def values(
    status: int, body: bytes, budget: DecodeBudget, key: Callable[[bytes], K | None]
) -> tuple[list[tuple[K, float]], list[Notice]]:
    """Decode the same, with a key in place of the labels. `key` gets them as JSON, so that it can cache them."""
    with _sound(status, body):
        rows, notices = _read(status, body, "vector", budget)
        decoded = map(_decode_value, rows)
        known = ((key(bytes(row.metric)), float(row.value[1])) for row in decoded if row.value)
        return [(found, value) for found, value in known if found is not None and is_sound(value)], notices


def series(status: int, body: bytes, budget: DecodeBudget) -> tuple[list[Series], list[Notice]]:
    """Decode the response to a query for samples.

    A store may return the markers at which a series ended: they are no samples.
    """
    with _sound(status, body):
        rows, notices = _read(status, body, "matrix", budget)
        return [_series(_decode_series(row)) for row in rows], notices


@contextmanager
def _sound(status: int, body: bytes) -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError) as error:  # msgspec's errors and those of text that is not UTF-8, too
        if status == 200:
            raise StoreFault("store_garbage", f"the answer does not follow Prometheus' API ({error})") from None
        raise _refusal(status, "", one_line(body.decode(errors="replace"))) from None


def _read(status: int, body: bytes, wanted: str, budget: DecodeBudget) -> tuple[Iterator[msgspec.Raw], list[Notice]]:
    budget.spend(body)
    answer = _decode(body)
    if answer.status != "success" or status != 200:
        raise _refusal(status, answer.errorType, one_line(answer.error))
    data = answer.data
    if data is None or data.resultType != wanted:
        kind = data.resultType if data else ""
        raise StoreFault("store_garbage", f"asked for a {wanted}, the store answered with {kind or 'nothing'}")
    notices = [Notice(_kind(warning), one_line(warning)) for warning in answer.warnings or ()]
    if answer.isPartial:
        notices.append(Notice(PARTIAL, "the store says that it could not read all of its data"))
    return budget.rows(data.result or []), notices


def _kind(warning: str) -> str:
    """A warning means that a part of the store did not answer, unless it is about the query or the time."""
    return "store_warning" if warning.startswith(_HARMLESS) else PARTIAL


def _refusal(status: int, kind: str, message: str) -> StoreFault:
    said = f"HTTP {status}" + (f": {message}" if message else "")
    if status in (401, 403):
        return StoreFault("store_refused", said)
    if _HALF.search(message):
        return StoreFault(PARTIAL, said)
    if kind in ("timeout", "canceled") or status == 504:
        return StoreFault("store_late", said)
    if status == 429 or (status in (400, 422, 500, 503) and _LIMIT.search(message)):
        return StoreFault("store_limited", said)
    if status in (502, 503) or kind == "unavailable":
        return StoreFault("store_unavailable", said)
    return StoreFault("store_error", said)


def one_line(text: str) -> str:
    """One printable line."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= LONGEST_TEXT else f"{line[: LONGEST_TEXT - 1]}…"


def _series(row: _ResultSeries) -> Series:
    numbers = [(at, float(text)) for at, text in row.values]
    known = [(at, value) for at, value in numbers if not math.isnan(value)]
    samples = [(at, value) for at, value in known if is_sound(value) and is_moment(at)]
    return Series(row.metric, samples, len(known) - len(samples))
