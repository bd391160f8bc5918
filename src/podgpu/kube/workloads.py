"""The workload of a pod: its topmost known owner, or the nearest that Kubernetes itself knows as a workload.

No call waits for long. Until the API server has answered, a pod's workload is unknown, unless the label that a
Deployment puts on its pods names it: an owner in between is not the workload.
"""

import asyncio
import random
import re
import time
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podgpu.kube.api import ApiFault, ApiServer
from podgpu.kube.pod_object import OwnerEntry, controller
from podgpu.model import OwnerReference, Pod, Workload
from podgpu.supervise import brief

DEEPEST = 6
MOST_REQUESTS = 16  # started per call
AT_ONCE = 4
KNOWN_SECONDS = 86400.0  # the owner of an object with a UID never changes
UNKNOWN_SECONDS = 60.0
DEADLINE_SECONDS = 2.0
SPREAD_SECONDS = 10.0  # for agents: a thousand of them may start at the same moment

# The controllers of Kubernetes itself need no discovery.
PLURALS = {
    ("v1", "ReplicationController"): "replicationcontrollers",
    ("apps/v1", "ReplicaSet"): "replicasets",
    ("apps/v1", "Deployment"): "deployments",
    ("apps/v1", "StatefulSet"): "statefulsets",
    ("apps/v1", "DaemonSet"): "daemonsets",
    ("batch/v1", "Job"): "jobs",
    ("batch/v1", "CronJob"): "cronjobs",
}
# The nearest owner is the pod's own, except for these, whose makers users think of as the workload.
MAKERS = {"ReplicaSet": ("Deployment", "Rollout"), "Job": ("CronJob",)}
# A ReplicaSet is named after its owner and the value of this label.
HASH_LABELS = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
# The pod's author may have written these, so they become part of a path only if they cannot lead elsewhere.
_VERSION = re.compile(r"(?:[a-z0-9][-.a-z0-9]*/)?v[0-9][a-z0-9]*")
_NAME = re.compile(r"[A-Za-z0-9][-.:A-Za-z0-9]{0,252}")
_PLURAL = re.compile(r"[a-z0-9][-a-z0-9]*")


class OwnedMetadata(Struct, rename="camel"):
    uid: str
    owner_references: list[OwnerEntry] | None = None


class Owned(Struct):
    metadata: OwnedMetadata


class ApiResource(Struct):
    name: str
    kind: str
    namespaced: bool = True


class ApiResources(Struct):
    resources: list[ApiResource] | None = None


class OwnerAbove(Struct, frozen=True):
    """The owner of an owner; None for the topmost. `is_known` is False if it may not be read or does not exist."""

    is_known: bool
    until: float
    owner: OwnerReference | None = None


class Workloads:
    """Asks once per owner, not once per pod, and remembers answers. Failures are remembered for a shorter time.

    `most_known` limits how many owners are remembered. Those read longest ago are forgotten first. Agents have a
    `spread`, since there are many: each waits for a random time up to that, in seconds, before it asks for the owner
    of a new pod, asks once more, or comes back after a failure.
    """

    name = "workloads"

    def __init__(
        self,
        api: ApiServer | None,
        *,
        name_labels: Sequence[str] = (),
        nearest: bool = False,
        deadline: float = DEADLINE_SECONDS,
        most_known: int | None = None,
        spread: float = 0.0,
    ) -> None:
        self._api = api
        self._name_labels = tuple(name_labels)
        self._nearest = nearest
        self._deadline = deadline
        self._most_known = most_known
        self._spread = spread
        self._due: dict[str, float] = {}
        self._above: dict[str, OwnerAbove] = {}
        self._discovered: dict[str, tuple[float, tuple[ApiResource, ...]]] = {}  # each until a time
        self._requests: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._quiet_until = 0.0

    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]:
        """Return the workload of each pod by its UID, as far as it is known."""
        pods = tuple(pods)
        if self._api:
            await self._ask_until_known(self._api, pods)
            self._forget(pods)
        found = {pod.uid: self._workload(pod) for pod in pods}
        return {uid: workload for uid, workload in found.items() if workload}

    def knows_all(self, pods: Iterable[Pod]) -> bool:
        """Whether no owner is left to ask for."""
        return self._api is None or not self._unknown(tuple(pods), time.monotonic())

    async def close(self) -> None:
        tasks = tuple(self._requests.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask_until_known(self, api: ApiServer, pods: tuple[Pod, ...]) -> None:
        ends = time.monotonic() + self._deadline
        left = MOST_REQUESTS
        while (now := time.monotonic()) < ends:
            unknown = self._unknown(pods, now)
            for uid, (owner, namespace) in list(unknown.items()):
                due = self._due.setdefault(uid, self._spread_out(now))
                if uid not in self._requests and left and now >= max(self._quiet_until, due):
                    left -= 1
                    self._requests[uid] = brief(self._ask(api, owner, namespace))
            waited = [self._requests[uid] for uid in unknown if uid in self._requests]
            if not waited:
                return
            # Requests that take longer go on, and their answers are used the next time.
            await asyncio.wait(waited, timeout=ends - now, return_when=asyncio.FIRST_COMPLETED)

    def _spread_out(self, at: float) -> float:
        return at + random.uniform(0.0, self._spread)  # noqa: S311 - so that nodes do not ask in step

    def _unknown(self, pods: tuple[Pod, ...], now: float) -> dict[str, tuple[OwnerReference, str]]:
        """Return the owners to ask for, each with its namespace."""
        unknown: dict[str, tuple[OwnerReference, str]] = {}
        for pod in pods:
            for owner in self._asked_for(pod):
                above = self._above.get(owner.uid)
                if above is None or above.until <= now:
                    unknown[owner.uid] = owner, pod.namespace
        return unknown

    def _asked_for(self, pod: Pod) -> list[OwnerReference]:
        owners = self._owners(pod)
        return [owner for owner in owners[:1] if owner.kind in MAKERS] if self._nearest else owners

    def _owners(self, pod: Pod) -> list[OwnerReference]:
        """Return the known owners, from the nearest to the topmost."""
        owners: dict[str, OwnerReference] = {}
        owner = _first_owner(pod)
        while owner and owner.uid not in owners and len(owners) < DEEPEST:
            owners[owner.uid] = owner
            above = self._above.get(owner.uid)
            owner = above.owner if above else None
        return list(owners.values())

    async def _ask(self, api: ApiServer, owner: OwnerReference, namespace: str) -> None:
        try:
            async with self._slots:
                if time.monotonic() < self._quiet_until:
                    return
                found = await self._found(api, owner, namespace)
        except ApiFault as fault:
            found = None
            if fault.status not in (403, 404):
                pause = max(UNKNOWN_SECONDS, fault.retry_after)
                self._quiet_until = self._spread_out(time.monotonic() + pause)
                return
        finally:
            self._requests.pop(owner.uid, None)
        self._learn(owner.uid, found)

    async def _found(self, api: ApiServer, owner: OwnerReference, namespace: str) -> Owned | None:
        path = await self._path(api, owner, namespace)
        found = await api.get(path, Owned, metadata_only=True) if path else None
        # Another object of the same name is not the owner.
        return found if found and found.metadata.uid == owner.uid else None

    def _learn(self, uid: str, found: Owned | None) -> None:
        now = self._spread_out(time.monotonic())
        old = self._above.pop(uid, None)  # so that the new entry comes last
        if found:
            owner = controller(found.metadata.owner_references or ())
            self._above[uid] = OwnerAbove(is_known=True, until=now + KNOWN_SECONDS, owner=owner)
            if owner:
                self._due.setdefault(owner.uid, 0.0)  # the owner below has waited already
        elif old:
            # The owner of a UID never changes, so a failure to read it again does no harm.
            self._above[uid] = replace(old, until=now + UNKNOWN_SECONDS)
        else:
            self._above[uid] = OwnerAbove(is_known=False, until=now + UNKNOWN_SECONDS)
        while self._most_known is not None and len(self._above) > self._most_known:
            del self._above[next(iter(self._above))]

    async def _path(self, api: ApiServer, owner: OwnerReference, namespace: str) -> str | None:
        version = owner.api_version
        if not _VERSION.fullmatch(version) or not _NAME.fullmatch(owner.name):
            return None
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if plural := PLURALS.get((version, owner.kind)):
            return f"{root}/namespaces/{namespace}/{plural}/{owner.name}"
        for resource in await self._resources(api, root):
            if resource.kind == owner.kind and _PLURAL.fullmatch(resource.name):
                within = f"/namespaces/{namespace}" if resource.namespaced else ""
                return f"{root}{within}/{resource.name}/{owner.name}"
        return None

    async def _resources(self, api: ApiServer, root: str) -> tuple[ApiResource, ...]:
        until, resources = self._discovered.get(root, (0.0, ()))
        if until > time.monotonic():
            return resources
        try:
            resources = tuple((await api.get(root, ApiResources)).resources or ())
            until = time.monotonic() + KNOWN_SECONDS
        except ApiFault as fault:
            if fault.status not in (403, 404):
                raise
            resources, until = (), time.monotonic() + UNKNOWN_SECONDS
        self._discovered[root] = until, resources
        return resources

    def _forget(self, pods: tuple[Pod, ...]) -> None:
        """Drop what no pod needs any more, once it has expired."""
        now = time.monotonic()
        wanted = {owner.uid for pod in pods for owner in self._owners(pod)}
        self._above = {uid: above for uid, above in self._above.items() if uid in wanted or above.until > now}
        self._discovered = {root: found for root, found in self._discovered.items() if found[0] > now}
        self._due = {uid: due for uid, due in self._due.items() if uid in wanted}

    def _workload(self, pod: Pod) -> Workload | None:
        if not pod.phase and pod.owner is None:
            return None  # only its names are known, as from log folders, and not whether it has an owner
        workload = self._nearest_owner(pod) if self._nearest else self._top(pod)
        for label in self._name_labels:
            if workload and pod.labels.get(label):
                return replace(workload, name=pod.labels[label])
        return workload

    def _is_asked_for(self, owner: OwnerReference) -> bool:
        """Whether an owner has not been read yet."""
        return self._api is not None and owner.uid not in self._above

    def _nearest_owner(self, pod: Pod) -> Workload | None:
        """As zxporter does: if a ReplicaSet or Job cannot be read, the pod is its own workload."""
        owner = _first_owner(pod)
        if owner is None or owner.kind not in MAKERS:
            return _to_workload(owner, pod)
        if self._is_asked_for(owner):
            return None
        above = self._above.get(owner.uid)
        if above is None or not above.is_known:
            return _to_workload(None, pod)
        maker = above.owner
        return _to_workload(maker if maker and maker.kind in MAKERS[owner.kind] else owner, pod)

    def _top(self, pod: Pod) -> Workload | None:
        owners = self._owners(pod)
        if not owners:
            return _to_workload(None, pod)
        top = owners[-1]
        above = self._above.get(top.uid)
        if len(owners) == 1 and not (above and above.is_known) and (named := _by_hash(pod, top)):
            return named
        return None if self._is_asked_for(top) else _to_workload(top, pod)


def _to_workload(owner: OwnerReference | None, pod: Pod) -> Workload:
    return Workload(kind=owner.kind, name=owner.name) if owner else Workload(kind="Pod", name=pod.name)


def _first_owner(pod: Pod) -> OwnerReference | None:
    """Return the pod's owner if it is a workload. The owner of a static pod is its node."""
    if pod.owner and pod.owner.kind == "Node" and pod.owner.api_version in ("", "v1"):
        return None
    return pod.owner


def _by_hash(pod: Pod, owner: OwnerReference) -> Workload | None:
    if owner.kind != "ReplicaSet":
        return None
    for label, kind in HASH_LABELS.items():
        value = pod.labels.get(label)
        if value and owner.name.endswith(f"-{value}") and len(owner.name) > len(value) + 1:
            return Workload(kind=kind, name=owner.name.removesuffix(f"-{value}"))
    return None
