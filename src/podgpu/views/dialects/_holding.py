"""Which pods hold or use which card now, or which instance of it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import isfinite

from msgspec import Struct

from podgpu.model import Booking, Claim, ContainerRef, Device, Holder, Instance, Process, Reading, Snapshot
from podgpu.views.family import Family
from podgpu.views.outsider import is_outsider
from podgpu.views.tenancy import instance_of, processes_visible


class Holding(Struct, frozen=True, kw_only=True):
    """One container on one card, or on one of its MIG instances: with a claim, or with processes, or both.

    An `is_idle` one surely has no process there. What it uses is then known, and 0.
    """

    container: ContainerRef
    device: Device
    mig: str = ""
    booking: Booking | None = None
    claims: tuple[Claim, ...] = ()
    processes: tuple[Process, ...] = ()
    is_idle: bool = False

    @property
    def uuid(self) -> str:
        """The device that was given: a slice's own UUID, not its card's."""
        return self.mig or self.device.gpu.uuid

    @property
    def instance(self) -> Instance | None:
        return next((one for one in self.device.instances if one.mig.uuid == self.mig), None)

    @property
    def memory_bytes(self) -> int | None:
        measured = self.booking.memory_bytes if self.booking else None
        return 0 if measured is None and self.is_idle else measured

    @property
    def sm_ratio(self) -> float | None:
        """Of the device that was given.

        What is booked on MIG is the activity of a GPU instance, which is told for all its compute instances together.
        """
        booked = self.booking.sm_ratio if self.booking else None
        if booked is None:
            return 0.0 if self.is_idle else None
        times = self._times_own_size
        return min(1.0, booked * times) if isfinite(booked) and times is not None else None

    @property
    def card_ratio(self) -> float | None:
        """The same, of the whole card."""
        return None if self.sm_ratio is None or self.part is None else self.sm_ratio * self.part

    @property
    def part(self) -> float | None:
        """How much of the card the device is, by multiprocessors."""
        if not self.mig:
            return 1.0
        own = self.instance.mig.multiprocessors if self.instance else None
        whole = self.device.gpu.multiprocessors
        return min(1.0, own / whole) if own and whole else None

    @property
    def _times_own_size(self) -> float | None:
        """How many times as large the GPU instance is as the device. None where nobody can say."""
        own = self.instance.mig if self.instance else None
        beside = [
            one.mig for one in self.device.instances if own and one.mig.gpu_instance_id == own.gpu_instance_id
        ]
        if own is None or beside == [own]:
            return 1.0
        sizes = [one.multiprocessors or 0 for one in beside]
        return sum(sizes) / (own.multiprocessors or 0) if all(sizes) else None

    def reading(self, metric: str) -> float | None:
        """What the device that was given says of itself."""
        holder = self.instance if self.mig else self.device
        return None if holder is None else reading(holder.readings, metric)


def holdings(snapshot: Snapshot) -> Iterator[Holding]:
    """List every place that a pod holds or uses, by card, instance and container.

    Who has ended holds nothing. Who is outside Kubernetes has no pod to be shown by.
    """
    bookings = {(one.gpu, one.mig, one.container): one for one in snapshot.bookings if not one.ended}
    claims: dict[tuple[str, str, ContainerRef], list[Claim]] = {}
    for claim in snapshot.claims:
        claims.setdefault((claim.gpu, claim.mig, claim.container), []).append(claim)
    used = [place for place, booking in bookings.items() if booking.processes]
    places = sorted({place for place in (*claims, *used) if not is_outsider(place[2])})
    owners = {holder.pid: holder.container for holder in snapshot.holders}
    for device in {one.gpu.uuid: one for one in snapshot.devices}.values():
        is_watched = _is_watched(snapshot, device)
        for place in [one for one in places if one[0] == device.gpu.uuid]:
            _, mig, container = place
            booking = bookings.get(place)
            yield Holding(
                container=container,
                device=device,
                mig=mig,
                booking=booking,
                claims=tuple(claims.get(place, ())),
                processes=tuple(
                    one
                    for one in device.processes
                    if one.kinds and owners.get(one.pid) == container and instance_of(device, one) == mig
                ),
                is_idle=is_watched and not (booking and booking.processes),
            )


def card_names(snapshot: Snapshot, prefix: str = "") -> dict[str, str]:
    """Name cards by their index, and those of which two have one index by their UUID: two must not become one.

    Nodes like that are read from several pages, each of which counts its own cards from 0.
    """
    cards = {one.gpu.uuid: one.gpu.index for one in snapshot.devices}
    bearers = Counter(cards.values())
    return {uuid: f"{prefix}{index}" if bearers[index] == 1 else uuid for uuid, index in cards.items()}


def reading(readings: Iterable[Reading], metric: str, labels: tuple[str, ...] = ()) -> float | None:
    found = (one.value for one in readings if (one.metric, one.labels) == (metric, labels))
    return next((value for value in found if isfinite(value)), None)


def percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio * 100, 6)


def add(family: Family, labels: str, value: float | None) -> None:
    """Pods that were made again under their name share a series: the two are added up."""
    if value is not None:
        family.samples[labels] = family.samples.get(labels, 0.0) + value


def _is_watched(snapshot: Snapshot, device: Device) -> bool:
    """Whether all processes on the card are listed, and whose each of them is, or that it is gone."""
    named = {one.pid for one in snapshot.holders if _is_placed(one)}
    return (
        device.fault is None
        and device.processes_known
        and processes_visible(snapshot)
        and all(process.pid in named for process in device.processes if process.kinds)
    )


def _is_placed(holder: Holder) -> bool:
    return holder.container is not None or holder.kind in ("host", "container") or holder.reason == "exited"
