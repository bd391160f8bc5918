"""What tenants on a real card lost to each other, beside the prediction from how busy each was alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from podgpu.insight.plan.replay import BusyNeed, Slowdown, slowdowns

CLOCKS = 0.03  # a card's clocks differ by so much from one run to the next, and so does what is done in a time
ENOUGH_SECONDS = 1.0


@dataclass(frozen=True)
class Loss:
    """How many times as long a tenant's work took beside others."""

    tenant: str
    beside: str
    real: float
    predicted: Slowdown

    @property
    def is_within(self) -> bool:
        return self.predicted.least * (1 - CLOCKS) <= self.real <= self.predicted.most * (1 + CLOCKS)


def losses(recorded: dict[str, Any]) -> Iterator[Loss]:
    """Read a recording of `tests/gpu/slowdown.py`: kernels a second, alone against together."""
    alone = recorded["alone"]
    for together in recorded["together"]:
        names = together["tenants"]
        predicted = slowdowns([BusyNeed(alone[name]["busy"], alone[name]["busy"]) for name in names])
        for number, name in enumerate(names):
            beside = " and ".join([*names[:number], *names[number + 1 :]])
            yield Loss(name, beside, alone[name]["rate"] / together["rates"][number], predicted[number])


def losses_in_bursts(recorded: dict[str, Any], solo: dict[str, Any]) -> Iterator[Loss]:
    """Read a recording of tenants that worked in bursts until a time was over, and one of a tenant alone.

    The same kernels and pauses would have taken less time alone, which is what they lost.
    """
    logs = recorded["logs"]
    seconds = max(log["bursts"][-1][1] for log in logs) - min(log["bursts"][0][0] for log in logs)
    kinds = [tenant[0] for tenant in recorded["tenants"]]
    work = [
        log["steps"] / (_undisturbed(number, logs) or _rate(solo["logs"][0]["bursts"]))
        for number, log in enumerate(logs)
    ]
    alone = [
        seconds - sum(end - begin for begin, end, _ in log["bursts"]) + own for log, own in zip(logs, work, strict=True)
    ]
    needs = [BusyNeed(own / time, own / time) for own, time in zip(work, alone, strict=True)]
    for number, predicted in enumerate(slowdowns(needs)):
        beside = " and ".join([*kinds[:number], *kinds[number + 1 :]])
        yield Loss(kinds[number], beside, seconds / alone[number], predicted)


def _undisturbed(number: int, logs: Sequence[dict[str, Any]]) -> float | None:
    """Kernels a second in bursts in which no other tenant was at work. None if there are too few."""
    others = [burst for other, log in enumerate(logs) if other != number for burst in log["bursts"]]
    own = [
        (begin, end, done)
        for begin, end, done in logs[number]["bursts"]
        if not any(first < end and begin < last for first, last, _ in others)
    ]
    return _rate(own) if sum(end - begin for begin, end, _ in own) >= ENOUGH_SECONDS else None


def _rate(bursts: Sequence[Sequence[float]]) -> float:
    return sum(done for _, _, done in bursts) / sum(end - begin for begin, end, _ in bursts)
