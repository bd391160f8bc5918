"""What tenants lose while the driver's log of context switches is read, in one run with and without in turns."""

import time
from collections.abc import Iterator
from math import sqrt
from statistics import mean, stdev

from tests.gpu.listening import Check, Heard, Listening
from tests.gpu.tenants import within
from tests.gpu.work import Load, Tenant, at_work

TURNS = 8  # pairs, one with and one without; every other pair the other way round, so that drift cancels out
SECONDS = 3.0
START_SECONDS = 1.0  # until a reader reads


def checked_cost() -> Iterator[Check]:
    for count, most in ((1, 0.2), (2, 2.0)):
        tenants = [Tenant(f"cost-{number}", "tensor", 0.05, 0.0, 0.0) for number in range(count)]
        with at_work(*tenants) as (loads, _):
            time.sleep(5)  # for the clocks to settle
            pairs, heard = _paired(loads)
        losses = [100 * (1 - read / plain) for plain, read in pairs]
        loss, error = mean(losses), stdev(losses) / sqrt(len(losses))
        name = "a tenant alone" if count == 1 else "two in contention"
        plain, read = (mean(pair[which] for pair in pairs) for which in (0, 1))
        figures = f"{plain:.1f} kernels/s without, {read:.1f} with: {loss:.2f} ± {error:.2f} % lost"
        yield name, figures, loss - 2 * error <= most
        cpu, rate = mean(one.cpu_ms for one in heard), mean(one.records_per_second for one in heard)
        is_cheap = cpu <= 5 * max(1, rate / 2000)
        yield f"CPU of the reader, {name}", f"{cpu:.1f} ms/s at {rate:.0f} records/s", is_cheap


def _paired(loads: list[Load]) -> tuple[list[tuple[float, float]], list[Heard]]:
    """Return kernels a second without and with a reader, pair by pair."""
    spans: list[dict[bool, tuple[float, float]]] = []
    heard: list[Heard] = []
    for turn in range(TURNS):
        spans.append({})
        for is_read in (False, True) if turn % 2 else (True, False):
            listening = Listening(START_SECONDS + SECONDS + 0.5) if is_read else None
            time.sleep(START_SECONDS)  # without a reader too, so that both are alike
            begin = time.time()
            time.sleep(SECONDS)
            spans[-1][is_read] = begin, time.time()
            if listening:
                heard.append(listening.heard())
    time.sleep(0.5)  # for the last bursts to be over
    bursts = [load.bursts() for load in loads]

    def speed(begin: float, end: float) -> float:
        return sum(done for own in bursts for _, _, done in within(own, begin, end)) / (end - begin)

    return [(speed(*one[False]), speed(*one[True])) for one in spans], heard
