"""The series of tenants, of what is unattributed, of balances, processes and pods.

A counter is an integer of the ledger divided once: its shortest decimal is that integer exactly, and the decimals on a
page add up as the integers do.
"""

from collections.abc import Iterable, Iterator, Sequence

from podgpu import catalog
from podgpu.catalog.row import Scope
from podgpu.insight.tenants import IDLE, held_share, is_holder
from podgpu.insight.without_claim import NOT_GIVEN
from podgpu.model import ENDED, Ability, Balance, Card, ContainerRef, Reading, Rest, Snapshot, Tenant
from podgpu.model.kube import total, total_of_known
from podgpu.views.series import Labels, label_name

POD_INFO = "podgpu_pod_info"
UNPLACED = "podgpu_unplaced_seconds_total"

_POD_LABELS = (*Scope.AGENT.labels, *catalog.families()[POD_INFO][0].label_names)
_UNPLACED_LABELS = (*Scope.AGENT.labels, *catalog.families()[UNPLACED][0].label_names)
_ENERGY = "energy_joules_total"
_NO_OWNER = ContainerRef("", "", "")
SHARED = (Reading("shared", 1.0),)
_LEAST, _MOST = ("least",), ("most",)
# What cannot be booked for a reason has no series: capacity without a claim has no processes and is never busy, and
# memory that no process accounts for draws no power.
_NEVER_RUNS = frozenset({"idle"})
_NEVER_BUSY = frozenset({"idle", "overhead"})
_NEVER_DRAWS = frozenset({"overhead"})

Entry = tuple[Scope, Labels, Iterable[Reading]]


def of_card(card: Card, place: Labels, *, by_pod: bool = False) -> Iterator[Entry]:
    """Yield what is booked on a card, whose own labels are its `place`. With `by_pod`, a pod is one series."""
    yield from _containers(card, place, by_pod=by_pod)
    for rest in card.rest:
        if rest.reason == ENDED:
            yield Scope.ENDED, place, _used(rest, (), card.ability)
        else:
            yield Scope.UNATTRIBUTED, place, _rest(rest, card)
    if card.balance:
        yield Scope.UNATTRIBUTED, place, _rest_bounds(card.balance, card.ability)
        yield Scope.GPU, place, _balance(card.balance, card.ability)


def of_processes(card: Card, place: Labels) -> Iterator[tuple[Labels, Iterable[Reading]]]:
    """Yield the series of each process, with its owner if it has one."""
    owned = [(tenant.container, tenant.processes) for tenant in card.tenants]
    owned += [(_NO_OWNER, rest.processes) for rest in card.rest]
    for ref, process in ((ref, process) for ref, processes in owned for process in processes):
        values = {"memory_used_bytes": process.memory_bytes, "sm_utilization_ratio": process.sm_ratio}
        subject = Labels(Scope.PROCESS.labels, (*place.values, process.mig, *ref.names))
        yield subject, _known(values, (str(process.pid),))


def of_pods(snapshot: Snapshot) -> Iterator[Labels]:
    """Yield the labels of each pod's info. All have the same names; a label that a pod lacks is empty."""
    keys = sorted({key for pod in snapshot.pods for key in pod.labels})
    names = (*_POD_LABELS, *_label_names(keys))
    for pod in snapshot.pods:
        kind, name = (pod.workload.kind, pod.workload.name) if pod.workload else ("", "")
        facts = (pod.node or snapshot.node, pod.namespace, pod.name, pod.uid, kind, name, pod.phase)
        yield Labels(names, (*facts, *(pod.labels.get(key, "") for key in keys)))


def of_unplaced(snapshot: Snapshot) -> Iterator[tuple[Labels, float]]:
    for held in snapshot.unplaced or ():
        if held.seconds:
            yield Labels(_UNPLACED_LABELS, (snapshot.node, *held.container.names)), held.seconds


def _containers(card: Card, place: Labels, *, by_pod: bool) -> Iterator[Entry]:
    # A pod made again under its old name has another UID and the same series: the two are added up.
    merged: dict[tuple[str, ...], tuple[list[Tenant], list[Tenant]]] = {}
    for number, tenants in enumerate((card.tenants, card.ended)):
        for tenant in tenants:
            ref = tenant.container
            # Outside Kubernetes there is no pod, and the container is all there is.
            container = "" if by_pod and ref.pod else ref.container
            named = (tenant.mig, ref.namespace, ref.pod, container)
            merged.setdefault(named, ([], []))[number].append(tenant)
    is_shared = sum(bool(live) for live, _ in merged.values()) > 1
    for names, (live, ended) in sorted(merged.items()):
        subject = Labels(Scope.CONTAINER.labels, (*place.values, *names))
        if card.balance is not None:  # else nothing was ever booked
            yield Scope.CONTAINER, subject, counters([*live, *ended], card.ability)
        if live:
            yield Scope.CONTAINER, subject, gauges(live) if card.fault is None else claimed(live, card)
            if is_shared:
                yield Scope.CONTAINER, subject, SHARED


def counters(group: Sequence[Tenant], able: Ability) -> Iterator[Reading]:
    """Yield what tenants of one name have used of a card so far."""
    if unsized_us := sum(tenant.booking.unsized_us or 0 for tenant in group):
        yield _seconds("unknown_share_seconds_total", unsized_us)
    booked = [tenant.booking for tenant in group if tenant.booking.bookable]
    if not booked:
        return
    if able.counts_busy:
        yield _seconds("busy_seconds_total", sum(booking.busy_us for booking in booked))
        yield _seconds("busy_settled_seconds_total", sum(booking.settled_busy_us for booking in booked))
        yield _seconds("busy_bound_seconds_total", sum(booking.least_busy_us for booking in booked), _LEAST)
        yield _seconds("busy_bound_seconds_total", sum(booking.most_busy_us for booking in booked), _MOST)
        yield _seconds("busy_likely_seconds_total", sum(booking.likely_least_busy_us for booking in booked), _LEAST)
        yield _seconds("busy_likely_seconds_total", sum(booking.likely_most_busy_us for booking in booked), _MOST)
    allocated_us = sum(booking.allocated_us for booking in booked)
    is_unsized = any(tenant.claims and tenant.booking.allocated_ratio is None for tenant in group)
    if allocated_us or not is_unsized:  # nobody holds nothing
        yield _seconds("allocated_seconds_total", allocated_us)
        yield _seconds("unknown_use_seconds_total", sum(booking.unmeasured_us for booking in booked))
    resident = [booking.resident_us for booking in booked if booking.resident_us is not None]
    if resident:
        yield _seconds("resident_seconds_total", sum(resident))
    if able.counts_energy:
        yield _joules(_ENERGY, sum(booking.energy_mj for booking in booked))
        yield _joules("energy_bound_joules_total", sum(booking.least_energy_mj for booking in booked), _LEAST)
        yield _joules("energy_bound_joules_total", sum(booking.most_energy_mj for booking in booked), _MOST)
        yield _joules("energy_likely_joules_total", sum(booking.likely_least_energy_mj for booking in booked), _LEAST)
        yield _joules("energy_likely_joules_total", sum(booking.likely_most_energy_mj for booking in booked), _MOST)


def gauges(live: Sequence[Tenant]) -> Iterator[Reading]:
    """Yield what tenants of one name have of a card now."""
    for tenant in live:
        certainty = tenant.use.certainty if tenant.use else ""
        yield Reading("info", 1.0, (tenant.booking.method, certainty, tenant.container.pod_uid))
    yield from _states(live)
    booked = [tenant.booking for tenant in live]
    active = [booking.last_active_at for booking in booked if booking.last_active_at is not None]
    errors = [booking.sampling.error_ratio for booking in booked if booking.sampling is not None]
    held = [tenant.held_since for tenant in live if tenant.held_since is not None]
    idle = [
        tenant.holding.since
        for tenant in live
        if tenant.holding and tenant.holding.state == IDLE and tenant.holding.since
    ]
    # Where two pods have one name, one may hold the claim and the other the processes.
    users = [booking for booking in booked if booking.processes] or booked
    yield from _known(
        {
            "memory_used_bytes": total(booking.memory_bytes for booking in users),
            "memory_limit_bytes": total_of_known(booking.memory_limit_bytes for booking in booked),
            "sm_utilization_ratio": total(booking.sm_ratio for booking in users),
            "instance_utilization_ratio": total(booking.instance_ratio for booking in users),
            "power_watts": total(booking.power_watts for booking in booked),
            "allocated_ratio": total_of_known(booking.allocated_ratio for booking in booked),
            "processes": total(booking.processes for booking in booked),
            "sampling_error_ratio": max(errors, key=abs, default=None),
            "last_active_timestamp_seconds": max(active, default=None),
            "held_since_timestamp_seconds": min(held, default=None),
            "idle_since_timestamp_seconds": max(idle, default=None),
            "not_given": 1.0 if any(tenant.without_claim == NOT_GIVEN for tenant in live) else None,
        }
    )


def claimed(live: Sequence[Tenant], card: Card) -> Iterator[Reading]:
    """Yield what is known of the holders of a card that cannot be read: that they hold it, and how much of it."""
    for tenant in live:
        yield Reading("info", 1.0, (tenant.booking.method, "", tenant.container.pod_uid))
    yield from _states(live)
    shares = [share for tenant in live if is_holder(tenant) and (share := held_share(tenant, card)) is not None]
    held = [tenant.held_since for tenant in live if tenant.held_since is not None]
    yield from _known(
        {
            "allocated_ratio": float(sum(shares)) if shares else None,
            "held_since_timestamp_seconds": min(held, default=None),
        }
    )


def _states(live: Sequence[Tenant]) -> Iterator[Reading]:
    """Yield what holders do with what they hold; of two pods of one name, one word for each state."""
    for state in dict.fromkeys(tenant.holding.state for tenant in live if tenant.holding):
        yield Reading("state", 1.0, (state,))


def _rest(rest: Rest, card: Card) -> Iterator[Reading]:
    reason = (rest.reason,)
    is_seen = card.fault is None and card.ability.knows_owners and rest.reason not in _NEVER_RUNS
    gauges = {
        "memory_bytes": rest.memory_bytes,
        "sm_utilization_ratio": rest.sm_ratio,
        "power_watts": rest.power_watts,
        "processes": len(rest.running) if is_seen else None,
    }
    yield from _known(gauges, reason)
    if card.balance is not None:
        yield from _used(rest, reason, card.ability)


def _used(rest: Rest, labels: tuple[str, ...], able: Ability) -> Iterator[Reading]:
    if able.counts_busy and (rest.busy_us or rest.reason not in _NEVER_BUSY):
        yield _seconds("busy_seconds_total", rest.busy_us, labels)
    if able.counts_energy and (rest.energy_mj or rest.reason not in _NEVER_DRAWS):
        yield _joules(_ENERGY, rest.energy_mj, labels)


def _rest_bounds(balance: Balance, able: Ability) -> Iterator[Reading]:
    if able.counts_busy:
        yield _seconds("busy_bound_seconds_total", balance.unattributed_least_us, _LEAST)
        yield _seconds("busy_bound_seconds_total", balance.unattributed_most_us, _MOST)


def _balance(balance: Balance, able: Ability) -> Iterator[Reading]:
    yield from _known({"booked_memory_bytes": balance.memory_bytes, "busy_ratio": balance.busy_ratio})
    if able.counts_busy:
        yield _seconds("booked_busy_seconds_total", balance.busy_us)
    if able.counts_energy:
        yield _joules("booked_energy_joules_total", balance.energy_mj)
    if balance.switches is not None and balance.switching_us is not None:
        yield Reading("context_switches_total", float(balance.switches))
        yield _seconds("switching_seconds_total", balance.switching_us)


def _known(values: dict[str, float | None], labels: tuple[str, ...] = ()) -> Iterator[Reading]:
    return (Reading(name, float(value), labels) for name, value in values.items() if value is not None)


def _seconds(name: str, microseconds: int, labels: tuple[str, ...] = ()) -> Reading:
    return Reading(name, microseconds / 1_000_000, labels)


def _joules(name: str, millijoules: int, labels: tuple[str, ...] = ()) -> Reading:
    return Reading(name, millijoules / 1_000, labels)


def _label_names(keys: Sequence[str]) -> list[str]:
    """`app.kubernetes.io/name` becomes `label_app_kubernetes_io_name`; a name that is taken gets a number."""
    names: list[str] = []
    for key in keys:
        plain = name = f"label_{label_name(key)}"
        number = 0
        while name in names:
            number += 1
            name = f"{plain}_conflict{number}"
        names.append(name)
    return names
