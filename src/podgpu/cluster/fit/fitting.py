"""Makes the statement that a user asks for with `podgpu fit`."""

from collections.abc import Callable

from msgspec import Struct

from podgpu.cluster.fit.parts import write_part
from podgpu.cluster.fit.stored import stored_use
from podgpu.cluster.report.queries import TimeWindow
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import EMPTY, NOTHING, StoreFault
from podgpu.insight.fit.statement import FitPeriodFacts, fit_statement
from podgpu.model.fit import FitStatement, FitTerms
from podgpu.model.insight import Prices


class FitRequest(Struct, frozen=True, kw_only=True):
    start: float
    end: float
    namespace: str | None = None
    terms: FitTerms = FitTerms()
    prices: Prices | None = None


async def make_fit(
    store: Store, asked: FitRequest, progress: Callable[[float], None] = lambda _: None
) -> FitStatement:
    """Raises StoreFault. The groups that would fit together are found among all workloads of the request."""
    window = TimeWindow(asked.start, asked.end)
    found = await stored_use(store, window, progress)
    if not found.uses:
        raise StoreFault(EMPTY, f"{NOTHING}, or choose another time")
    demo = store.select("podgpu_build_info", 'demo="true"')
    is_demo = await store.points(f"last_over_time({demo}{window.range})", asked.end)
    facts = FitPeriodFacts(
        start=found.period.start,
        end=found.period.end,
        step=found.period.step,
        terms=asked.terms,
        prices=asked.prices,
        demo=bool(is_demo),
        notices=tuple(f"{notice.reason}: {notice.detail}" for notice in sorted(store.notices)),
    )
    uses = [use for use in found.uses if asked.namespace in (None, use.workload.namespace)]
    return fit_statement(uses, facts, write_part)
