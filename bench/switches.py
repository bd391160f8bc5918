"""Measures how fast records of the driver's log of context switches become slices, as they come: a second at a time."""

import time

from bench.figure import Figure
from podgpu.sources.switches import layout
from podgpu.sources.switches.slices import CardClock, SliceBuilder

RECORDS_PER_SECOND = 3_300  # of the busiest log that was recorded
SECONDS = 20
ROUNDS = 5
DELAY_NS = 250_000_000


def run() -> list[Figure]:
    seconds = min(_round() for _ in range(ROUNDS))
    rate = SECONDS * RECORDS_PER_SECOND / seconds
    share = 1e3 * seconds / SECONDS
    return [
        Figure("records of context switches a second", f"{rate:,.0f}"),
        Figure("the busiest log that was recorded, CPU time a second", f"{share:.1f} ms"),
    ]


def _round() -> float:
    batches = [_batch(second) for second in range(SECONDS)]
    began = time.process_time()
    builder = SliceBuilder(0)
    for second, batch in enumerate(batches, 1):
        builder.feed(batch, 0)
        builder.cut(CardClock(second * 10**9, 0), DELAY_NS)
    return time.process_time() - began


def _batch(second: int) -> bytes:
    """Two contexts in turns: an end, and a little later the start of the other."""
    records = []
    step = 2 * 10**9 // RECORDS_PER_SECOND
    for pair in range(RECORDS_PER_SECOND // 2):
        number = second * RECORDS_PER_SECOND // 2 + pair
        for place, (event, tenant) in enumerate(((layout.END, number), (layout.START, number + 1))):
            stamp = second * 10**9 + pair * step + 50_000 * place + 1
            sequence = (2 * number + place) & 0xFFFF
            context, pid = 1 + tenant % 2, 100 + tenant % 2
            records.append(
                layout.RECORD.pack(layout.TYPE_WITHOUT_MIG, 0, 0, event, 0, sequence, context, pid, 0, 0, 0, stamp)
            )
    return b"".join(records)
