"""What is wrong with a card: lost, broken, throttled, or busy with switching."""

from collections.abc import Iterator

from podgpu.catalog import xids
from podgpu.insight.advice import ACTIONS, next_step
from podgpu.insight.problem_kind import CRITICAL, INFO, WARNING, ProblemKind, about_card, fault_words, few, pod_names
from podgpu.insight.tenants import NodeCard, pod_name, reading
from podgpu.model import SEVERITIES, Booking, Card, Charge, Problem, Rest, XidRecord
from podgpu.numbers import count, memory, percent

LOST_REASONS = frozenset({"lost", "gone", "gpu_not_found"})
XID_RECENT_SECONDS = 3600.0  # as long as its alert lasts
LEAST_SWITCHING = 0.05  # of the card's time
LEAST_BYTES = 1 << 30  # of a difference between the kernel's and the driver's figures, and
LEAST_PART = 0.1  # of the greater of them
_OF_OLD_XIDS = {CRITICAL: WARNING, WARNING: INFO, INFO: INFO}
_THROTTLED = {
    "hardware_thermal": "it is too hot",
    "software_thermal": "it is too hot",
    "hardware_slowdown": "the hardware slows it down",
    "hardware_power_brake": "the power supply slows it down",
}


def _unreadable(on: NodeCard) -> Iterator[Problem]:
    fault = on.card.fault
    if fault is None:
        return
    title = "Lost" if fault.reason in LOST_REASONS else "Stuck"
    held = (
        f" It is held by {few(pod_names(tenant.container for tenant in on.card.tenants))}." if on.card.tenants else ""
    )
    what = f"cannot be read: {fault_words(fault)}.{held}"
    yield about_card(on, "gpu_unreadable", CRITICAL, title, what, next_step=next_step(fault))


def _recovery(on: NodeCard) -> Iterator[Problem]:
    action = reading(on.card.readings, "recovery_action")
    if action:
        asked = ACTIONS.get(int(action), f"take action {action:.0f}")
        what = f"needs recovery: the driver asks to {asked}."
        advice = "Drain the node, then do what the driver asks for."
        yield about_card(on, "recovery", CRITICAL, "Recovery", what, next_step=advice)


def _memory_failed(on: NodeCard) -> Iterator[Problem]:
    if reading(on.card.readings, "row_remap_failed"):
        what = "has a bad row of memory that could not be remapped."
        advice = "Drain the node, run NVIDIA's field diagnostics, and have the card replaced."
        yield about_card(on, "memory_failed", CRITICAL, "Memory", what, next_step=advice)


def _xid(on: NodeCard) -> Iterator[Problem]:
    """The gravest, and of those alike the last: one XID often brings others, which must not hide it."""
    code = reading(on.card.readings, "xid_last_code")
    if code is None:
        return
    at = reading(on.card.readings, "xid_last_timestamp_seconds")
    raised: list[tuple[int, float | None]] = [(round(code), at)]
    raised += [(record.xid, record.at) for record in on.card.xids if record.at != at]
    number, at = min(raised, key=lambda one: SEVERITIES.index(_xid_severity(on, *one)))
    record = next((record for record in on.card.xids if record.at == at), None)
    judged = xids.XIDS.get(number, xids.UNKNOWN)
    what = f"raised {xids.named(number)}{present_words(record) if record else ''}."
    advice = f"{xids.CAUSES[judged.cause]} {xids.ACTIONS[judged.action]}"
    yield about_card(on, "xid", _xid_severity(on, number, at), f"XID {number}", what, next_step=advice, since=at)


def _xid_severity(on: NodeCard, code: int, at: float | None) -> str:
    severity = xids.XIDS.get(code, xids.UNKNOWN).severity
    is_recent = at is not None and on.snapshot.taken_at - at < XID_RECENT_SECONDS
    return severity if is_recent else _OF_OLD_XIDS[severity]


def present_words(record: XidRecord) -> str:
    """Who was on the card when it raised an XID: the end of a sentence about it. Empty if nothing is known."""
    if record.present:
        names = pod_names(record.present)
        return f" while {few(names)} {'was' if len(names) == 1 else 'were'} on it"
    nobody = "" if record.present is None else " while no pod was on it"
    return f"{nobody}, held by {few(pod_names(record.holders))}" if record.holders else nobody


def _books(on: NodeCard) -> Iterator[Problem]:
    if not adds_up(on.card):
        advice = "This is a bug in podgpu. Please report it with `podgpu snapshot -o json`."
        yield about_card(on, "books", CRITICAL, "Books", "has books that do not add up to the card.", next_step=advice)


def _memory_pending(on: NodeCard) -> Iterator[Problem]:
    if reading(on.card.readings, "row_remap_pending") or reading(on.card.readings, "retired_pages_pending"):
        what = "has bad memory that will be replaced at the next reset."
        advice = "Drain the node when you can, then run nvidia-smi --gpu-reset or reboot."
        yield about_card(on, "memory_pending", WARNING, "Memory", what, next_step=advice)


def _ecc(on: NodeCard) -> Iterator[Problem]:
    errors = sum(
        reading.value
        for reading in on.card.readings
        if reading.metric == "ecc_errors_total" and {"uncorrected", "volatile"} <= set(reading.labels)
    )
    if errors:
        what = f"had {count(int(errors), 'memory error')} that could not be corrected."
        advice = "If the count grows, drain the node and run NVIDIA's field diagnostics."
        yield about_card(on, "ecc", WARNING, "ECC", what, next_step=advice)


def throttle_causes(card: Card) -> list[str]:
    """Say in words what slows a card down now."""
    causes = (
        _THROTTLED[label]
        for event in card.readings
        if event.metric == "clock_event" and event.value
        for label in event.labels
        if label in _THROTTLED
    )
    return list(dict.fromkeys(causes))


def _throttled(on: NodeCard) -> Iterator[Problem]:
    if causes := throttle_causes(on.card):
        what = f"is throttled: {', '.join(causes)}."
        advice = "Check the cooling and the power supply of the node."
        yield about_card(on, "throttled", WARNING, "Throttled", what, next_step=advice)


def switching_text(card: Card) -> str:
    """How much of the card's time goes into context switches; empty if that is negligible.

    What counts is the most of the last minutes: a ratio near the threshold would come and go. An older agent has only
    that of its last cycle.
    """
    if card.balance is None:
        return ""
    peak, last = card.balance.switching_peak_ratio, card.balance.switching_ratio
    lost = last if peak is None else peak
    if lost is None or lost < LEAST_SWITCHING:
        return ""
    return percent(lost) if peak is None else f"up to {percent(peak)}"


def _switching(on: NodeCard) -> Iterator[Problem]:
    if lost := switching_text(on.card):
        what = f"spends {lost} of its time on context switches."
        advice = "Let the tenants run side by side, with MPS or MIG, or give each of them more work at a time."
        yield about_card(on, "switching", WARNING, "Switching", what, next_step=advice)


def is_much(difference: int | None, charge: Charge) -> bool:
    """Whether a difference is more than two ways to count can make."""
    greater = max(charge.charged_bytes, charge.listed_bytes or 0)
    return difference is not None and difference >= max(LEAST_BYTES, LEAST_PART * greater)


def _unexplained(on: NodeCard) -> Iterator[Problem]:
    for charge in on.card.charges or ():
        if is_much(charge.unexplained_bytes, charge):
            name = pod_name(charge.container)
            much = memory(charge.unexplained_bytes)
            what = f"has {much} that the kernel charges to {name} and none of its processes has."
            advice = (
                "A process may have died without freeing it, be hidden, or use managed memory. `podgpu why` has both."
            )
            yield about_card(on, "memory_unexplained", WARNING, "Unexplained", what, next_step=advice, pod=name)


def _elsewhere(on: NodeCard) -> Iterator[Problem]:
    for charge in on.card.charges or ():
        if is_much(charge.elsewhere_bytes, charge):
            name = pod_name(charge.container)
            much = memory(charge.elsewhere_bytes)
            what = f"has {much} in processes of {name} that the kernel charges to another cgroup."
            advice = (
                "No limit of the container applies to it. See in which cgroup its processes, or their server, began."
            )
            yield about_card(on, "memory_elsewhere", WARNING, "Charged away", what, next_step=advice, pod=name)


def adds_up(card: Card) -> bool:
    """Whether tenants, those that ended and the rest are the card, exactly. True where nothing is booked yet."""
    balance = card.balance
    if balance is None:
        return True
    rows: list[Booking | Rest] = [tenant.booking for tenant in (*card.tenants, *card.ended)]
    rows += card.rest
    memory = sum(row.memory_bytes or 0 for row in rows)
    return (
        balance.memory_bytes in (None, memory)
        and sum(row.busy_us for row in rows) == balance.busy_us
        and sum(row.energy_mj for row in rows) == balance.energy_mj
    )


KINDS = (
    ProblemKind("gpu_unreadable", 10, "A card is lost, stuck or cannot be read.", of_card=_unreadable),
    ProblemKind("recovery", 20, "The driver asks for a reset, a reboot or the like.", of_card=_recovery),
    ProblemKind("memory_failed", 21, "A bad row of memory could not be remapped.", of_card=_memory_failed),
    ProblemKind("xid", 22, "The driver raised an XID error.", of_card=_xid),
    ProblemKind("books", 32, "The books of a card do not add up.", of_card=_books),
    ProblemKind("memory_pending", 40, "Bad memory will be replaced at the next reset.", of_card=_memory_pending),
    ProblemKind("ecc", 41, "A card had memory errors that could not be corrected.", of_card=_ecc),
    ProblemKind(
        "memory_unexplained",
        42,
        "The kernel charges memory to a container that none of its processes has.",
        of_card=_unexplained,
    ),
    ProblemKind(
        "memory_elsewhere",
        43,
        "The kernel charges memory of a container's processes to another cgroup.",
        of_card=_elsewhere,
    ),
    ProblemKind("throttled", 60, "Heat or power slows a card down.", of_card=_throttled),
    ProblemKind(
        "switching", 61, "A card spent much of one of the last five minutes on context switches.", of_card=_switching
    ),
)
