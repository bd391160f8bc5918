"""Which devices of resource claims a container may use: by its pod's status, the kubelet's list and the claims."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import ClaimedDevice, DynamicAllocation, Pod, PodContainer, PoolDevice, ResourceClaim

ALL = {""}  # requests of a claim
Place: TypeAlias = tuple[str, str, str]  # driver, pool, device


class HeldDevice(Struct, frozen=True, kw_only=True):
    """A device that a container may use, and where that is known from.

    `consumed` is what its claim consumes of a device that several claims may have, None as long as the claim is not
    known, and `share_id` names that part.
    """

    place: Place
    source: str
    share_id: str = ""
    consumed: dict[str, str] | None = None


class ClaimIndex:
    """All resource claims, by namespace and name, and those made from a template by the pod they are for."""

    def __init__(self, known: Iterable[ResourceClaim]) -> None:
        self._known: dict[tuple[str, str], ResourceClaim] = {}
        self._made: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        for claim in known:
            self._known[claim.namespace, claim.name] = claim
            for uid in claim.pod_uids if claim.pod_name else ():
                self._made[claim.namespace, uid][claim.pod_name] = claim.name

    def names(self, pod: Pod) -> dict[str, str]:
        """Return the claims by the pod's own names. Those of templates are in the claim, not in the kubelet's list."""
        return self._made.get((pod.namespace, pod.uid), {}) | pod.resource_claims

    def of(self, pod: Pod, name: str) -> ResourceClaim | None:
        """Return a claim of the pod. One that names other pods was read before it was reserved for this one.

        A claim that is reserved for a group of pods names none of them.
        """
        found = self._known.get((pod.namespace, name))
        return found if found and pod.uid in (found.pod_uids or (pod.uid,)) else None

    def listed(self, row: DynamicAllocation) -> ResourceClaim | None:
        """Return the claim that the kubelet names, for a pod that no list has."""
        return self._known.get((row.claim_namespace, row.claim_name))


class ContainerDevices:
    """What one container of a pod uses, by the pod's spec and status."""

    def __init__(self, pod: Pod, container: PodContainer, known: ClaimIndex) -> None:
        self._container = container
        self._pod = pod
        self._known = known
        self._names = known.names(pod)
        self._requests = _requests(pod, container, self._names)
        found = {name: known.of(pod, name) for name in self._requests}
        self._claims = {name: claim for name, claim in found.items() if claim}

    def held(self, rows: list[DynamicAllocation], listed_by: str) -> Iterator[HeldDevice]:
        """`rows` are what the part `listed_by` lists for the container."""
        # The kubelet lists the init containers that stay. The others have ended.
        if self._container.is_init and not self._container.running and not rows:
            return
        status = self._status()
        for name, devices in status.items():
            yield from cut(devices, self._claims.get(name), self._requests.get(name, ALL))
        for row in rows:
            # The status lists a claim under the pod's own name for it. Which claim that is may not be known.
            name = row.claim_name if row.claim_name in self._requests else ""
            if name not in status:
                claim = self._known.of(self._pod, row.claim_name)
                yield from cut([row_held(row, listed_by)], claim, self._requests.get(name, ALL))
        yield from self._reserved({*status, *(row.claim_name for row in rows)})

    def monitored(self) -> Iterator[tuple[str, Place]]:
        """Yield the devices that it may only look at, each with the name of the claim."""
        for name, claim in self._claims.items():
            for device in claim.monitored:
                if _matches(device.request, self._requests[name]):
                    yield name, place_of(device)

    def _status(self) -> dict[str, list[HeldDevice]]:
        """Return the devices in the pod's status, by the claim's name, unless the claim has none of these devices."""
        found: defaultdict[str, list[HeldDevice]] = defaultdict(list)
        for own, devices in _in_status(self._container).items():
            found[self._names.get(own, "")] += devices
        return {
            name: devices
            for name, devices in found.items()
            if name not in self._claims
            or {held.place for held in devices} & {*map(place_of, self._claims[name].devices)}
        }

    def _reserved(self, settled: set[str]) -> Iterator[HeldDevice]:
        """Yield the devices of claims that nothing else lists: kubelets before 1.34 list none."""
        for name, claim in self._claims.items():
            if name not in settled and self._pod.uid in claim.pod_uids:
                devices = (HeldDevice(place=place_of(device), source="resourceclaim") for device in claim.devices)
                yield from cut(devices, claim, self._requests[name])


def cut(devices: Iterable[HeldDevice], claim: ResourceClaim | None, requests: set[str]) -> Iterator[HeldDevice]:
    """Leave out devices that the claim has for other requests. Without the claim nothing can be left out."""
    if claim is None:
        yield from devices
        return
    own = [device for device in claim.devices if _matches(device.request, requests)]
    for held in devices:
        for claimed in own:
            if held.place == place_of(claimed) and _is_same(held.share_id, claimed.share_id):
                yield replace(held, share_id=claimed.share_id, consumed=claimed.consumed)


def place_of(device: ClaimedDevice | PoolDevice | DynamicAllocation) -> Place:
    return device.driver, device.pool, device.device


def _places(claim: ResourceClaim) -> set[Place]:
    return {place_of(device) for device in claim.devices}


def _is_same(listed: str, claimed: str) -> bool:
    """Whether two share ids may name the same part. Older kubelets list none."""
    return not (listed and claimed) or listed == claimed


def _requests(pod: Pod, container: PodContainer, names: dict[str, str]) -> dict[str, set[str]]:
    """Return the requests that the container uses, by the claim's name. An empty request means all of them."""
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
    """Return the devices in the status by the pod's own name for a claim. Some kubelets write ids that name none."""
    found_in: defaultdict[str, list[HeldDevice | None]] = defaultdict(list)
    for resource, device_id in container.devices:
        kind, _, name = resource.partition(":")
        if kind == "claim":
            found_in[name.partition("/")[0]].append(_status_device(device_id))
    return {name: [held for held in found if held] for name, found in found_in.items() if all(found)}


def _status_device(device_id: str) -> HeldDevice | None:
    """Read DRIVER/POOL/DEVICE, where a pool may have slashes. An id with `=` is a CDI name, which the runtime uses."""
    driver, _, rest = device_id.partition("/")
    pool, _, device = rest.rpartition("/")
    if not (driver and pool and device) or "=" in device_id:
        return None
    return HeldDevice(place=(driver, pool, device), source="pod status")


def row_held(row: DynamicAllocation, source: str) -> HeldDevice:
    return HeldDevice(place=place_of(row), source=source, share_id=row.share_id)
