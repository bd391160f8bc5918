"""The timeline's document: moments, summed up in steps of the same length."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import floor

from podgpu.history.charts import Object, written
from podgpu.model import Moment, XidMark

SCHEMA = 1
DIGITS = 4  # of a GPU
MOST_NAMESPACES = 10  # as many as the page has colours; the others are added up


def timeline(moments: Iterable[Moment], start: float, end: float, step: float) -> Object:
    """Steps begin at multiples of their length, so that they do not move as time passes.

    If nothing is known of a step, it has no `seen_gpus`.
    """
    first, last = floor(start / step), floor(end / step)
    by_step: dict[int, list[Moment]] = {number: [] for number in range(first, last + 1)}
    for moment in moments:
        number = floor(moment.at / step)
        if number in by_step:
            by_step[number].append(moment)
    shown = _largest(moment for found in by_step.values() for moment in found)
    return {
        "schema": SCHEMA,
        "from": first * step,
        "to": (last + 1) * step,
        "step": step,
        "namespaces": shown,
        "steps": [
            {"at": number * step, **_summed(found, shown)} if found else {"at": number * step}
            for number, found in by_step.items()
        ],
        "xids": written(mark for found in by_step.values() for mark in marks_of(found) if start <= mark.at <= end),
    }


def _largest(moments: Iterable[Moment]) -> list[str]:
    """Return the names of the busiest namespaces, in alphabetical order."""
    total: Counter[str] = Counter()
    for moment in moments:
        total.update(moment.namespaces)
    return sorted(name for name, _ in total.most_common(MOST_NAMESPACES))


def _summed(found: Sequence[Moment], shown: Sequence[str]) -> Object:
    """Use is the mean of the moments of which it is known; throttling is that of the worst moment."""
    newest = found[-1]
    summed: Object = {"gpus": newest.gpus, "seen_gpus": max(moment.seen_gpus for moment in found)}
    if any_throttled := max(moment.throttled_gpus for moment in found):
        summed["throttled_gpus"] = any_throttled
    known = [moment for moment in found if moment.busy_gpus is not None]
    if not known:
        return summed
    busy: Counter[str] = Counter()
    for moment in known:
        busy.update(moment.namespaces)
    means = {name: round(total / len(known), DIGITS) for name, total in busy.items()}
    summed["busy_gpus"] = round(sum(moment.busy_gpus or 0.0 for moment in known) / len(known), DIGITS)
    summed["namespaces"] = {name: means[name] for name in shown if name in means}
    if others := sum(mean for name, mean in means.items() if name not in shown):
        summed["other_gpus"] = round(others, DIGITS)
    return summed


def marks_of(moments: Iterable[Moment]) -> set[XidMark]:
    """Return the XIDs of these moments. One is noted in several."""
    return {mark for moment in moments for mark in moment.xids}
