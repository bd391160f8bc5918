"""What is known of one owner, card by card: claims, bookings and processes that belong together."""

from collections.abc import Iterator

from msgspec import Struct

from podgpu.model import Allocation, Booking, Claim, ContainerRef, Device, Holder, Process, Snapshot
from podgpu.views.outsider import is_outsider
from podgpu.views.tenancy import instance_of

# The UUID of a MIG instance, or nothing, and a container, or None for a process whose container is not known.
_Key = tuple[str, ContainerRef | None]


class Chain(Struct, frozen=True, kw_only=True):
    """One container of the pod on one card or instance."""

    mig: str
    container: ContainerRef | None
    claims: tuple[Claim, ...]
    booking: Booking | None
    processes: tuple[tuple[Process, Holder], ...]


class Case:
    """Everything in a snapshot that concerns one pod, by its namespace and name.

    One outside Kubernetes has empty ones, and a title.
    """

    def __init__(self, snapshot: Snapshot, namespace: str, pod: str, title: str = "") -> None:
        self._name = (namespace, pod)
        self._title = title
        self._devices = {device.gpu.uuid: device for device in snapshot.devices}
        self.pods = {one.uid: one for one in snapshot.pods if (one.namespace, one.name) == self._name}
        self.claims = [one for one in snapshot.claims if self._owns(one.container)]
        self.bookings = [one for one in snapshot.bookings if self._owns(one.container)]
        self.unclaimed = [one for one in snapshot.unclaimed if self._owns(one)]
        self.uids = self._all_uids(snapshot)
        self.holders = {one.pid: one for one in snapshot.holders if self._holds(one)}

    def __bool__(self) -> bool:
        return bool(self.pods or self.claims or self.bookings or self.unclaimed or self.holders)

    def cards(self) -> list[str]:
        """UUIDs of the cards that the pod holds or uses; those the driver does not list come last."""
        named = {one.gpu for one in self.claims} | {one.gpu for one in self.bookings}
        listed = [uuid for uuid, device in self._devices.items() if uuid in named or self._used(device)]
        return listed + sorted(named - set(listed))

    def chains(self, uuid: str) -> list[Chain]:
        claims: dict[_Key, list[Claim]] = {}
        processes: dict[_Key, list[tuple[Process, Holder]]] = {}
        for claim in self.claims:
            if claim.gpu == uuid:
                claims.setdefault((claim.mig, claim.container), []).append(claim)
        bookings: dict[_Key, Booking] = {
            (one.mig, one.container): one for one in self.bookings if one.gpu == uuid
        }
        device = self._devices.get(uuid)
        for mig, process, holder in self._used(device) if device else ():
            processes.setdefault((mig, holder.container), []).append((process, holder))
        keys = {*claims, *bookings, *processes}
        return [
            Chain(
                mig=mig,
                container=container,
                claims=tuple(claims.get((mig, container), ())),
                booking=bookings.get((mig, container)),
                processes=tuple(processes.get((mig, container), ())),
            )
            for mig, container in sorted(keys, key=_order)
        ]

    def is_init(self, container: ContainerRef | None) -> bool:
        pod = self.pods.get(container.pod_uid) if container else None
        names = [one.name for one in pod.containers if one.is_init] if pod else []
        return container is not None and container.container in names

    def _owns(self, one: ContainerRef | Allocation) -> bool:
        if self._title:
            return is_outsider(one) and one.container == self._title
        return not is_outsider(one) and (one.namespace, one.pod) == self._name

    def _holds(self, holder: Holder) -> bool:
        if holder.container is not None:
            return self._owns(holder.container)
        if self._title:
            return holder.title == self._title
        # A static pod's cgroup carries a hash in place of the UID.
        uids = {*self.uids, *(pod.static_hash for pod in self.pods.values())} - {""}
        return holder.owner is not None and holder.owner.pod_uid in uids

    def _all_uids(self, snapshot: Snapshot) -> list[str]:
        refs = [one.container for one in self.claims] + [one.container for one in self.bookings]
        refs += [one.container for one in snapshot.holders if one.container and self._owns(one.container)]
        return sorted({*self.pods, *(ref.pod_uid for ref in refs)} - {""})

    def _used(self, device: Device) -> list[tuple[str, Process, Holder]]:
        return [
            (instance_of(device, process), process, self.holders[process.pid])
            for process in device.processes
            if process.pid in self.holders
        ]


def pod_names(snapshot: Snapshot) -> list[str]:
    """List every pod that is named anywhere, as `namespace/pod`."""
    pods = {f"{pod.namespace}/{pod.name}" for pod in snapshot.pods}
    return sorted(pods | {f"{one.namespace}/{one.pod}" for one in _named(snapshot) if not is_outsider(one)})


def _named(snapshot: Snapshot) -> Iterator[ContainerRef | Allocation]:
    yield from (claim.container for claim in snapshot.claims)
    yield from (booking.container for booking in snapshot.bookings)
    yield from (holder.container for holder in snapshot.holders if holder.container)
    yield from snapshot.unclaimed


def _order(key: _Key) -> tuple[str, bool, str, str]:
    mig, container = key
    return (mig, True, "", "") if container is None else (mig, False, container.container, container.pod_uid)
