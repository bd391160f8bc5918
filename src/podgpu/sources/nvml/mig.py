"""The MIG instances of a card. A reconfiguration invalidates their handles, so they are listed each cycle."""

from collections.abc import Iterator

from msgspec.structs import replace

from podgpu.model import Instance, MigInstance, Reading
from podgpu.sources.nvml import plan
from podgpu.sources.nvml.gpm import Profiler
from podgpu.sources.nvml.handle import Handle
from podgpu.sources.nvml.process import NO_FIGURE, Listing, running

MOST_INSTANCES = 64  # a card has seven GPU instances at most


class InstanceReader:
    """Reads a MIG device. The first compute instance of a GPU instance reports its memory and activity."""

    def __init__(self, parent: Handle, handle: Handle, mig: MigInstance, *, reports_gpu_instance: bool) -> None:
        self.mig = mig
        self._handle = handle
        self._profiler = Profiler(parent, mig.gpu_instance_id) if reports_gpu_instance else None

    def open_profiler(self) -> None:
        if self._profiler:
            self._profiler.open()

    def read(self, *, brief: bool) -> tuple[Instance, Listing]:
        readings = tuple(self._readings(self._profiler, brief=brief)) if self._profiler else ()
        gpu_instance, compute_instance = self.mig.gpu_instance_id, self.mig.compute_instance_id
        listing = running(self._handle, None)
        processes = (
            replace(process, gpu_instance_id=gpu_instance, compute_instance_id=compute_instance)
            for process in listing.processes
        )
        return Instance(mig=self.mig, readings=readings), listing._replace(processes=tuple(processes))

    def _readings(self, profiler: Profiler, *, brief: bool) -> Iterator[Reading]:
        yield from plan.read(plan.INSTANCE, self._handle)
        if not brief:
            yield from profiler.read()

    def close(self) -> None:
        if self._profiler:
            self._profiler.close()


class InstanceReaders:
    """The MIG devices of a card. When the list of UUIDs changes, all readers are made again."""

    def __init__(self, parent: Handle) -> None:
        self._parent = parent
        self._handles: dict[str, Handle] = {}
        self._readers: dict[str, InstanceReader] = {}

    def read(self, *, brief: bool) -> tuple[tuple[Instance, ...], Listing]:
        """Read all. The list of processes is complete only if each instance is listed and reports its ids."""
        listed, is_complete = self._listed()
        handles = {handle.get("UUID") or "": handle for handle in listed}
        is_complete &= handles.pop("", None) is None
        if list(handles) != list(self._handles):
            self.close()
            self._handles = handles
        self._identify()
        readers = [self._readers[uuid] for uuid in self._handles if uuid in self._readers]
        for reader in readers:  # before the first read, which waits until its two samples are far enough apart
            reader.open_profiler()
        results = [reader.read(brief=brief) for reader in readers]
        return (
            tuple(instance for instance, _ in results),
            Listing(
                tuple(process for _, listing in results for process in listing.processes),
                is_complete=is_complete
                and len(readers) == len(self._handles)
                and all(listing.is_complete for _, listing in results),
            ),
        )

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._handles, self._readers = {}, {}

    def _identify(self) -> None:
        """Make the missing readers. An instance that does not report its ids is asked again in each cycle."""
        for uuid, handle in self._handles.items():
            mig = None if uuid in self._readers else _instance(uuid, handle, self._parent)
            if mig:
                reported = {reader.mig.gpu_instance_id for reader in self._readers.values()}
                is_first = mig.gpu_instance_id not in reported
                self._readers[uuid] = InstanceReader(self._parent, handle, mig, reports_gpu_instance=is_first)

    def _listed(self) -> tuple[list[Handle], bool]:
        """List the MIG devices, and say whether these are all. NOT_FOUND means that there is none at an index."""
        tracker, count = self._parent.tracker, self._count()
        failures = tracker.errors.total()
        found = [self._parent.get("MigDeviceHandleByIndex", index) for index in range(count or 0)]
        is_complete = (
            count is not None
            and tracker.errors.total() == failures
            and not any(self._parent.refuses("nvmlDeviceGetMigDeviceHandleByIndex", index) for index in range(count))
        )
        return [Handle(raw, tracker) for raw in found if raw is not None], is_complete

    def _count(self) -> int | None:
        """An implausible number is a mistake of the driver, and would make a loop that never ends."""
        count = self._parent.get("MaxMigDeviceCount")
        if count is None or 0 <= count <= MOST_INSTANCES:
            return count
        self._parent.tracker.errors["implausible_value"] += 1
        return None


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
    info = Handle(raw, parent.tracker).call("nvmlGpuInstanceGetInfo") if raw else None
    start = info.placement.start if info else None
    return None if start == NO_FIGURE else start
