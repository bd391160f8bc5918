"""What an hour showed, as a table, and whether it is good."""

from collections.abc import Callable, Sequence
from statistics import fmean

from tests.soak.observer import Sample, kept_open
from tests.soak.soak import Outcome
from tests.soak.trend import Trend, trend

WARM_UP = 0.5  # of the time; the allocator takes about 25 minutes to reach its height
# A node's agent lives for months: what it may grow in an hour, beyond all doubt of the measurement.
MOST_MIB_AN_HOUR, MOST_DESCRIPTORS_AN_HOUR = 1.0, 1.0

Pick = Callable[[Sample], float]


def warm(outcome: Outcome) -> list[Sample]:
    samples = outcome.findings.samples
    begin = samples[0].at + WARM_UP * outcome.seconds
    return [sample for sample in samples if sample.at >= begin]


def _slope(samples: Sequence[Sample], pick: Pick) -> Trend | None:
    return trend([(sample.at, pick(sample)) for sample in samples])


def _whole(samples: Sequence[Sample]) -> list[Sample]:
    """Leave out the moments between one sampler and the next."""
    return [sample for sample in samples if sample.children == 1]


def _tenths(samples: Sequence[Sample]) -> str:
    size = max(1, len(samples) // 10)
    parts = [samples[start : start + size] for start in range(0, 10 * size, size)]
    return ", ".join(f"{fmean(sample.agent_mib for sample in part):.1f}" for part in parts if part)


def _at_rest(sample: Sample) -> str:
    memory, children = f"{sample.agent_mib:.1f} MiB", f"{sample.children} child"
    return f"{memory}, {sample.descriptors} descriptors, {sample.threads} threads, {children}"


def _row(name: str, samples: Sequence[Sample], pick: Pick, unit: str = "") -> str:
    values = [pick(sample) for sample in samples]
    slope = _slope(samples, pick)
    shown = f"{slope} {unit}an hour" if slope else "too short"
    form = ".1f" if unit else ".0f"
    return f"| {name} | {min(values):{form}} to {max(values):{form}} {unit}| {shown} |"


def table(outcome: Outcome) -> str:
    found, samples = outcome.findings, warm(outcome)
    head = (
        f"{outcome.seconds:.0f} s; {found.snapshots:,} snapshots, {found.gaps} missed; {found.cards:,} books added up; "
        f"{found.pages:,} pages; {found.probes:,} probes, {found.failed} failed, slowest {found.slowest * 1e3:.0f} ms; "
        f"{found.breaches} breaches"
    )
    rows = [
        head,
        "",
        "| in the second half | from, to | trend, 95 % confidence |",
        "|---|---|---|",
        _row("memory of the agent alone", samples, lambda sample: sample.agent_mib, "MiB "),
        _row("memory with the sampler", _whole(samples), lambda sample: sample.all_mib, "MiB "),
        _row("with what is shared (PSS)", _whole(samples), lambda sample: sample.pss_mib, "MiB "),
        _row("descriptors of the agent", samples, lambda sample: sample.descriptors),
        _row("descriptors of the sampler", _whole(samples), lambda sample: sample.child_descriptors),
        _row("threads of the agent", samples, lambda sample: sample.threads),
        _row("children", samples, lambda sample: sample.children),
        "",
        ", ".join(f"{count} {name}" for name, count in outcome.churn.items()),
        "",
        f"at most {found.tenants} tenants and {found.ended} ended, {found.empty} snapshots without a card, booked as "
        + ", ".join(f"{name or 'nothing'} {count:,}" for name, count in found.methods.most_common()),
        "",
        f"memory of the agent in each tenth of the time, MiB: {_tenths(found.samples)}",
        f"at rest before: {_at_rest(outcome.before)}; after: {_at_rest(outcome.after)}",
    ]
    return "\n".join(rows)


def verdict(outcome: Outcome) -> list[str]:
    """Say what is wrong."""
    found, samples = outcome.findings, warm(outcome)
    wrong = list(found.first)
    if outcome.exit_code is not None:
        wrong.append(f"the agent ended with {outcome.exit_code}: {outcome.log[-2000:]}")
    if found.failed:
        wrong.append(f"{found.failed} probes failed")
    limits: tuple[tuple[str, Sequence[Sample], Pick, float], ...] = (
        ("memory of the agent", samples, lambda sample: sample.agent_mib, MOST_MIB_AN_HOUR),
        ("memory with the sampler", _whole(samples), lambda sample: sample.all_mib, MOST_MIB_AN_HOUR),
        ("descriptors", samples, lambda sample: sample.descriptors, MOST_DESCRIPTORS_AN_HOUR),
    )
    for name, which, pick, most in limits:
        slope = _slope(which, pick)
        if slope and slope.slope - slope.doubt > 0 and slope.slope > most:
            wrong.append(f"{name} grows: {slope} an hour")
    return [*wrong, *kept_open(outcome.before, outcome.after)]
