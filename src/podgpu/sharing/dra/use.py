"""Which devices of its claims a container uses.

Who uses what is known, best first, from the pod's status, from the kubelet's list and from the claim itself. The
kubelet lists a claim's devices under each of its containers; the claim says which of them are for which request.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import ClaimedDevice, DynamicAllocation, Pod, PodContainer, ResourceClaim
from podgpu.sharing.dra.device import Place


class HeldDevice(Struct, frozen=True, kw_only=True):
    """A device that a container may use, and who said so.

    `consumed` is what its claim consumes of a device that several claims may have, None as long as the claim is not
    known, and `share_id` names that part.
    """

    driver: str
    pool: str
    device: str
    source: str
    share_id: str = ""
    consumed: dict[str, str] | None = None

    @property
    def place(self) -> Place:
        return self.driver, self.pool, self.device


class ClaimIndex:
    """All resource claims, by namespace and name, and those made from a template by the pod they are for.

    `listed_by` is the part that lists devices by container.
    """

    def __init__(self, known: Iterable[ResourceClaim], listed_by: str) -> None:
        self.listed_by = listed_by
        self._known: dict[tuple[str, str], ResourceClaim] = {}
        self._made: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        for one in known:
            self._known[one.namespace, one.name] = one
            for uid in one.pod_uids if one.pod_name else ():
                self._made[one.namespace, uid][one.pod_name] = one.name

    def names(self, pod: Pod) -> dict[str, str]:
        """Return the claims by the pod's own names. Those of templates are in the claim, not in the kubelet's list."""
        return self._made.get((pod.namespace, pod.uid), {}) | pod.resource_claims

    def of(self, pod: Pod, name: str) -> ResourceClaim | None:
        """Return a claim of the pod. One that is reserved for other pods was read before this pod was given it.

        A claim that is reserved for a group of pods names none of them.
        """
        found = self._known.get((pod.namespace, name))
        return found if found and pod.uid in (found.pod_uids or (pod.uid,)) else None


class ContainerDevices:
    """What one container of a pod uses, by the pod's spec and status."""

    def __init__(self, pod: Pod, container: PodContainer, known: ClaimIndex) -> None:
        self._container = container
        self._listed_by = known.listed_by
        self._uid = pod.uid
        self._names = known.names(pod)
        self._requests = _requests(pod, container, self._names)
        found = {name: known.of(pod, name) for name in self._requests}
        self._claims = {name: one for name, one in found.items() if one}

    def held(self, rows: Iterable[DynamicAllocation]) -> Iterator[HeldDevice]:
        rows = list(rows)
        if self._is_over() and not rows:
            return
        status = self._status()
        for name, devices in status.items():
            yield from self._cut(name, devices)
        for row in rows:
            # A claim whose name only the kubelet knows is one that the status has by the pod's name for it.
            name = row.claim_name if row.claim_name in self._requests else ""
            if name not in status:
                yield from self._cut(name, [row_held(row, self._listed_by)])
        yield from self._reserved({*status, *(row.claim_name for row in rows)})

    def _status(self) -> dict[str, list[HeldDevice]]:
        """Return what the pod's status says, by the claim's name, unless the claim does not know these devices."""
        found = {self._names.get(own, ""): devices for own, devices in _in_status(self._container).items()}
        return {
            name: devices
            for name, devices in found.items()
            if name not in self._claims or {one.place for one in devices} & _places(self._claims[name])
        }

    def _is_over(self) -> bool:
        """Whether it has come and gone, as init containers do. The kubelet lists those that stay."""
        return self._container.is_init and not self._container.running

    def _reserved(self, settled: set[str]) -> Iterator[HeldDevice]:
        """Kubelets before 1.34 list nothing. Then the claim itself has to do."""
        for name, claim in self._claims.items():
            if name not in settled and self._uid in claim.pod_uids:
                devices = [
                    HeldDevice(driver=one.driver, pool=one.pool, device=one.device, source="resourceclaim")
                    for one in claim.devices
                ]
                yield from self._cut(name, devices)

    def _cut(self, name: str, devices: Iterable[HeldDevice]) -> Iterator[HeldDevice]:
        """Leave out what the claim has for other requests. Without the claim nothing can be left out."""
        claim = self._claims.get(name)
        if claim is None:
            yield from devices
            return
        own = [one for one in claim.devices if _matches(one.request, self._requests[name])]
        for held in devices:
            for one in own:
                if held.place == _place(one) and _is_same(held.share_id, one.share_id):
                    yield replace(held, share_id=one.share_id, consumed=one.consumed)


def _place(device: ClaimedDevice) -> Place:
    return device.driver, device.pool, device.device


def _is_same(listed: str, claimed: str) -> bool:
    """Whether two names of a part may be of the same. Older kubelets list none."""
    return not (listed and claimed) or listed == claimed


def _places(claim: ResourceClaim) -> set[Place]:
    return {_place(one) for one in claim.devices}


def _requests(pod: Pod, container: PodContainer, names: dict[str, str]) -> dict[str, set[str]]:
    """Return the requests that the container uses, by the claim's name. An empty one means all."""
    requests: defaultdict[str, set[str]] = defaultdict(set)
    for use in container.uses:
        if name := names.get(use.claim):
            requests[name].add(use.request)
    for mapping in pod.extended:
        if mapping.container == container.name and pod.extended_claim:
            requests[pod.extended_claim].add(mapping.request)
    return dict(requests)


def _matches(request: str, wanted: set[str]) -> bool:
    """`gpu/small` is one of the alternatives of the request `gpu`."""
    return "" in wanted or request in wanted or request.partition("/")[0] in wanted


def _in_status(container: PodContainer) -> dict[str, list[HeldDevice]]:
    """Return the status's devices by the pod's own name for a claim. Some kubelets write ids that name no device."""
    found_in: defaultdict[str, list[HeldDevice | None]] = defaultdict(list)
    for resource, device_id in container.devices:
        kind, _, name = resource.partition(":")
        if kind == "claim":
            found_in[name.partition("/")[0]].append(_status_device(device_id))
    return {name: [one for one in found if one] for name, found in found_in.items() if all(found)}


def _status_device(device_id: str) -> HeldDevice | None:
    """Read DRIVER/POOL/DEVICE, where a pool may have slashes. A name of the runtime's has `=` in it."""
    driver, _, rest = device_id.partition("/")
    pool, _, device = rest.rpartition("/")
    if not (driver and pool and device) or "=" in device_id:
        return None
    return HeldDevice(driver=driver, pool=pool, device=device, source="pod status")


def row_held(row: DynamicAllocation, source: str) -> HeldDevice:
    return HeldDevice(
        driver=row.driver, pool=row.pool, device=row.device, source=source, share_id=row.share_id
    )
