"""Dynamic resources by the API server: the claims of this node's pods, and the devices that drivers offer here.

Nothing is asked while no pod has a claim. This needs the right to get `resourceclaims` and to list
`resourceslices`, both in `resource.k8s.io`.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TypeVar

import msgspec

from podgpu.kube.api import MALFORMED, ApiFault, ApiServer, ListPage, list_pages
from podgpu.kube.condition import Condition
from podgpu.kube.object_watch import WatchTiming
from podgpu.kube.resource_objects import ROOTS, VERSIONS, decode_claim, decode_slice, pool_devices, to_claim
from podgpu.kube.throttle import Backoff
from podgpu.model import DynamicAllocation, PartStatus, Pod, PoolDevice, ResourceClaim

TIMING = WatchTiming(relist=30.0)
GRANT = "grant get on resourceclaims and list on resourceslices, both of resource.k8s.io"
PAGE = 100
MOST_PAGES = 50
MOST_BYTES = 32 << 20  # of all slices of a node
MOST_CLAIMS = 32  # per pod

# A pod's author chose the name, so it becomes part of a path only if it cannot lead elsewhere.
_NAME = re.compile(r"[a-z0-9][-.a-z0-9]{0,252}")
T = TypeVar("T")


class WantedClaim(msgspec.Struct, frozen=True):
    """A claim of a pod. When another pod uses the same claim, it is read again: its devices may have changed."""

    namespace: str
    name: str
    pod: str


class ResourceClaims:
    """A failure keeps the last answers and shows in `status`."""

    name = "resource-claims"

    def __init__(self, api: ApiServer, node: str, *, timing: WatchTiming = TIMING) -> None:
        self._api = api
        self._timing = timing
        self._selector = {"fieldSelector": f"spec.nodeName={node}"}
        self._root = ROOTS[0]
        self._users: frozenset[str] = frozenset()
        self._wanted: frozenset[WantedClaim] = frozenset()
        self._changed = asyncio.Event()
        self._claims: dict[tuple[str, str], ResourceClaim] = {}
        self._shown: tuple[ResourceClaim, ...] | None = ()
        self._devices: tuple[PoolDevice, ...] = ()
        self._backoff = Backoff(self._timing.first_pause, self._timing.longest_pause)
        self._condition = Condition(self.name)
        self.errors = self._condition.errors

    def follow(self, pods: Iterable[Pod], listed: Iterable[DynamicAllocation] = ()) -> None:
        """Follow the claims of pods, and those made from templates, which only the kubelet lists."""
        using = [pod for pod in pods if not pod.finished and pod.has_claims]
        by_kubelet = frozenset(_claims_of_kubelet(listed))
        users = frozenset(pod.uid for pod in using) | {claim.pod for claim in by_kubelet}
        wanted = frozenset(claim for pod in using for claim in _claims_of_pod(pod)) | by_kubelet
        if (users, wanted) != (self._users, self._wanted):
            self._users, self._wanted = users, wanted
            self._changed.set()

    def claims(self) -> tuple[ResourceClaim, ...]:
        """Return the same tuple for as long as no claim changes."""
        if self._shown is None:
            self._shown = tuple(self._claims.values())
        return self._shown

    def devices(self) -> tuple[PoolDevice, ...]:
        """Return the same tuple for as long as no device changes."""
        return self._devices

    def status(self) -> PartStatus | None:
        return self._condition.status() if self._users else None

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            # Until other claims are wanted, or until it is time to read the same claims again. Not wait_for: in
            # Python 3.11 it loses a cancellation that comes with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timing.relist if self._users else None):
                    await self._changed.wait()
            self._changed.clear()
            if self._users:
                await asyncio.sleep(await self._round())

    async def _round(self) -> float:
        """Ask for everything once, and return how long to wait at least."""
        began = time.monotonic()
        try:
            slices = [self._decoded(decode_slice, item) for item in await self._slices()]
            devices = tuple(pool_devices([found.spec for found in slices if found], self.errors))
            self._devices = self._devices if devices == self._devices else devices
            await self._ask_for_claims()
        except ApiFault as fault:
            self._condition.api_failed(fault, GRANT)
            self._changed.set()
            return self._backoff.pause_after(fault, self._timing.forbidden_pause)
        self._condition.seconds = time.monotonic() - began
        self._condition.worked()
        self._backoff.reset()
        return 0.0

    async def _slices(self) -> list[msgspec.Raw]:
        """List by the API version that worked last, or else by the newest that the server knows."""
        for root in dict.fromkeys((self._root, *ROOTS)):
            try:
                found = await self._listed(f"{root}/resourceslices")
            except ApiFault as fault:
                if fault.status != 404:
                    raise
            else:
                self._root = root
                return found
        raise ApiFault("garbage", f"the server has no resource.k8s.io in {', '.join(VERSIONS)}")

    async def _listed(self, path: str) -> list[msgspec.Raw]:
        listed = list_pages(self._api, path, ListPage[msgspec.Raw], self._selector, size=PAGE, most=MOST_PAGES)
        found: list[msgspec.Raw] = []
        left = MOST_BYTES
        async for page in listed:
            found += page.items or ()
            left -= sum(memoryview(item).nbytes for item in page.items or ())
            if left < 0:
                raise ApiFault("too_large", f"{path}: more than {MOST_BYTES >> 20} MiB")
        return found

    async def _ask_for_claims(self) -> None:
        wanted = {(claim.namespace, claim.name) for claim in self._wanted}
        for key in self._claims.keys() - wanted:
            self._keep(key, None)
        faults: list[ApiFault] = []
        for key in sorted(wanted):
            try:
                self._keep(key, await self._claim(*key))
            except ApiFault as fault:  # rights may differ by namespace
                faults.append(fault)
        if faults:
            raise faults[0]

    def _keep(self, key: tuple[str, str], claim: ResourceClaim | None) -> None:
        if self._claims.get(key) == claim:
            return
        if claim:
            self._claims[key] = claim
        else:
            del self._claims[key]
        self._shown = None

    async def _claim(self, namespace: str, name: str) -> ResourceClaim | None:
        path = f"{self._root}/namespaces/{namespace}/resourceclaims/{name}"
        try:
            item = await self._api.get(path, msgspec.Raw)
        except ApiFault as fault:
            if fault.status == 404:
                return None
            raise
        found = self._decoded(decode_claim, item)
        claim = to_claim(found) if found and found.is_allocated else None
        return claim if claim and (claim.namespace, claim.name) == (namespace, name) else None

    def _decoded(self, decode: Callable[[msgspec.Raw], T], item: msgspec.Raw) -> T | None:
        try:
            return decode(item)
        except MALFORMED:
            self.errors["garbage"] += 1
            return None


def _claims_of_kubelet(listed: Iterable[DynamicAllocation]) -> Iterator[WantedClaim]:
    for entry in listed:
        if _NAME.fullmatch(entry.claim_name) and _NAME.fullmatch(entry.claim_namespace):
            yield WantedClaim(entry.claim_namespace, entry.claim_name, entry.pod)


def _claims_of_pod(pod: Pod) -> Iterator[WantedClaim]:
    """Claims made from a template may be missing here; the kubelet lists them."""
    names = dict.fromkeys((pod.extended_claim, *pod.resource_claims.values()))
    sound = (name for name in names if _NAME.fullmatch(name) and _NAME.fullmatch(pod.namespace))
    for name in islice(sound, MOST_CLAIMS):
        yield WantedClaim(pod.namespace, name, pod.uid)
