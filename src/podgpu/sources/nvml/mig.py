"""The MIG instances of a card. A reconfiguration invalidates their handles, so they are listed each cycle."""

from collections.abc import Iterator

import msgspec

from podgpu.model import Instance, MigInstance, Reading
from podgpu.sources.nvml import plan
from podgpu.sources.nvml.gpm import Profiler
from podgpu.sources.nvml.handle import Handle
from podgpu.sources.nvml.process import NO_FIGURE, Listing, running

MOST_INSTANCES = 64  # a card has seven GPU instances at most


class InstanceReader:
    """Reads a MIG device. The first compute instance of a GPU instance reports its memory and activity."""

    def __init__(self, parent: Handle, handle: Handle, mig: MigInstance, *, speaks: bool) -> None:
        self.mig = mig
        self._handle = handle
        self._speaks = speaks
        self._profiler: Profiler | None = None
        if speaks and Profiler.supported(parent):
            profiler = Profiler(parent, mig.gpu_instance_id)
            self._profiler = profiler if profiler.open() else None

    def read(self) -> tuple[Instance, Listing]:
        readings = tuple(self._readings()) if self._speaks else ()
        return Instance(mig=self.mig, readings=readings), self._processes()

    def _readings(self) -> Iterator[Reading]:
        yield from plan.read(plan.INSTANCE, self._handle)
        if self._profiler:
            yield from self._profiler.read()

    def _processes(self) -> Listing:
        ids = {
            "gpu_instance_id": self.mig.gpu_instance_id,
            "compute_instance_id": self.mig.compute_instance_id,
        }
        listing = running(self._handle, None)
        return listing._replace(
            processes=tuple(msgspec.structs.replace(one, **ids) for one in listing.processes)
        )

    def close(self) -> None:
        if self._profiler:
            self._profiler.close()


class InstanceReaders:
    """The MIG devices of a card. When the list of UUIDs changes, all readers are made again."""

    def __init__(self, parent: Handle) -> None:
        self._parent = parent
        self._readers: dict[str, InstanceReader] = {}

    def read(self) -> tuple[tuple[Instance, ...], Listing]:
        handles = dict(self._handles())
        if list(handles) != list(self._readers):
            self._replace(handles)
        results = [reader.read() for reader in self._readers.values()]
        return (
            tuple(instance for instance, _ in results),
            Listing(
                tuple(process for _, listing in results for process in listing.processes),
                is_complete=all(listing.is_complete for _, listing in results),
            ),
        )

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers = {}

    def _handles(self) -> Iterator[tuple[str, Handle]]:
        for index in range(self._count()):
            raw = self._parent.get("MigDeviceHandleByIndex", index)
            if raw is not None:
                handle = Handle(raw, self._parent.journal)
                uuid = handle.get("UUID")
                if uuid:
                    yield uuid, handle

    def _count(self) -> int:
        """A number that no card has is a mistake of the driver, and a loop that would never end."""
        count = self._parent.get("MaxMigDeviceCount") or 0
        if 0 <= count <= MOST_INSTANCES:
            return int(count)
        self._parent.journal.errors["implausible_value"] += 1
        return 0

    def _replace(self, handles: dict[str, Handle]) -> None:
        self.close()
        spoken: set[int] = set()
        for uuid, handle in handles.items():
            mig = _instance(uuid, handle, self._parent)
            if mig:
                self._readers[uuid] = InstanceReader(
                    self._parent, handle, mig, speaks=mig.gpu_instance_id not in spoken
                )
                spoken.add(mig.gpu_instance_id)


def _instance(uuid: str, handle: Handle, parent: Handle) -> MigInstance | None:
    gpu_instance = handle.get("GpuInstanceId")
    compute_instance = handle.get("ComputeInstanceId")
    if gpu_instance is None or compute_instance is None:
        return None
    attributes = handle.get("Attributes")
    return MigInstance(
        uuid=uuid,
        gpu_instance_id=gpu_instance,
        compute_instance_id=compute_instance,
        profile=(handle.get("Name") or "").partition(" MIG ")[2],
        multiprocessors=attributes.multiprocessorCount if attributes else None,
        start=_start(parent, gpu_instance),
    )


def _start(parent: Handle, gpu_instance: int) -> int | None:
    """Return the first memory slice of a GPU instance. Some drivers do not report it, or not to every user."""
    raw = parent.get("GpuInstanceById", gpu_instance)
    info = Handle(raw, parent.journal).call("nvmlGpuInstanceGetInfo") if raw else None
    start = info.placement.start if info else None
    return None if start == NO_FIGURE else start
