"""Plan for made-up workloads: `python -m tests.insight.plan [WORKLOADS]`. A thousand hold about a thousand cards."""

import sys
import time

from podgpu.insight.fit.statement import FitPeriodFacts
from podgpu.insight.plan.placing import layout_of
from podgpu.insight.plan.statement import plan_statement
from tests.insight.fit.planted import JUDGED, planted

LAYOUTS = ("mig", "parts", "timeslice:2", "timeslice:4", "timeslice:8")
MOST_ABOVE = 0.1
MOST_SECONDS = 60.0


def main(workloads: int) -> int:
    uses = [use for each in planted(workloads) if (use := each.window(0, JUDGED))]
    facts = FitPeriodFacts(start=0.0, end=JUDGED * 60.0)
    failed = 0
    for text in LAYOUTS:
        began = time.process_time()
        pools = plan_statement(uses, facts, layout_of(text), {}).pools
        seconds = time.process_time() - began
        now, cards, least = (
            sum(getattr(pool, name) for pool in pools) for name in ("cards_now", "cards", "least_cards")
        )
        worst = max(pools, key=lambda pool: pool.above_least)
        print(
            f"{text}: {cards} cards of {now}, {least} at least, {worst.model} {100 * worst.above_least:.1f} % above, "
            f"{sum(pool.full_minutes for pool in pools)} minutes too full, {seconds:.1f} s of processor time",
            flush=True,
        )
        failed += round(worst.above_least, 6) > MOST_ABOVE or seconds > MOST_SECONDS
    return int(failed > 0)


sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
