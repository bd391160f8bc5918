"""Dynamic resource allocation: devices by resource claims, as NVIDIA's DRA driver hands them out.

Who uses what is told, best first, by the pod's status, by the kubelet's list and by the claim itself. The kubelet
lists a claim's devices under each of its containers; the claim says which of them are for which request.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct

from podgpu.model import (
    Allocation,
    Claim,
    ContainerRef,
    DynamicAllocation,
    MigInstance,
    Pod,
    PodContainer,
    ResourceClaim,
)
from podgpu.sharing.inventory import Inventory

NAME = "dra"
DRIVER = "gpu.nvidia.com"
NO_GPU = "compute-domain.nvidia.com"  # channels between nodes
SIGNS: tuple[str, ...] = (DRIVER,)
NEEDS = "the driver's ResourceSlices from the API server, or its device names: gpu-0, gpu-0-mig-1g10gb-19-0"

# The number in the name is that of /dev/nvidiaN. An instance's ends in its profile's id and where it starts.
_GPU = re.compile(r"gpu-(?P<minor>[0-9]{1,4})")
_MIG = re.compile(r"gpu-(?P<minor>[0-9]{1,4})-mig-(?P<profile>.+)-[0-9]{1,4}-(?P<start>[0-9]{1,4})")


class Held(Struct, frozen=True, kw_only=True):
    """A device that a container may use, and who said so."""

    driver: str
    pool: str
    device: str
    source: str

    @property
    def place(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.device


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    if allocation.resource == NO_GPU:
        return True
    pool, _, device = allocation.device_id.rpartition("/")
    return _device((allocation.resource, pool, device), inventory) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    """Of a device that several containers may use, each has an equal share."""
    held_by: defaultdict[str, dict[ContainerRef, Held]] = defaultdict(dict)
    for container, held in _all_held(inventory):
        if device := _device(held.place, inventory):
            held_by[device].setdefault(container, held)
    for device, holders in held_by.items():
        gpu = inventory.instances.get(device, device)
        for container, held in holders.items():
            yield Claim(
                gpu=gpu,
                mig=device if gpu != device else "",
                container=container,
                share=1 / len(holders),
                resource=held.driver,
                device_id=f"{held.pool}/{held.device}",
                system=NAME,
                source=held.source,
            )


def _all_held(inventory: Inventory) -> Iterator[tuple[ContainerRef, Held]]:
    listed = _listed(inventory)
    known = {(one.namespace, one.name): one for one in inventory.resource_claims}
    named = set()
    for pod in inventory.pods:
        for container in pod.containers if not pod.finished else ():
            ref = ContainerRef(pod.namespace, pod.name, container.name, pod.uid)
            use = Use(pod, container, known)
            for held in use.held(listed.pop(ref, [])):
                named.add((ref.namespace, ref.pod, ref.container))
                yield ref, held
    for ref, rows in listed.items():
        # Of two pods of one name the kubelet does not say which; what their own status says is enough.
        if (ref.namespace, ref.pod, ref.container) not in named:
            yield from ((ref, _row(row)) for row in rows)


def _listed(inventory: Inventory) -> dict[ContainerRef, list[DynamicAllocation]]:
    listed: dict[ContainerRef, list[DynamicAllocation]] = {}
    for row, allocation in zip(inventory.dynamic, inventory.dynamic_allocations, strict=True):
        pod = inventory.pod(allocation)
        ref = ContainerRef(row.namespace, row.pod, row.container, pod.uid if pod else "")
        listed.setdefault(ref, []).append(row)
    return listed


class Use:
    """What one container of a pod uses, by the pod's spec and status. `known` are claims by namespace and name."""

    def __init__(
        self, pod: Pod, container: PodContainer, known: dict[tuple[str, str], ResourceClaim]
    ) -> None:
        self._container = container
        self._uid = pod.uid
        self._names = _claim_names(pod, known.values())
        self._requests = _requests(pod, container, self._names)
        found = {name: known.get((pod.namespace, name)) for name in self._requests}
        # A claim that is reserved for others was read before this pod was given it.
        self._claims = {
            name: one for name, one in found.items() if one and pod.uid in (one.pod_uids or (pod.uid,))
        }

    def held(self, rows: Iterable[DynamicAllocation]) -> Iterator[Held]:
        rows = list(rows)
        if self._is_over() and not rows:
            return
        told = _told(self._container)
        for own_name, devices in told.items():
            yield from self._cut(self._names.get(own_name, ""), devices)
        settled = {self._names.get(own_name, "") for own_name in told}
        for row in rows:
            # A claim whose name only the kubelet knows is one that the status tells by the pod's name for it.
            name = row.claim_name if row.claim_name in self._requests else ""
            if name not in settled:
                yield from self._cut(name, [_row(row)])
        settled |= {row.claim_name for row in rows}
        yield from self._reserved(settled)

    def _is_over(self) -> bool:
        """Whether it has come and gone, as init containers do. The kubelet lists those that stay."""
        return self._container.is_init and not self._container.running

    def _reserved(self, settled: set[str]) -> Iterator[Held]:
        """Kubelets before 1.34 list nothing. Then the claim itself has to do."""
        for name, claim in self._claims.items():
            if name not in settled and self._uid in claim.pod_uids:
                devices = [
                    Held(driver=one.driver, pool=one.pool, device=one.device, source="resourceclaim")
                    for one in claim.devices
                ]
                yield from self._cut(name, devices)

    def _cut(self, name: str, devices: Iterable[Held]) -> Iterator[Held]:
        """Leave out what the claim has for other requests. Without the claim nothing can be left out."""
        claim = self._claims.get(name)
        if claim is None:
            yield from devices
            return
        wanted = self._requests[name]
        places = {
            (one.driver, one.pool, one.device) for one in claim.devices if _matches(one.request, wanted)
        }
        yield from (held for held in devices if held.place in places)


def _claim_names(pod: Pod, known: Iterable[ResourceClaim]) -> dict[str, str]:
    """Return the claims by the pod's own names. The kubelet does not tell those of templates, the claim does."""
    made = {
        one.pod_name: one.name
        for one in known
        if one.pod_name and one.namespace == pod.namespace and pod.uid in one.pod_uids
    }
    return made | pod.resource_claims


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


def _told(container: PodContainer) -> dict[str, list[Held]]:
    """Return what the status tells, by the pod's own name for a claim. Some kubelets tell ids that name no device."""
    told: defaultdict[str, list[Held | None]] = defaultdict(list)
    for resource, device_id in container.devices:
        kind, _, name = resource.partition(":")
        if kind == "claim":
            told[name.partition("/")[0]].append(_status_device(device_id))
    return {name: [one for one in found if one] for name, found in told.items() if all(found)}


def _status_device(device_id: str) -> Held | None:
    """Read DRIVER/POOL/DEVICE, where a pool may have slashes. A name of the runtime's has `=` in it."""
    driver, _, rest = device_id.partition("/")
    pool, _, device = rest.rpartition("/")
    if not (driver and pool and device) or "=" in device_id:
        return None
    return Held(driver=driver, pool=pool, device=device, source="pod status")


def _row(row: DynamicAllocation) -> Held:
    return Held(driver=row.driver, pool=row.pool, device=row.device, source="podresources")


def _device(place: tuple[str, str, str], inventory: Inventory) -> str | None:
    """Return the UUID of the card or the MIG instance, if this node has it."""
    attributes = _attributes(place, inventory)
    if uuid := attributes.get("uuid"):
        return uuid if uuid in inventory.gpus or uuid in inventory.instances else None
    driver, _, name = place
    if driver != DRIVER:
        return None
    if found := _GPU.fullmatch(name):
        return inventory.by_minor.get(found["minor"])
    found = _MIG.fullmatch(name)
    return _instance(found, attributes.get("parentUUID"), inventory) if found else None


def _attributes(place: tuple[str, str, str], inventory: Inventory) -> dict[str, str]:
    offered = inventory.pool_devices
    return next((one.attributes for one in offered if (one.driver, one.pool, one.device) == place), {})


def _instance(name: re.Match[str], parent: str | None, inventory: Inventory) -> str | None:
    """Find an instance by its profile and where it starts. One made on demand has no UUID that a driver could tell."""
    card = inventory.by_minor.get(name["minor"], parent)
    if parent not in (None, card):
        return None
    migs = [one.mig for device in inventory.devices if device.gpu.uuid == card for one in device.instances]
    alike = [mig for mig in migs if _bare(mig.profile) == _bare(name["profile"])]
    there = [mig for mig in alike if mig.start == int(name["start"])]
    return _only(there) or (_only(alike) if all(mig.start is None for mig in alike) else None)


def _bare(profile: str) -> str:
    """A device's name has no room for dots and plus signs."""
    return "".join(filter(str.isalnum, profile)).lower()


def _only(migs: list[MigInstance]) -> str | None:
    return migs[0].uuid if len(migs) == 1 else None
