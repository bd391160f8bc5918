"""Bookings, remainders, balances, processes and pods as series.

A counter is an integer of the books divided once: its shortest decimal is that integer exactly, and the decimals on a
page add up as the integers do.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from podgpu import catalog
from podgpu.catalog.row import Scope
from podgpu.model import ENDED, Balance, Booking, Device, Reading, Remainder, Snapshot
from podgpu.views.family import block, pairs_text
from podgpu.views.tenancy import instance_of

POD_INFO = "podgpu_pod_info"

_CARD_LABELS = ("node", "gpu", "uuid")
_CONTAINER_LABELS = (*_CARD_LABELS, "mig", "namespace", "pod", "container")
_POD_LABELS = ("node", *catalog.families()[POD_INFO][0].label_names)
_NOT_IN_A_LABEL = re.compile("[^a-zA-Z0-9_]")
_ENERGY = "energy_joules_total"

Card = tuple[str, str, str]
Entry = tuple[Scope, str, Iterable[Reading]]


def books(snapshot: Snapshot) -> Iterator[Entry]:
    """Yield the books of every card there is. Those of a card that is not listed have no index to go by."""
    for device in {device.gpu.uuid: device for device in snapshot.devices}.values():
        yield from _card_books(snapshot, device)


def processes(snapshot: Snapshot) -> Iterator[Entry]:
    containers = {holder.pid: holder.container for holder in snapshot.holders}
    for device in snapshot.devices:
        card = (snapshot.node, str(device.gpu.index), device.gpu.uuid)
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
        facts = (snapshot.node, pod.namespace, pod.name, pod.uid, kind, name, pod.phase)
        yield block(pairs_text(names, (*facts, *(pod.labels.get(key, "") for key in keys))))


def _card_books(snapshot: Snapshot, device: Device) -> Iterator[Entry]:
    uuid = device.gpu.uuid
    card = (snapshot.node, str(device.gpu.index), uuid)
    balance = next((one for one in snapshot.balances if one.gpu == uuid), None)
    # A card without an energy counter has no energy to book: that is unknown, not 0.
    energy = bool(balance and balance.energy_mj) or any(one.metric == _ENERGY for one in device.readings)
    yield from _containers(card, (one for one in snapshot.bookings if one.gpu == uuid), energy=energy)
    subject = pairs_text(_CARD_LABELS, card)
    for remainder in snapshot.remainders:
        if remainder.gpu == uuid and remainder.reason == ENDED:
            yield Scope.ENDED, subject, _used(remainder, (), energy=energy)
        elif remainder.gpu == uuid:
            yield Scope.UNATTRIBUTED, subject, _remainder(remainder, energy=energy)
    if balance:
        yield Scope.GPU, subject, _balance(balance, energy=energy)


def _containers(card: Card, bookings: Iterable[Booking], *, energy: bool) -> Iterator[Entry]:
    # A pod made again under its old name has another UID and the same series: the two are added up.
    merged: dict[str, list[Booking]] = {}
    for booking in bookings:
        one = booking.container
        names = (booking.mig, one.namespace, one.pod, one.container)
        merged.setdefault(pairs_text(_CONTAINER_LABELS, (*card, *names)), []).append(booking)
    for subject, group in merged.items():
        yield Scope.CONTAINER, subject, _counters(group, energy=energy)
        live = [one for one in group if not one.ended]
        if live:
            yield Scope.CONTAINER, subject, _gauges(live)


def _counters(group: Sequence[Booking], *, energy: bool) -> Iterator[Reading]:
    yield _seconds("busy_seconds_total", sum(one.busy_us for one in group))
    yield _seconds("allocated_seconds_total", sum(one.allocated_us for one in group))
    if energy:
        yield _joules(_ENERGY, sum(one.energy_mj for one in group))


def _gauges(live: Sequence[Booking]) -> Iterator[Reading]:
    for one in live:
        yield Reading("info", 1.0, (one.method, one.container.pod_uid))
    active = [one.last_active_at for one in live if one.last_active_at is not None]
    yield from _known(
        {
            "memory_used_bytes": _total([one.memory_bytes for one in live]),
            "memory_limit_bytes": _total([one.memory_limit_bytes for one in live]),
            "sm_utilization_ratio": _total([one.sm_ratio for one in live]),
            "power_watts": _total([one.power_watts for one in live]),
            "allocated_ratio": _total([one.allocated_ratio for one in live]),
            "processes": _total([one.processes for one in live]),
            "last_active_timestamp_seconds": max(active, default=None),
        }
    )


def _remainder(one: Remainder, *, energy: bool) -> Iterator[Reading]:
    reason = (one.reason,)
    yield from _known({"memory_bytes": one.memory_bytes, "processes": one.processes}, reason)
    yield from _used(one, reason, energy=energy)


def _used(one: Remainder, labels: tuple[str, ...], *, energy: bool) -> Iterator[Reading]:
    yield _seconds("busy_seconds_total", one.busy_us, labels)
    if energy:
        yield _joules(_ENERGY, one.energy_mj, labels)


def _balance(one: Balance, *, energy: bool) -> Iterator[Reading]:
    yield from _known({"booked_memory_bytes": one.memory_bytes})
    yield _seconds("booked_busy_seconds_total", one.busy_us)
    if energy:
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
