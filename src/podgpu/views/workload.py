"""Bookings, remainders, balances, processes and pods as series.

A counter is an integer of the books divided once: its shortest decimal is that integer exactly, and the decimals on a
page add up as the integers do.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from podgpu import catalog
from podgpu.catalog.row import Scope
from podgpu.model import ENDED, Balance, Booking, Device, Reading, Remainder, Snapshot
from podgpu.views.family import block, pairs_text
from podgpu.views.tenancy import instance_of, processes_visible

POD_INFO = "podgpu_pod_info"

_CARD_LABELS = ("node", "gpu", "uuid")
_CONTAINER_LABELS = (*_CARD_LABELS, "mig", "namespace", "pod", "container")
_POD_LABELS = ("node", *catalog.families()[POD_INFO][0].label_names)
_NOT_IN_A_LABEL = re.compile("[^a-zA-Z0-9_]")
_ENERGY = "energy_joules_total"

_ACTIVITY = {"utilization_ratio", "graphics_engine_active_ratio"}

Card = tuple[str, str, str]
Entry = tuple[Scope, str, Iterable[Reading]]


class Told(Struct, frozen=True):
    """What of one card can be known."""

    energy: bool
    busy: bool
    processes: bool


def books(snapshot: Snapshot) -> Iterator[Entry]:
    """Yield the books of every card there is. Those of a card that is not listed have no index to go by."""
    for device in {device.gpu.uuid: device for device in snapshot.devices}.values():
        yield from _card_books(snapshot, device)


def processes(snapshot: Snapshot) -> Iterator[Entry]:
    containers = {holder.pid: holder.container for holder in snapshot.holders}
    for device in snapshot.devices:
        card = (snapshot.node_of(device.gpu), str(device.gpu.index), device.gpu.uuid)
        for process in device.processes:
            owner = containers.get(process.pid)
            names = (owner.namespace, owner.pod, owner.container) if owner else ("", "", "")
            subject = pairs_text(_CONTAINER_LABELS, (*card, instance_of(device, process), *names))
            values = {
                "memory_used_bytes": process.memory_bytes,
                "sm_utilization_ratio": process.sm_ratio,
            }
            yield Scope.PROCESS, subject, _known(values, (str(process.pid),))


def pods(snapshot: Snapshot) -> Iterator[str]:
    """Yield the labels of each pod's info. All have the same names; a label a pod lacks is empty."""
    keys = sorted({key for pod in snapshot.pods for key in pod.labels})
    names = (*_POD_LABELS, *_label_names(keys))
    for pod in snapshot.pods:
        made_for = snapshot.workloads.get(pod.uid)
        kind, name = (made_for.kind, made_for.name) if made_for else ("", "")
        facts = (pod.node or snapshot.node, pod.namespace, pod.name, pod.uid, kind, name, pod.phase)
        yield block(pairs_text(names, (*facts, *(pod.labels.get(key, "") for key in keys))))


def _card_books(snapshot: Snapshot, device: Device) -> Iterator[Entry]:
    uuid = device.gpu.uuid
    card = (snapshot.node_of(device.gpu), str(device.gpu.index), uuid)
    balance = next((one for one in snapshot.balances if one.gpu == uuid), None)
    told = _told(snapshot, device, balance)
    yield from _containers(card, (one for one in snapshot.bookings if one.gpu == uuid), told)
    subject = pairs_text(_CARD_LABELS, card)
    for remainder in snapshot.remainders:
        if remainder.gpu == uuid and remainder.reason == ENDED:
            yield Scope.ENDED, subject, _used(remainder, (), told)
        elif remainder.gpu == uuid:
            yield Scope.UNATTRIBUTED, subject, _remainder(remainder, told)
    if balance:
        yield Scope.GPU, subject, _balance(balance, told)


def _told(snapshot: Snapshot, device: Device, balance: Balance | None) -> Told:
    """A card without an energy counter has no energy to book: that is unknown, not 0. So it is with the others."""
    metrics = {one.metric for one in device.readings}
    activity = {one.metric for instance in device.instances for one in instance.readings}
    return Told(
        energy=bool(balance and balance.energy_mj) or _ENERGY in metrics,
        busy=bool(balance and balance.busy_us)
        or bool(_ACTIVITY & (activity if device.instances else metrics)),
        processes=device.fault is None and processes_visible(snapshot),
    )


def _containers(card: Card, bookings: Iterable[Booking], told: Told) -> Iterator[Entry]:
    # A pod made again under its old name has another UID and the same series: the two are added up.
    merged: dict[str, list[Booking]] = {}
    for booking in bookings:
        one = booking.container
        names = (booking.mig, one.namespace, one.pod, one.container)
        merged.setdefault(pairs_text(_CONTAINER_LABELS, (*card, *names)), []).append(booking)
    for subject, group in merged.items():
        yield Scope.CONTAINER, subject, _counters(group, told)
        live = [one for one in group if not one.ended]
        if live:
            yield Scope.CONTAINER, subject, _gauges(live, told)


def _counters(group: Sequence[Booking], told: Told) -> Iterator[Reading]:
    if told.busy:
        yield _seconds("busy_seconds_total", sum(one.busy_us for one in group))
    yield _seconds("allocated_seconds_total", sum(one.allocated_us for one in group))
    if told.energy:
        yield _joules(_ENERGY, sum(one.energy_mj for one in group))


def _gauges(live: Sequence[Booking], told: Told) -> Iterator[Reading]:
    for one in live:
        yield Reading("info", 1.0, (one.method, one.container.pod_uid))
    active = [one.last_active_at for one in live if one.last_active_at is not None]
    # Where two pods have one name, one may hold the claim and the other the processes.
    users = [one for one in live if one.processes] or live
    yield from _known(
        {
            "memory_used_bytes": _total([one.memory_bytes for one in users]),
            "memory_limit_bytes": _added([one.memory_limit_bytes for one in live]),
            "sm_utilization_ratio": _total([one.sm_ratio for one in users]),
            "power_watts": _total([one.power_watts for one in live]),
            "allocated_ratio": _added([one.allocated_ratio for one in live]),
            "processes": sum(one.processes for one in live) if told.processes else None,
            "last_active_timestamp_seconds": max(active, default=None),
        }
    )


def _remainder(one: Remainder, told: Told) -> Iterator[Reading]:
    reason = (one.reason,)
    seen = one.processes if told.processes else None
    yield from _known({"memory_bytes": one.memory_bytes, "processes": seen}, reason)
    yield from _used(one, reason, told)


def _used(one: Remainder, labels: tuple[str, ...], told: Told) -> Iterator[Reading]:
    if told.busy:
        yield _seconds("busy_seconds_total", one.busy_us, labels)
    if told.energy:
        yield _joules(_ENERGY, one.energy_mj, labels)


def _balance(one: Balance, told: Told) -> Iterator[Reading]:
    yield from _known({"booked_memory_bytes": one.memory_bytes})
    if told.busy:
        yield _seconds("booked_busy_seconds_total", one.busy_us)
    if told.energy:
        yield _joules("booked_energy_joules_total", one.energy_mj)


def _known(values: dict[str, float | None], labels: tuple[str, ...] = ()) -> Iterator[Reading]:
    return (Reading(name, float(value), labels) for name, value in values.items() if value is not None)


def _seconds(name: str, microseconds: int, labels: tuple[str, ...] = ()) -> Reading:
    return Reading(name, microseconds / 1_000_000, labels)


def _joules(name: str, millijoules: int, labels: tuple[str, ...] = ()) -> Reading:
    return Reading(name, millijoules / 1_000, labels)


def _total(values: Sequence[float | None]) -> float | None:
    """A sum of which a part is unknown is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _added(values: Sequence[float | None]) -> float | None:
    """Nothing given is nothing to add; only where nobody was given anything is there no sum."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _label_names(keys: Sequence[str]) -> list[str]:
    """`app.kubernetes.io/name` becomes `label_app_kubernetes_io_name`; what would be taken gets a number."""
    names: list[str] = []
    for key in keys:
        plain = name = f"label_{_NOT_IN_A_LABEL.sub('_', key)}"
        number = 0
        while name in names:
            number += 1
            name = f"{plain}_conflict{number}"
        names.append(name)
    return names
