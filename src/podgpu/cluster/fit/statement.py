"""Makes the statement of `podgpu fit`, from a store or a recording."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from podgpu.cluster.fit.claims import write_part
from podgpu.cluster.fit.recording_reader import recorded_use
from podgpu.cluster.fit.store_reader import stored_use
from podgpu.cluster.fit.workload_use import FitPeriod, PeriodUse
from podgpu.cluster.report.bill import notice_texts, read_apart
from podgpu.cluster.report.counters import CardKey, card_models, card_of
from podgpu.cluster.report.evidence import demo_nodes
from podgpu.cluster.report.queries import TimeWindow
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.disputes import fault, find_disputes
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import EMPTY, NOTHING, Point, StoreFault
from podgpu.errors import UserError
from podgpu.insight.fit.statement import FitPeriodFacts, fit_statement
from podgpu.model.document import decode_cluster
from podgpu.model.fit import FitStatement, PoolFacts, PoolKey, WorkloadUse
from podgpu.model.insight import Prices
from podgpu.sources.replay.recording import Recording

USUAL_SECONDS = 14 * 86_400.0
_INFO, _POWER = "podgpu_gpu_info", "podgpu_gpu_power_watts"
_SWITCHES, _SWITCHING = "podgpu_gpu_context_switches_total", "podgpu_gpu_switching_seconds_total"
ENOUGH_SWITCHES = 1000  # to know how long one takes


class FitEvidence(Struct, frozen=True, kw_only=True):
    """What a statement or a plan is made of."""

    uses: Sequence[WorkloadUse]
    facts: FitPeriodFacts
    pools: Mapping[PoolKey, PoolFacts] = {}  # all cards by cluster and model; empty unless a plan needs it


def judged(evidence: FitEvidence) -> FitStatement:
    """Make the statement. Workloads that fit together are found among all that were asked about."""
    return fit_statement(evidence.uses, evidence.facts, write_part)


async def stored_evidence(
    store: Store,
    asked: FitPeriodFacts,
    now: float,
    progress: Callable[[float], None] = lambda _: None,
    *,
    has_pools: bool = False,
) -> FitEvidence:
    """Raises StoreFault."""
    window = TimeWindow(asked.start, asked.end)
    disputed = await find_disputes(store, asked.end)
    found = await stored_use(store, window, now, progress, without=disputed)
    if not found.uses:
        raise StoreFault(EMPTY, _too_early(found.period) if found.holders else f"{NOTHING}, or choose another time")
    is_demo = bool(await demo_nodes(store, asked.start, asked.end))
    pools = await read_pools(store, window) if has_pools else {}
    texts = [f"node {node}: {fault(targets).detail}" for node, targets in sorted(disputed.items())]
    return _evidence(found, replace(asked, demo=is_demo, notices=(*texts, *notice_texts(store))), pools)


async def fit_of_store(options: StoreOptions, prices: Prices | None, now: float) -> FitStatement:
    """Judge by the last two weeks, for a server. Raises StoreFault with advice."""
    asked = FitPeriodFacts(start=now - USUAL_SECONDS, end=now, prices=prices)
    return judged(await read_apart(options, lambda store: stored_evidence(store, asked, now)))


def recorded_evidence(path: Path, asked: FitPeriodFacts) -> FitEvidence:
    """Read a recording, all of it. Raises UserError if it cannot be read."""
    recording = Recording(path)
    found = recorded_use(decode_cluster(recording.document(number)) for number in range(len(recording.times)))
    if not found.uses:
        raise UserError(f"{path}: no pod holds a GPU in this recording; make another with `podgpu record`")
    return _evidence(found, replace(asked, demo=found.is_demo), {})


def _evidence(found: PeriodUse, asked: FitPeriodFacts, pools: Mapping[PoolKey, PoolFacts]) -> FitEvidence:
    period = found.period
    uses = [use for use in found.uses if asked.namespace in (None, use.workload.namespace)]
    facts = replace(asked, start=period.start, end=period.end, step=period.step, coverage=found.coverage)
    return FitEvidence(uses=uses, facts=facts, pools=pools)


def _too_early(period: FitPeriod) -> str:
    return f"the store has podgpu's samples, but not of a whole step of {period.step} seconds yet: try again after one"


async def read_pools(store: Store, window: TimeWindow) -> dict[PoolKey, PoolFacts]:
    """Find how many cards of each model there are, the power of an idle one, and how long a context switch takes."""
    infos, power, switches, seconds = await asyncio.gather(
        *(
            store.points(f"{function}({store.select(metric)}{window.range})", window.end)
            for function, metric in (
                ("last_over_time", _INFO),
                ("min_over_time", _POWER),
                ("increase", _SWITCHES),
                ("increase", _SWITCHING),
            )
        )
    )
    pools = {card: (card.cluster, model) for card, model in card_models(infos).items()}
    watts, numbers, times = (_by_pool(pools, points) for points in (power, switches, seconds))
    return {
        pool: PoolFacts(
            cards=cards,
            idle_watts=min(watts[pool]) if watts[pool] else None,
            switch_seconds=sum(times[pool]) / sum(numbers[pool]) if sum(numbers[pool]) >= ENOUGH_SWITCHES else None,
        )
        for pool, cards in Counter(pools.values()).items()
    }


def _by_pool(pools: Mapping[CardKey, PoolKey], points: Iterable[Point]) -> Mapping[PoolKey, list[float]]:
    values: dict[PoolKey, list[float]] = defaultdict(list)
    for point in points:
        card = card_of(point.labels)
        if card and card in pools:
            values[pools[card]].append(point.value)
    return values
