"""Makes the bill that a user asks for, on the command line or in the query of a page."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podgpu.cluster.report.charges import Basis
from podgpu.cluster.report.counters import FAMILIES, Measure
from podgpu.cluster.report.grouping import Grouping
from podgpu.cluster.report.queries import range_of
from podgpu.cluster.report.statement import statement
from podgpu.cluster.report.sums import DAY, HOUR, StatementTerms
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import EMPTY, NOTHING, StoreFault, own_labels
from podgpu.errors import UserError
from podgpu.model import Prices, Statement
from podgpu.option.times import CALENDAR, calendar_period, parse_time, period, utc_text
from podgpu.option.value import OneOf, did_you_mean
from podgpu.supervise import brief

T = TypeVar("T")

MOST_HOURS = 31 * 24  # of a bill that is made on request
BASES = tuple(map(str, Basis))
# The parameters of a query, and the fields of BillWords.
_FIELDS = {"from": "start", "to": "end", **{name: name for name in ("by", "namespace", "basis", "share")}}
SHARES = ("none", "held", "even")
_PERIODS = {"day": DAY, "hour": HOUR}  # that a bill may be divided into
_INFO = "podgpu_pod_info"
_LABEL = "label_"
_HELD = next(family.metric for family in FAMILIES if family.measure is Measure.HELD)
_ADVICE = {
    "store_partial": "sums of half of the data would be wrong: ask again when the store is whole, or give --partial"
}


class BillWords(Struct, frozen=True, kw_only=True):
    """What a user asks for, as the user writes it."""

    start: str = "24h"
    end: str = "now"
    by: str = "namespace"
    namespace: str | None = None
    basis: str = str(Basis.HELD)
    share: str = SHARES[0]


class BillRequest(Struct, frozen=True, kw_only=True):
    """Everything that decides what a bill says, besides the store."""

    start: float
    end: float
    by: str
    namespace: str | None = None
    basis: Basis = Basis.HELD
    share: str = "none"
    prices: Prices | None = None

    @property
    def document(self) -> dict[str, Any]:
        """What a report carries so that it can be made again."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def _chosen(flag: str, choices: tuple[str, ...], text: str) -> str:
    try:
        return OneOf(choices)(text)
    except UserError as error:
        raise UserError(f"{flag}: {error}") from None


basis_word, share_word = partial(_chosen, "--basis", BASES), partial(_chosen, "--share", SHARES)


def bill_request(words: BillWords, prices: Prices | None, now: float) -> BillRequest:
    """Raises UserError where the question makes no sense."""
    start, end = period(words.start, words.end, now)
    asked = BillRequest(
        start=start,
        end=end,
        by=words.by,
        namespace=words.namespace,
        basis=Basis(basis_word(words.basis)),
        share=share_word(words.share),
        prices=prices,
    )
    if asked.basis is Basis.ENERGY and prices and not prices.has_kwh:
        raise UserError("--basis=energy needs a price of energy; add kwh to the file of --price, and to its changes")
    return asked


def with_period_notice(found: Statement, words: BillWords, now: float) -> Statement:
    """Add a notice if the period is not over."""
    if parse_time(words.end, now) <= now:
        return found
    until = f"--to={words.end} is in the future: the period is not over, and this is what there is so far"
    return replace(found, notices=(*found.notices, until))


async def make_bill(
    store: Store,
    asked: BillRequest,
    now: float,
    *,
    charge_seconds: float | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Statement:
    """Raises StoreFault, or UserError for a label that no pod has. `store` is for this bill alone."""
    grouping = Grouping(asked.by, asked.namespace)
    terms = StatementTerms(asked.basis, asked.share, asked.prices, charge_seconds)
    found = await statement(store, (asked.start, asked.end), grouping, terms, now, progress)
    if not found.coverage.seen_us and not found.disputes:
        raise StoreFault(EMPTY, _nothing_seen(found))
    await _check_namespace(store, asked, found)
    await _check_label(store, grouping, found)
    return replace(found, notices=(*found.notices, *notice_texts(store)))


def notice_texts(store: Store) -> tuple[str, ...]:
    return tuple(f"{notice.reason}: {notice.detail}" for notice in sorted(store.notices))


def _nothing_seen(found: Statement) -> str:
    if found.gpus:
        return (
            f"none of the {found.gpus} GPUs that are known from before, from after or from Kubernetes was "
            "scraped in this time; choose another time"
        )
    return f"{NOTHING}, or choose another time"


async def _check_namespace(store: Store, asked: BillRequest, found: Statement) -> None:
    """A namespace without a row is most likely misspelt."""
    if asked.namespace is None or found.lines:
        return
    held = f"last_over_time({store.select(_HELD)}{range_of(asked.end - asked.start)})"
    # A scrape without honor_labels renames the pod's own.
    points = await store.points(f"count by (namespace, exported_namespace) ({held})", asked.end)
    known = sorted({name for point in points if (name := own_labels(point.labels).get("namespace"))})
    others = f"those of {', '.join(known)} did" if known else "no pod did"
    advice = did_you_mean(asked.namespace, known, "give another namespace or time")
    raise UserError(f"-n {asked.namespace}: no pod of it held a GPU in this time; {others}; {advice}")


async def _check_label(store: Store, grouping: Grouping, found: Statement) -> None:
    """A label that no pod has is most likely misspelt, or agents do not show it."""
    groups = [line.group for line in found.lines if line.kind == "group"]
    if grouping.is_known or not groups or any(value for group in groups for value in group.values()):
        return
    pods = await store.points(f"last_over_time({store.select(_INFO)}[1h])", found.end)
    known = sorted({name.removeprefix(_LABEL) for pod in pods for name in pod.labels if name.startswith(_LABEL)})
    labels = f"the agents show {', '.join(known)}" if known else "the agents show no labels of pods"
    advice = did_you_mean(grouping.by, known, "show it with --kube.pod-labels")
    raise UserError(f"--by={grouping.by}: no pod has such a label in this time; {labels}; {advice}")


def fault_text(fault: StoreFault) -> str:
    """Say what went wrong, and what to do about it."""
    if fault.reason == EMPTY:
        return f"{fault.reason}: {fault.detail}"
    return f"{fault.reason}: {fault.detail}; {_ADVICE.get(fault.reason, 'docs/report.md says what to do')}"


async def bill_of_query(
    options: StoreOptions, prices: Prices | None, query: Mapping[str, str], now: float
) -> tuple[Statement, dict[str, Any]]:
    """Make a bill for a server. `query` has the arguments of `podgpu report`. Return also how to make it again.

    Raises UserError, and StoreFault with advice.
    """
    words = BillWords(**{_FIELDS[name]: text for name, text in dated(query, now).items() if name in _FIELDS})
    asked = bill_request(words, prices, now)
    charge_seconds = _PERIODS[_chosen("per", tuple(_PERIODS), query["per"])] if "per" in query else None
    if asked.end - asked.start > MOST_HOURS * 3600:
        raise UserError(
            f"--from={words.start} is more than {MOST_HOURS} hours before --to={words.end}; choose a shorter time, "
            "or run podgpu report"
        )
    found = await read_apart(options, lambda store: make_bill(store, asked, now, charge_seconds=charge_seconds))
    return with_period_notice(found, words, now), asked.document


def dated(query: Mapping[str, str], now: float) -> Mapping[str, str]:
    """Replace `period=last-month` and the like by its two times."""
    if "period" not in query:
        return query
    if "from" in query or "to" in query:
        raise UserError(f"period={query['period']} says when; give it, or from and to")
    begins, ends = calendar_period(_chosen("period", tuple(CALENDAR), query["period"]), now)
    return {**query, "from": utc_text(begins), "to": utc_text(ends)}


async def read_apart(options: StoreOptions, work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    """Read a store in a thread with its own event loop. If the caller is cancelled, so is the reading.

    Adding up weeks of many nodes takes long, and other requests must not wait for it. Raises StoreFault with advice.
    """
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def run() -> T:
        store = Store(options, whole=True)
        task = brief(work(store))
        started.append((asyncio.get_running_loop(), task))
        try:
            return await task
        finally:
            await store.close()

    try:
        return await asyncio.to_thread(lambda: asyncio.run(run()))
    except StoreFault as fault:
        raise StoreFault(fault.reason, fault_text(fault)) from None
    except asyncio.CancelledError:
        for loop, task in started:
            with suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(task.cancel)
        raise
