"""The pods on the node, and the owner of each process on a GPU: by its cgroup, with the names of pod and container."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import is_not

from msgspec.structs import replace

from podgpu.host.cgroup import QOS, CgroupStyle, style_of
from podgpu.ledger.usage import CLIENT, may_serve
from podgpu.model import ContainerRef, Device, Fault, Holder, Owner, PartStatus, Pod, Workload
from podgpu.model.ports import (
    EndedProcessSource,
    OutsiderNames,
    PodSource,
    ProcessSource,
    Rescannable,
    WorkloadSource,
)
from podgpu.supervise import LatestReply

OUTSIDE = ("host", "container")
MANY_PROCESSES = 2000  # so many are read in a thread
NAMED_AT_ONCE = 200  # before other tasks get their turn: for some, files must be read


class ContainerNames:
    """Pods by UID. A static pod's cgroup carries a hash; the API server knows the pod by another UID.

    `others` are lists that may be newer than the best: containers that only they list are named too.
    A container's id is never used again for another one.
    """

    def __init__(self, pods: Iterable[Pod], others: Iterable[Iterable[Pod]] = ()) -> None:
        pods = tuple(pods)
        further = [pod for listed in others for pod in listed]
        self._pods = {pod.static_hash: pod for pod in pods if pod.static_hash}
        # A user who may create a pod may write a static pod's hash on it: a hash that two pods have is neither's.
        for claimed, count in Counter(pod.static_hash for pod in pods).items():
            if count > 1:
                self._pods.pop(claimed, None)
        # The API server's UID of a static pod counts, not the hash that its log folder is named after.
        static = {pod.uid: pod for pod in further if pod.static_hash}
        self._pods = static | self._pods | {pod.uid: pod for pod in further if not pod.static_hash}
        self._pods |= {pod.uid: pod for pod in pods}
        self._ids: dict[str, dict[str, str]] = {}
        for pod in (*further, *pods):
            ids = {container.container_id: container.name for container in pod.containers if container.container_id}
            self._ids.setdefault(pod.uid, {}).update(ids)

    def named(self, holder: Holder) -> Holder:
        """Return the holder with the names of its pod and container, as far as they are known.

        A pod that runs may have a container that no list has yet: its cgroup proves the pod, and the name stays empty.
        """
        owner = holder.owner
        pod = self._pods.get(owner.pod_uid or "") if owner and holder.kind == "pod" else None
        if pod is None or owner is None:
            return holder
        name = _container(pod, owner, self._ids[pod.uid])
        if name is not None:
            return replace(holder, container=ContainerRef(pod.namespace, pod.name, name, pod.uid))
        ref = None if pod.finished else ContainerRef(pod.namespace, pod.name, "", pod.uid)
        return replace(holder, container=ref, reason="not_in_pod")

    def knows(self, holder: Holder) -> bool:
        """Whether a list has the id of the holder's container. A process that is in no container has none."""
        owner = holder.owner
        pod = self._pods.get(owner.pod_uid or "") if owner else None
        if pod is None or owner is None:
            return False
        return not owner.container_id or owner.container_id in self._ids[pod.uid]


class Owners:
    """Finds the owner of each process. It remembers the last cycle: a process that has just ended keeps its owner."""

    def __init__(
        self,
        processes: ProcessSource | None,
        outsiders: OutsiderNames | None,
        *,
        books_outsiders: bool,
        recent: EndedProcessSource | None = None,
    ) -> None:
        self._processes = processes
        self._recent = recent
        self._outsiders = outsiders
        self._books_outsiders = books_outsiders
        self._last: dict[int, Holder] = {}
        self._style: CgroupStyle | None = None
        self._lists: tuple[tuple[Pod, ...], ...] = ()
        self._names = ContainerNames(())

    @property
    def status(self) -> PartStatus | None:
        if self._processes is None:
            return None
        fault = self._processes.fault()
        return PartStatus(name=self._processes.name, up=fault is None, fault=fault)

    @property
    def are_known(self) -> bool:
        return self._processes is not None and self._processes.fault() is None

    async def find(
        self, devices: Sequence[Device], pods: tuple[Pod, ...], others: tuple[tuple[Pod, ...], ...] = ()
    ) -> Mapping[int, Holder]:
        """Return the holder of each process on the devices, by PID. `others` are lists besides the best."""
        listed: dict[int, bool] = {}
        seen_at: dict[int, float] = {}
        for device in devices:
            for process in device.processes:
                listed[process.pid] = bool(process.kinds) or listed.get(process.pid, False)
                seen_at[process.pid] = max(device.at + device.seconds, seen_at.get(process.pid, 0.0))
        found = await self._read(listed, seen_at)
        names = self._names_of(pods, others)
        owned: dict[int, Holder] = {}
        recent = self._recent
        for number, (pid, seen) in enumerate(found.items(), 1):
            is_listed = listed[pid]
            holder = self._remembered(recent, seen, seen_at[pid], is_listed=is_listed) if recent else seen
            owned[pid] = self._titled(self._named(pid, holder, names, is_listed=is_listed))
            if number % NAMED_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._last = owned
        await self._look_for_servers(devices)
        self._style = self._style or _style(self._last.values())
        return self._last

    async def _read(self, pids: Mapping[int, bool], seen_at: Mapping[int, float]) -> dict[int, Holder]:
        """Thousands of files are read in a thread: the event loop must not wait for them."""
        if self._processes is None:
            return {}
        if len(pids) <= MANY_PROCESSES:
            return self._processes.holders(pids, seen_at)
        return await asyncio.to_thread(self._processes.holders, pids, seen_at)

    def is_listed(self, holder: Holder) -> bool:
        """Whether a pod's process is in a container that a list has by its id."""
        return holder.kind != "pod" or self._names.knows(holder)

    def named(self, holder: Holder) -> Holder:
        """Add the name of the container to what a cgroup says, by the lists of the last cycle."""
        return self._titled(self._names.named(holder))

    def placed(self, pod: Pod) -> Pod:
        """Add the cgroups of the pod's containers, once it is known how the kubelet names them."""
        if self._style is None or pod.qos not in QOS:
            return pod
        path = partial(self._style.path, pod.static_hash or pod.uid, pod.qos)
        return replace(
            pod,
            containers=tuple(
                replace(container, cgroup=path(container.container_id)) if container.container_id else container
                for container in pod.containers
            ),
        )

    async def _look_for_servers(self, devices: Sequence[Device]) -> None:
        """Where clients of MPS are on a card with a process that is named like their server, find out what proves it.

        Any tenant can give processes that name. What must be read about them is read in a thread.
        """
        asked: dict[int, Holder] = {}
        for device in devices:
            held = {process.pid: self._last[process.pid] for process in device.processes if process.pid in self._last}
            clients = {process.pid for process in device.processes if CLIENT in process.kinds}
            suspects = {pid: holder for pid, holder in held.items() if may_serve(holder)}
            if clients and suspects:
                asked |= suspects | {pid: held[pid] for pid in clients & held.keys()}
        if asked and self._processes is not None:
            found = await asyncio.to_thread(self._processes.mps, asked.values())
            for pid in found.keys() & asked.keys():
                self._last[pid] = replace(asked[pid], mps=found[pid])

    def _names_of(self, pods: tuple[Pod, ...], others: tuple[tuple[Pod, ...], ...]) -> ContainerNames:
        lists = (pods, *others)
        if len(lists) != len(self._lists) or any(map(is_not, lists, self._lists)):
            self._lists, self._names = lists, ContainerNames(pods, others)
        return self._names

    def _remembered(self, recent: EndedProcessSource, holder: Holder, seen_at: float, *, is_listed: bool) -> Holder:
        """Return the owner of a process that started after the last reading and has ended since, if it is known."""
        if not is_listed and recent.is_disputed(holder.pid):
            self._last.pop(holder.pid, None)
            return Holder(pid=holder.pid, kind="unknown", reason="exited")
        if holder.reason != "exited" or holder.pid <= 0 or holder.pid in self._last:
            return holder
        recent.expect()
        return recent.holder(holder.pid, seen_at) or holder

    def _named(self, pid: int, holder: Holder, names: ContainerNames, *, is_listed: bool) -> Holder:
        """A process that has just ended keeps its owner of a cycle ago, even if its PID is reused by now.

        A running process keeps its name when its pod is no longer listed: it may outlive a pod deleted by force.
        """
        before = self._last.get(pid)
        if before is None:
            return names.named(holder)
        if holder.reason == "exited" or not (is_listed or holder.start_time == before.start_time):
            return names.named(before)
        named = names.named(holder)
        is_nameless = named.container is None or not named.container.container
        if is_nameless and before.container and (holder.start_time, holder.owner) == (before.start_time, before.owner):
            return replace(named, container=before.container, reason=before.reason)
        return named

    def _titled(self, holder: Holder) -> Holder:
        if self._outsiders is None or holder.kind not in OUTSIDE:
            return holder
        title = self._outsiders.title(holder)
        booked = ContainerRef("", "", title) if title and self._books_outsiders else holder.container
        return replace(holder, title=title, container=booked)


def _style(holders: Iterable[Holder]) -> CgroupStyle | None:
    """Go by pods whose status lists the container: any user may name a cgroup after a pod."""
    lines = (style_of(holder.cgroup, holder.owner) for holder in holders if holder.kind == "pod" and holder.container)
    return next(filter(None, lines), None)


def _container(pod: Pod, owner: Owner, ids: Mapping[str, str]) -> str | None:
    """Name the container by its id. None if the ids of the pod's containers are known and this is none of them.

    A pod's list may be behind: an id that it does not know yet is that of the only container that can have started
    again. Where no ids are known, a container's name is left out unless the pod has only one.
    """
    if not ids:
        return pod.containers[0].name if len(pod.containers) == 1 else ""
    if owner.container_id in (None, "") or owner.container_id in ids:
        return ids.get(owner.container_id or "")
    return _restarted(pod)


def _restarted(pod: Pod) -> str | None:
    """Name the only container that runs or will run again. Init containers that have ended do not run beside it."""
    living = [
        container
        for container in pod.containers
        if container.running or not (container.is_init or container.is_ephemeral)
    ]
    return living[0].name if len(living) == 1 and not (living[0].is_init or pod.finished) else None


SECONDS = 0.2  # how long a cycle waits for workloads; the rest comes with the next


class PodSources:
    """`sources` come best first."""

    def __init__(self, sources: Sequence[PodSource]) -> None:
        self.sources = tuple(sources)
        self._rescanned = [source for source in sources if isinstance(source, Rescannable)]
        self._watched = [source for source in sources if not isinstance(source, Rescannable)]

    def pods(self) -> tuple[Pod, ...]:
        """Take the list of a source that works, else of one that did.

        A list of names alone, as log folders give, is completed with what a better source last reported: that a
        pod has ended, and its owner, are still true. Ids of containers are not: containers restart.
        """
        working = [source for source in self.sources if source.status().up]
        lists = [pods for source in (*working, *self.sources) if (pods := source.pods()) is not None]
        if not lists:
            return ()
        best = lists[0]
        return best if all(pod.phase for pod in best) else _filled(best, lists[1:])

    def lists(self) -> tuple[tuple[Pod, ...], ...]:
        """Return what each source listed last, the best at the end."""
        return tuple(pods for source in reversed(self.sources) if (pods := source.pods()) is not None)

    def watches(self) -> tuple[tuple[Pod, ...], ...]:
        """Return the list of each source that works and learns of each change at once."""
        working = (source for source in self._watched if source.status().up)
        return tuple(pods for source in working if (pods := source.pods()) is not None)

    def look_again(self) -> None:
        """Ask the sources that rescan only now and then to do so soon: a container runs here that no list has."""
        for source in self._rescanned:
            source.look_again()


def _filled(bare: tuple[Pod, ...], others: Sequence[tuple[Pod, ...]]) -> tuple[Pod, ...]:
    known = {pod.uid: pod for pods in reversed(others) for pod in pods if pod.phase}
    names = {(pod.namespace, pod.name) for pod in bare}
    filled = [pod if pod.phase or pod.uid not in known else _completed(known[pod.uid], pod) for pod in bare]
    # A pod that ran, and is not on the list that works, may be gone.
    ended = (pod for pod in known.values() if pod.finished and (pod.namespace, pod.name) not in names)
    return (*filled, *ended)


def _completed(known: Pod, bare: Pod) -> Pod:
    ids = {container.name: container.container_id for container in bare.containers if container.container_id}
    containers = (
        replace(container, container_id=ids.get(container.name, container.container_id))
        for container in known.containers
    )
    return replace(known, containers=tuple(containers))


class WorkloadNames:
    """Asks for workloads in the background: a slow API server must not hold up the numbers.

    The last answer counts until the next one comes. `status` is there after a failure.
    """

    def __init__(self, workloads: WorkloadSource, patience: float) -> None:
        self.status: PartStatus | None = None
        self._name = workloads.name
        self._workloads = LatestReply(workloads.resolve, min(SECONDS, patience))

    async def of(self, pods: Sequence[Pod]) -> Mapping[str, Workload]:
        """Return workloads by the UID of the pod."""
        self.status = None
        try:
            await self._workloads.get(pods)
        except Exception as error:  # shown as a part that is down
            fault = Fault(reason="attribution_error", detail=repr(error))
            self.status = PartStatus(name=self._name, up=False, fault=fault)
        return self._workloads.reply or {}

    async def close(self) -> None:
        await self._workloads.close()
