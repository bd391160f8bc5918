"""What a sharing system can see: the node's devices, the kubelet's allocations, and the pods."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar, cast

from msgspec import Struct, field

from podgpu.catalog.agent_parts import PODRESOURCES
from podgpu.model import (
    Allocation,
    Claim,
    ContainerRef,
    Device,
    DynamicAllocation,
    KubeNode,
    MigInstance,
    Pod,
    PoolDevice,
    ResourceClaim,
    VirtualGpu,
    value_of,
)
from podgpu.model.kube import SPEC, grouped
from podgpu.sharing.folders import rightly_named
from podgpu.sharing.kube_cards import MEMORY, parts_of_each

MIB, GIB = 1 << 20, 1 << 30
CLIENT, SHARER = "mps", "compute"  # kinds of processes
MODE, ONE_PROCESS = "compute_mode", 3.0
VENDOR = "nvidia.com/"  # other plugins may have an `all` too
EVERY, BUILT_IN = "all", "tegra"
# The readings of a card that sharing systems use.
READINGS = frozenset({MEMORY, MODE})

_UUID_START = re.compile("GPU-|MIG-")

E = TypeVar("E", bound=tuple[object, ...])  # a container's devices in an annotation
T = TypeVar("T")


class Host(Struct, frozen=True, kw_only=True):
    """The node itself. `pod_uid` returns the pod of a process, by its cgroup."""

    root: Path
    pod_uid: Callable[[int], str | None]


class Observation(Struct, frozen=True, kw_only=True):
    """What sharing systems left on the node, and the number of errors by reason."""

    vgpus: tuple[VirtualGpu, ...] = ()
    errors: Counter[str] = field(default_factory=Counter)


def decoded(text: str, decode: Callable[[str], T]) -> T | None:
    """Decode an annotation; None if it cannot be decoded."""
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return None


def by_number(entries: Sequence[E], given: Mapping[str, int]) -> dict[str, E]:
    """Find the entry of each container by its number of ids, unless entries of that length differ."""
    if sorted(map(len, entries)) != sorted(given.values()):
        return {}
    fitting = {count: {entry for entry in entries if len(entry) == count} for count in given.values()}
    return {container: next(iter(fitting[count])) for container, count in given.items() if len(fitting[count]) == 1}


def _is_served(device: Device) -> bool | None:
    """Recognise a plugin's MPS by the card's compute mode, which admits only the server; without it, by clients.

    A tenant of a time-sliced card may run its own MPS, which sets no limits: then there are other processes beside it.
    """
    mode = value_of(device.readings, MODE)
    if mode == ONE_PROCESS:
        return True
    sharers = [process.kinds for process in device.processes if SHARER in process.kinds]
    if not any(CLIENT in process.kinds for process in device.processes):
        return None if mode is None and not sharers else False
    return mode is None and sum(CLIENT not in kinds for kinds in sharers) <= 1


class Inventory:
    """`ratios` say into how many parts a card is divided: one number for all cards, or one for each by its index.

    `counted` are the parts of devices as the inventory before counted them. `source` is where the allocations come
    from. `namespaces` are those of sharing systems themselves, besides the usual ones: no tenant can create pods there.
    `node` is what Kubernetes knows about a node without an agent; with one, it is None.
    """

    def __init__(
        self,
        devices: Iterable[Device],
        allocations: Iterable[Allocation] = (),
        allocatable: Iterable[tuple[str, str]] = (),
        pods: Iterable[Pod] = (),
        *,
        dynamic: Iterable[DynamicAllocation] = (),
        resource_claims: Iterable[ResourceClaim] = (),
        pool_devices: Iterable[PoolDevice] = (),
        vgpus: Iterable[VirtualGpu] = (),
        ratios: Iterable[float] = (),
        counted: Mapping[str, int] | None = None,
        source: str = PODRESOURCES.name,
        node: KubeNode | None = None,
        namespaces: Iterable[str] = (),
    ) -> None:
        self.devices = tuple(devices)
        self.pods = tuple(pods)
        self.allocatable = tuple(allocatable)
        self.resource_claims = tuple(resource_claims)
        self.pool_devices = tuple(pool_devices)
        self._files = tuple(vgpus)
        self.ratios = tuple(ratios)
        self._counted = counted or {}
        self.counted: dict[str, int] = {}
        self.source = source
        self.namespaces = frozenset(namespaces)
        self.is_seen = node is None
        self.node = node or KubeNode(name="")
        self._all_allocations = tuple(allocations)
        self._all_dynamic = tuple(dynamic)
        self._results: dict[Callable[[Inventory], object], object] = {}

    def once(self, function: Callable[["Inventory"], T]) -> T:
        """Call a function with this inventory, or return what it returned before. It must be a module's own."""
        if function not in self._results:
            self._results[function] = function(self)
        return cast("T", self._results[function])

    @cached_property
    def _ended(self) -> set[tuple[str, str]]:
        """Older kubelets still list pods that have ended: those hold nothing any more."""
        return {(pod.namespace, pod.name) for pod in self.pods if pod.finished} - self._alive.keys()

    @cached_property
    def _listed(self) -> tuple[Allocation, ...]:
        return tuple(held for held in self._all_allocations if (held.namespace, held.pod) not in self._ended)

    @cached_property
    def disputed(self) -> tuple[Allocation, ...]:
        """Allocations of a whole device that the kubelet lists for two pods, of which one must have ended.

        If only one of them is known to live, it holds the device. With ratios, pods do share the id of a card.
        """
        if self.ratios or self.source != PODRESOURCES.name:
            return ()
        holders: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        for held in self._listed:
            if held.device_id in self.gpus or held.device_id in self.instances:
                holders[held.resource, held.device_id].add((held.namespace, held.pod))
        disputes = {key: pods & self._alive.keys() for key, pods in holders.items() if len(pods) > 1}
        return tuple(
            held
            for held in self._listed
            if (living := disputes.get((held.resource, held.device_id))) is not None
            and living != {(held.namespace, held.pod)}
        )

    @cached_property
    def allocations(self) -> tuple[Allocation, ...]:
        disputed = frozenset(self.disputed)
        return tuple(held for held in self._listed if held not in disputed)

    @cached_property
    def dynamic(self) -> tuple[DynamicAllocation, ...]:
        return tuple(held for held in self._all_dynamic if (held.namespace, held.pod) not in self._ended)

    @cached_property
    def dynamic_allocations(self) -> tuple[Allocation, ...]:
        """The devices of resource claims as allocations: the driver is the resource, the id is pool/device."""
        return tuple(
            Allocation(
                namespace=held.namespace,
                pod=held.pod,
                container=held.container,
                resource=held.driver,
                device_id=f"{held.pool}/{held.device}",
            )
            for held in self.dynamic
        )

    @cached_property
    def gpus(self) -> frozenset[str]:
        return frozenset(device.gpu.uuid for device in self.devices)

    @cached_property
    def cards(self) -> tuple[str, ...]:
        """The UUIDs of the cards, in their order."""
        return tuple(device.gpu.uuid for device in self.devices)

    def cards_without_names(self, allocation: Allocation, name: str) -> tuple[str, ...]:
        """Return what NVIDIA's plugin means by its names for cards without UUIDs: every card, or the built-in one."""
        is_meant = name == EVERY or (name == BUILT_IN and len(self.cards) == 1)
        return self.cards if is_meant and allocation.resource.startswith(VENDOR) else ()

    @cached_property
    def _lengths(self) -> frozenset[int]:
        return frozenset(map(len, (*self.gpus, *self.instances)))

    def named(self, text: str) -> Iterator[str]:
        """Yield the cards and MIG instances whose UUIDs are in a text."""
        for start in (found.start() for found in _UUID_START.finditer(text)):
            ends = (start + length for length in self._lengths)
            yield from (
                text[start:end] for end in ends if text[start:end] in self.gpus or text[start:end] in self.instances
            )

    @cached_property
    def instances(self) -> dict[str, str]:
        """MIG UUID -> the UUID of its card."""
        return {instance.mig.uuid: device.gpu.uuid for device in self.devices for instance in device.instances}

    @cached_property
    def migs(self) -> dict[str, tuple[MigInstance, ...]]:
        """A card's UUID -> its MIG instances."""
        return {device.gpu.uuid: tuple(instance.mig for instance in device.instances) for device in self.devices}

    @cached_property
    def mig_names(self) -> dict[str, str]:
        """A plugin's name for a MIG instance -> its UUID. Before R470 it was named after its place on the card."""
        place = {
            f"MIG-{card}/{mig.gpu_instance_id}/{mig.compute_instance_id}": mig.uuid
            for card, migs in self.migs.items()
            for mig in migs
        }
        return place | {uuid: uuid for uuid in self.instances}

    @cached_property
    def by_minor(self) -> dict[str, str]:
        """The number N of /dev/nvidiaN, as text -> the card's UUID."""
        return {str(device.gpu.minor): device.gpu.uuid for device in self.devices if device.gpu.minor is not None}

    @cached_property
    def by_index(self) -> dict[str, str]:
        """NVML's index, as text -> the card's UUID."""
        return {str(device.gpu.index): device.gpu.uuid for device in self.devices if device.gpu.index >= 0}

    @cached_property
    def memory(self) -> dict[str, int]:
        """A card's UUID -> its memory in bytes."""
        sizes = {device.gpu.uuid: value_of(device.readings, MEMORY) for device in self.devices}
        return {uuid: int(size) for uuid, size in sizes.items() if size is not None}

    @cached_property
    def served(self) -> dict[str, bool]:
        """A card's UUID -> whether an MPS server has it. Cards for which that is not known are left out."""
        found = {device.gpu.uuid: _is_served(device) for device in self.devices}
        return {uuid: served for uuid, served in found.items() if served is not None}

    @cached_property
    def vgpus(self) -> tuple[VirtualGpu, ...]:
        """What libraries in containers keep in files, each under the name of its container."""
        holders: defaultdict[str, set[str]] = defaultdict(set)
        for held in self.allocations if self._files else ():
            if (pod := self.pod(held)) and any(self.named(held.device_id)):
                holders[pod.uid].add(held.container)
        return tuple(rightly_named(self._files, holders, self.pods))

    @cached_property
    def enforced(self) -> dict[tuple[str, str, str], int | None]:
        """Limits of memory that a library in the container enforces, by pod UID, container and card."""
        return {(vgpu.pod_uid, vgpu.container, vgpu.gpu): vgpu.memory_limit_bytes for vgpu in self.vgpus}

    def parts(self, read: Callable[[str, str], tuple[str, int] | None], label: str = "") -> Counter[str]:
        """Count the parts that each device is divided into. `read` turns a resource and an id into device and number.

        Until a plugin has registered, nothing is offered, and the number is not known: the allocated parts are too few.
        Nor is anything offered of a device that is not healthy. A plugin divides all its devices alike, and numbers
        begin at 0. So such a device has as many parts as the others, and more than the highest number that is
        allocated: a share must not grow because something is not known. After an XID, NVIDIA's plugin does not offer
        one of a device's parts: a device with one less than others of its resource, or the only one with one less than
        at the last count, has that part too. On a node without an agent, a device has 0 parts unless the node's `label`
        says how many, or only one number fits.
        """
        if not self.is_seen:
            return self._parts_by_node(read, label)
        allocated = [(held.resource, read(held.resource, held.device_id)) for held in self.allocations]
        offered = [(resource, read(resource, device_id)) for resource, device_id in self.allocatable]
        counts = Counter(part[0] for _, part in allocated if part)
        resources: dict[str, str] = {}
        for resource, part in (*allocated, *offered):
            if part:
                device, number = part
                counts[device] = max(counts[device], number + 1)
                resources[device] = resource
        most: Counter[str] = Counter()
        for resource, part in offered:
            if part:
                most[resource] = max(most[resource], counts[part[0]])
        if not most:
            return Counter()
        on_offer, devices_of = {part[0] for _, part in offered if part}, Counter(resources.values())
        for device, resource in resources.items():
            usual = most[resource] if devices_of[resource] > 1 else self._counted.get(device)
            if device not in on_offer:
                counts[device] = max(counts[device], *most.values())
            elif counts[device] + 1 == usual:
                counts[device] += 1
        self.counted.update(counts)
        return counts

    def _parts_by_node(self, read: Callable[[str, str], tuple[str, int] | None], label: str) -> Counter[str]:
        numbers: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for allocation in self.allocations:
            if part := read(allocation.resource, allocation.device_id):
                highest = numbers[allocation.resource]
                highest[part[0]] = max(part[1], highest.get(part[0], 0))
        return Counter(
            {
                device: parts_of_each(self.node, resource, label, max(highest.values()) + 1, len(highest))
                for resource, highest in numbers.items()
                for device in highest
            }
        )

    @cached_property
    def _alive(self) -> dict[tuple[str, str], list[Pod]]:
        return grouped((pod for pod in self.pods if not pod.finished), lambda pod: (pod.namespace, pod.name))

    @cached_property
    def by_uid(self) -> dict[str, Pod]:
        return {pod.uid: pod for pod in self.pods}

    def pod(self, allocation: Allocation) -> Pod | None:
        """Return the pod that holds an allocation. The kubelet lists no UID, so of two pods of a name it is neither."""
        found = self._alive.get((allocation.namespace, allocation.pod), [])
        return found[0] if len(found) == 1 else None

    def container(self, allocation: Allocation) -> ContainerRef:
        pod = self.pod(allocation)
        return ContainerRef(*allocation.names, pod.uid if pod else "")

    @cached_property
    def _limits(self) -> dict[tuple[str, str], Mapping[str, str]]:
        """What containers ask for, by pod UID and name. The spec of a pod without a phase is not known."""
        known = [pod for pod in self.pods if pod.phase]
        return {(pod.uid, container.name): container.limits for pod in known for container in pod.containers}

    def limits(self, container: ContainerRef) -> Mapping[str, str] | None:
        """Return what a container asks for, None if its spec is not known."""
        return self._limits.get((container.pod_uid, container.container))

    def claim(
        self,
        allocation: Allocation,
        device: str,
        *,
        system: str,
        share: float = 1.0,
        memory: int | None = None,
        cores: float | None = None,
        device_id: str = "",
        source: str = "",
        index: int | None = None,
    ) -> Claim:
        """Claim a share of a card or a MIG instance: `device` is its UUID. There may be limits of memory and cores.

        Without `device_id` and `source`, they are those of the allocation and of the inventory.
        """
        is_listed = bool(allocation.device_id) or self.is_seen
        gpu = self.instances.get(device, device)
        return Claim(
            gpu=gpu,
            mig=device if gpu != device else "",
            container=self.container(allocation),
            share=share,
            memory_limit_bytes=memory,
            core_limit_ratio=cores,
            resource=allocation.resource,
            device_id=device_id or allocation.device_id,
            system=system,
            source=source or (self.source if is_listed else SPEC),
            index=index,
        )
