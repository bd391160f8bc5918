"""Makes the snapshot of a node from the newest values of its series. What the store does not have stays absent.

The books' counters are there, evidence is not: no processes by number, no ids of devices, no bounds of a booking.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from podgpu import catalog
from podgpu.catalog.row import Scope
from podgpu.model import (
    ENDED,
    UNKNOWN,
    Ability,
    Balance,
    Booking,
    Card,
    Claim,
    ContainerRef,
    Fault,
    Gpu,
    Instance,
    MigInstance,
    PartStatus,
    Pod,
    Reading,
    Rest,
    Snapshot,
    Tenant,
    Workload,
)
from podgpu.model.kube import only

SOURCE = "store"
LONGEST_NUMBER = 9  # digits of a card's number
_LABEL = "label_"
_MICRO, _MILLI = 1_000_000, 1_000
_DEVICE = {row.name: row.label_names for row in catalog.device_rows()}


class StoredValues(defaultdict[str, list[tuple[Mapping[str, str], float]]]):
    """The labels and values of series, by the name without its prefix. What is not there is None."""

    def __init__(self) -> None:
        super().__init__(list)

    def labels(self, name: str) -> Mapping[str, str]:
        """Return those of the first series."""
        return next((labels for labels, _ in self.get(name, ())), {})

    def value(self, name: str, **wanted: str) -> float | None:
        """Return the value of the first series that has these labels."""
        found = self.get(name, ())
        matching = (value for labels, value in found if all(labels.get(key) == text for key, text in wanted.items()))
        return next(matching, None)

    def whole(self, name: str) -> int | None:
        found = self.value(name)
        return None if found is None else round(found)

    def in_units(self, name: str, unit: int) -> int:
        """Return a counter as the books keep it, in so many parts of its unit; 0 if it is not there."""
        return round((self.value(name) or 0.0) * unit)


class ContainerPlace(NamedTuple):
    mig: str
    namespace: str
    pod: str
    container: str


class CardRows(Struct):
    uuid: str
    index: str
    gpu: StoredValues = field(default_factory=StoredValues)
    ended: StoredValues = field(default_factory=StoredValues)
    instances: dict[tuple[str, str], StoredValues] = field(default_factory=lambda: defaultdict(StoredValues))
    containers: dict[ContainerPlace, StoredValues] = field(default_factory=lambda: defaultdict(StoredValues))
    rest: dict[str, StoredValues] = field(default_factory=lambda: defaultdict(StoredValues))


class NodeRows(Struct):
    node: str
    agent: StoredValues = field(default_factory=StoredValues)
    cards: dict[str, CardRows] = field(default_factory=dict)

    def add(self, metric: str, labels: Mapping[str, str], value: float) -> None:
        for scope in (Scope.GPU, Scope.MIG, Scope.CONTAINER, Scope.UNATTRIBUTED, Scope.ENDED):
            if metric.startswith(scope.prefix):
                if labels.get("uuid"):
                    self._sorted(scope, labels)[metric.removeprefix(scope.prefix)].append((labels, value))
                return
        self.agent[metric.removeprefix(Scope.AGENT.prefix)].append((labels, value))

    def _sorted(self, scope: Scope, labels: Mapping[str, str]) -> StoredValues:
        uuid = labels["uuid"]
        card = self.cards.setdefault(uuid, CardRows(uuid, labels.get("gpu", "")))
        if scope is Scope.CONTAINER:
            return card.containers[ContainerPlace(*(labels.get(name, "") for name in ContainerPlace._fields))]
        if scope is Scope.MIG:
            return card.instances[labels.get("mig", ""), labels.get("profile", "")]
        if scope is Scope.UNATTRIBUTED:
            return card.rest[labels.get("reason", "")]
        return card.ended if scope is Scope.ENDED else card.gpu


def snapshot(rows: NodeRows, *, taken_at: float, interval: float) -> Snapshot:
    """`interval` is the time between two scrapes: nothing newer is to be expected."""
    build = rows.agent.labels("build_info")
    pods = tuple(_pods(rows))
    workloads = {(pod.namespace, pod.name): pod.workload for pod in pods}
    cards = [_card(card, workloads) for card in rows.cards.values()]
    return Snapshot(
        node=rows.node,
        taken_at=taken_at,
        interval_seconds=max(interval, rows.agent.value("interval_seconds") or 0.0),
        watched_since=rows.agent.value("watched_since_timestamp_seconds"),
        stored=True,
        version=build.get("version", ""),
        demo=build.get("demo") == "true",
        driver_version=build.get("driver_version", ""),
        nvml_version=build.get("nvml_version", ""),
        cards=tuple(sorted(cards, key=lambda card: (card.gpu.index, card.gpu.uuid))),
        pods=pods,
        parts=tuple(_parts(rows)),
    )


def _pods(rows: NodeRows) -> Iterator[Pod]:
    for labels, _ in rows.agent["pod_info"]:
        name = labels.get("workload_name", "")
        yield Pod(
            namespace=labels.get("namespace", ""),
            name=labels.get("pod", ""),
            uid=labels.get("pod_uid", ""),
            phase=labels.get("phase", ""),
            labels={key.removeprefix(_LABEL): text for key, text in labels.items() if key.startswith(_LABEL) and text},
            workload=Workload(kind=labels.get("workload_kind", ""), name=name) if name else None,
        )


def _parts(rows: NodeRows) -> Iterator[PartStatus]:
    problems = {labels["source"]: labels.get("reason", "") for labels, _ in rows.agent["source_problem"]}
    for labels, value in rows.agent["source_up"]:
        name = labels.get("source", "")
        yield PartStatus(
            name=name,
            up=value == 1,
            fault=Fault(reason=problems[name]) if name in problems else None,
            duration_seconds=rows.agent.value("source_duration_seconds", source=name) or 0.0,
            age_seconds=rows.agent.value("source_age_seconds", source=name),
        )


def _card(rows: CardRows, workloads: Mapping[tuple[str, str], Workload | None]) -> Card:
    return Card(
        gpu=_gpu(rows),
        fault=_fault(rows),
        ability=_ability(rows),
        readings=tuple(_readings(rows.gpu)),
        instances=tuple(_instances(rows)),
        tenants=tuple(_tenants(rows, workloads)),
        rest=tuple(_rest(rows)),
        balance=_balance(rows.gpu),
    )


def _gpu(rows: CardRows) -> Gpu:
    info = rows.gpu.labels("info")
    return Gpu(
        uuid=rows.uuid,
        index=UNKNOWN if (index := _number(rows.index)) is None else index,
        minor=_number(info.get("minor", "")),
        model=info.get("model", ""),
        pci_bus_id=info.get("pci_bus_id", ""),
        architecture=info.get("architecture", ""),
        compute_capability=info.get("compute_capability", ""),
        vbios=info.get("vbios", ""),
        mig_enabled=info.get("mig_enabled") == "true",
    )


def _fault(rows: CardRows) -> Fault | None:
    if rows.gpu.value("up") != 0:
        return None
    problem = rows.gpu.labels("problem")
    return Fault(reason=problem.get("reason", "unknown"), call=problem.get("call", ""))


def _ability(rows: CardRows) -> Ability:
    """What is counted shows that it can be."""
    sees = "processes" in rows.gpu or any("processes" in values for values in rows.containers.values())
    return Ability(
        sees_processes=sees,
        sees_all=sees,
        knows_owners=any("processes" in values for values in rows.rest.values()),
        counts_busy="booked_busy_seconds_total" in rows.gpu,
        counts_energy="booked_energy_joules_total" in rows.gpu,
    )


def _readings(values: StoredValues) -> Iterator[Reading]:
    for name, found in values.items():
        names = _DEVICE.get(name)
        if names is not None:
            for labels, value in found:
                own = tuple(labels.get(each, "") for each in names)
                yield Reading(name, value, own)


def _instances(rows: CardRows) -> Iterator[Instance]:
    for (uuid, profile), values in sorted(rows.instances.items()):
        mig = MigInstance(uuid=uuid, profile=profile, gpu_instance_id=UNKNOWN, compute_instance_id=UNKNOWN)
        yield Instance(mig=mig, readings=tuple(_readings(values)))


def _tenants(rows: CardRows, workloads: Mapping[tuple[str, str], Workload | None]) -> Iterator[Tenant]:
    """Yield those on the card now. Only they have an info; the counters of others live on for a while."""
    allocated: dict[str, float] = defaultdict(float)
    for place, values in rows.containers.items():
        allocated[place.mig] += values.value("allocated_ratio") or 0.0
    for place, values in sorted(rows.containers.items()):
        if not values["info"]:
            continue
        # Two pods of one name, of which one has just ended, share their numbers: they cannot be distinguished.
        uid = only(labels.get("pod_uid", "") for labels, _ in values["info"])
        method = values["info"][-1][0].get("method", "")
        ref = ContainerRef(place.namespace, place.pod, place.container, uid)
        booking = _booking(values, method)
        yield Tenant(
            container=ref,
            mig=place.mig,
            workload=workloads.get((ref.namespace, ref.pod)),
            held_since=values.value("held_since_timestamp_seconds"),
            claims=_claims(rows.uuid, place.mig, ref, booking, allocated[place.mig]),
            booking=booking,
            idle=None if booking.processes is None else booking.processes == 0,
        )


def _claims(uuid: str, mig: str, container: ContainerRef, booking: Booking, allocated: float) -> tuple[Claim, ...]:
    """Make the claim that the allocated share shows. On a MIG instance, the share is that of all containers there."""
    share = booking.allocated_ratio
    if not share:
        return ()
    return (
        Claim(
            gpu=uuid,
            container=container,
            mig=mig,
            share=min(share / allocated, 1.0) if mig else share,
            memory_limit_bytes=booking.memory_limit_bytes,
            source=SOURCE,
        ),
    )


def _booking(values: StoredValues, method: str) -> Booking:
    return Booking(
        method=method,
        processes=values.whole("processes"),
        memory_bytes=values.whole("memory_used_bytes"),
        memory_limit_bytes=values.whole("memory_limit_bytes"),
        sm_ratio=values.value("sm_utilization_ratio"),
        instance_ratio=values.value("instance_utilization_ratio"),
        power_watts=values.value("power_watts"),
        allocated_ratio=values.value("allocated_ratio"),
        bookable=not {"allocated_seconds_total", "busy_seconds_total", "energy_joules_total"}.isdisjoint(values),
        busy_us=values.in_units("busy_seconds_total", _MICRO),
        energy_mj=values.in_units("energy_joules_total", _MILLI),
        allocated_us=values.in_units("allocated_seconds_total", _MICRO),
        last_active_at=values.value("last_active_timestamp_seconds"),
    )


def _rest(rows: CardRows) -> Iterator[Rest]:
    others: Iterable[tuple[str, StoredValues]] = [*sorted(rows.rest.items()), (ENDED, rows.ended)]
    for reason, values in others:
        if values:
            yield Rest(
                reason=reason,
                memory_bytes=values.whole("memory_bytes"),
                sm_ratio=values.value("sm_utilization_ratio"),
                power_watts=values.value("power_watts"),
                busy_us=values.in_units("busy_seconds_total", _MICRO),
                energy_mj=values.in_units("energy_joules_total", _MILLI),
            )


def _balance(values: StoredValues) -> Balance | None:
    if not any(name.startswith("booked_") for name in values):
        return None
    return Balance(
        memory_bytes=values.whole("booked_memory_bytes"),
        busy_ratio=values.value("busy_ratio"),
        busy_us=values.in_units("booked_busy_seconds_total", _MICRO),
        energy_mj=values.in_units("booked_energy_joules_total", _MILLI),
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None
