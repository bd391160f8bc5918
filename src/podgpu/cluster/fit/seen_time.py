"""How much of the GPUs' time in a period was seen, by the rule of the bill: of all of the period that was asked for."""

from collections.abc import Iterable, Iterator, Mapping

from podgpu.cluster.fit.workload_use import FitPeriod
from podgpu.cluster.report.counters import CardKey, NodeKey
from podgpu.cluster.report.coverage import GpuEvidence, Stretch, coverage
from podgpu.cluster.report.increases import CardPresence
from podgpu.cluster.store.targets import longest_pause
from podgpu.model import Coverage


def seen_ratio(
    period: FitPeriod, scraped: Mapping[NodeKey, bytearray], cards: Iterable[CardKey], evidence: GpuEvidence
) -> float | None:
    """`scraped` has a 1 for each step in which a node was scraped. None if there was no card."""
    presence: dict[CardKey, CardPresence] = {}
    for card in cards:
        if stretches := list(_stretches(period, scraped.get((card.cluster, card.node), bytearray()))):
            ends = [end for _, end in stretches]
            gaps = zip(ends, (begin for begin, _ in stretches[1:]), strict=False)
            missed = [(begin, end) for begin, end in gaps if end - begin > longest_pause(period.step)]
            presence[card] = CardPresence(stretches[0][0], ends[-1], float(period.step), missed)
    found = coverage((period.start, period.end), presence, evidence).values()
    seen, unseen = sum(card.total.seen_us for card in found), sum(card.total.unseen_us for card in found)
    return Coverage(seen_us=seen, unseen_us=unseen).ratio


def _stretches(period: FitPeriod, scraped: bytearray) -> Iterator[Stretch]:
    begin = scraped.find(1)
    while begin >= 0:
        end = scraped.find(0, begin)
        end = len(scraped) if end < 0 else end
        yield float(period.start + begin * period.step), float(period.start + end * period.step)
        begin = scraped.find(1, end)
