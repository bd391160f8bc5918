"""Makes the statement that a user asks for with `podgpu fit`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from podgpu.cluster.fit.parts import write_part
from podgpu.cluster.fit.pools import read_pools
from podgpu.cluster.fit.recorded import recorded_use
from podgpu.cluster.fit.stored import StoredUse, stored_use
from podgpu.cluster.report.bill import fault_text, in_thread
from podgpu.cluster.report.queries import TimeWindow
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import EMPTY, NOTHING, StoreFault
from podgpu.errors import UserError
from podgpu.insight.fit.statement import FitPeriodFacts, fit_statement
from podgpu.model import Cluster
from podgpu.model.document import decode_cluster
from podgpu.model.fit import FitStatement, FitTerms, PoolFacts, PoolKey, WorkloadUse
from podgpu.model.insight import Prices
from podgpu.sources.replay.recording import Recording

USUAL_SECONDS = 14 * 86_400.0


class FitRequest(Struct, frozen=True, kw_only=True):
    start: float
    end: float
    namespace: str | None = None
    terms: FitTerms = FitTerms()
    prices: Prices | None = None


class FitEvidence(Struct, frozen=True, kw_only=True):
    """What a statement or a plan is made of."""

    uses: Sequence[WorkloadUse]
    facts: FitPeriodFacts
    pools: Mapping[PoolKey, PoolFacts] = {}  # all cards by cluster and model; empty unless a plan needs it


async def make_fit(
    store: Store, asked: FitRequest, progress: Callable[[float], None] = lambda _: None
) -> FitStatement:
    """Raises StoreFault. The groups that would fit together are found among all workloads of the request."""
    return judged(await stored_evidence(store, asked, progress))


def judged(evidence: FitEvidence) -> FitStatement:
    return fit_statement(evidence.uses, evidence.facts, write_part)


async def stored_evidence(
    store: Store,
    asked: FitRequest,
    progress: Callable[[float], None] = lambda _: None,
    *,
    has_pools: bool = False,
) -> FitEvidence:
    """Raises StoreFault."""
    window = TimeWindow(asked.start, asked.end)
    found = await stored_use(store, window, progress)
    if not found.uses:
        raise StoreFault(EMPTY, f"{NOTHING}, or choose another time")
    demo = store.select("podgpu_build_info", 'demo="true"')
    is_demo = await store.points(f"last_over_time({demo}{window.range})", asked.end)
    notices = tuple(f"{notice.reason}: {notice.detail}" for notice in sorted(store.notices))
    pools = await read_pools(store, window) if has_pools else {}
    return _evidence(found, asked, pools, is_demo=bool(is_demo), notices=notices)


class StoreFits:
    """Makes statements for a server."""

    def __init__(self, options: StoreOptions, prices: Prices | None) -> None:
        self._options = options
        self._prices = prices

    async def made(self, now: float) -> FitStatement:
        """Judge by the last two weeks. Raises StoreFault with advice."""
        asked = FitRequest(start=now - USUAL_SECONDS, end=now, prices=self._prices)
        try:
            # Weeks of many nodes are much to read, and requests must not wait for it.
            return await in_thread(lambda: self._read(asked))
        except StoreFault as fault:
            raise StoreFault(fault.reason, fault_text(fault)) from None

    async def _read(self, asked: FitRequest) -> FitStatement:
        store = Store(self._options, whole=True)
        try:
            return await make_fit(store, asked)
        finally:
            await store.close()


def recorded_evidence(path: Path, asked: FitRequest) -> FitEvidence:
    """Read a recording, all of it. Raises UserError if it cannot be read."""
    recording = Recording(path)
    is_demo = False

    def moments() -> Iterator[Cluster]:
        nonlocal is_demo
        for number in range(len(recording.times)):
            cluster = decode_cluster(recording.document(number))
            is_demo = is_demo or cluster.demo
            yield cluster

    found = recorded_use(moments())
    if not found.uses:
        raise UserError(f"{path}: no pod holds a GPU in this recording; make another with `podgpu record`")
    return _evidence(found, asked, {}, is_demo=is_demo)


def _evidence(
    found: StoredUse,
    asked: FitRequest,
    pools: Mapping[PoolKey, PoolFacts],
    *,
    is_demo: bool,
    notices: tuple[str, ...] = (),
) -> FitEvidence:
    facts = FitPeriodFacts(
        start=found.period.start,
        end=found.period.end,
        step=found.period.step,
        terms=asked.terms,
        prices=asked.prices,
        demo=is_demo,
        notices=notices,
    )
    uses = [use for use in found.uses if asked.namespace in (None, use.workload.namespace)]
    return FitEvidence(uses=uses, facts=facts, pools=pools)
