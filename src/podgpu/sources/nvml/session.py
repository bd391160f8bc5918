"""The driver's library, its list of GPUs, and XIDs as they happen. A process opens the library only once."""

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pynvml
from msgspec import Struct

from podgpu.model import Refused, XidEvent
from podgpu.sources.nvml import failure
from podgpu.sources.nvml.handle import NOT_TEXT, CallTracker

MOST_GPUS = 256
# A wait costs 0.1 ms of CPU time, so it should be long; but it blocks registering GPUs and shutting down.
WAIT_MILLISECONDS = 1000
PAUSE_SECONDS = 0.2  # after a wait that failed
FAILED_AFTER = 3  # failed waits in a row: a single failure may be a mistake of the driver
MOST_KEPT = 10_000


class EventListener:
    """Waits for the driver's XID events in a thread of its own.

    Each event is kept until the next report, and two equal events count as two.
    """

    def __init__(self) -> None:
        self._events: deque[XidEvent] = deque(maxlen=MOST_KEPT)
        self._set: Any = None
        self._uuids: dict[int, str] = {}
        self._unregistered: dict[str, Refused] = {}  # why a GPU could not be registered
        self._failed_waits = 0
        self._wait_refused: Refused | None = None  # once `FAILED_AFTER` waits have failed
        self._thread: threading.Thread | None = None

    def listen(self, raw: Any, uuid: str, call: Callable[..., Any]) -> None:
        """Register a GPU, using `call(name, *args)`. One that cannot be registered is tried again at the next call."""
        if _address(raw) in self._uuids:
            return
        name = "nvmlDeviceGetSupportedEventTypes"
        try:
            if not call(name, raw) & pynvml.nvmlEventTypeXidCriticalError:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            if self._set is None:
                name = "nvmlEventSetCreate"
                self._set = call(name)
            name = "nvmlDeviceRegisterEvents"
            call(name, raw, pynvml.nvmlEventTypeXidCriticalError, self._set)
        except pynvml.NVMLError as error:
            self._unregistered[uuid] = _refused(name, error)
            return
        self._unregistered.pop(uuid, None)
        self._uuids[_address(raw)] = uuid

    def misses(self, uuid: str) -> Refused | None:
        """Return why XIDs of a GPU may be missed, None if all are received."""
        return self._unregistered.get(uuid) or self._wait_refused

    def start(self) -> None:
        """Start waiting. Call this once the known GPUs are registered."""
        if self._set is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="events", daemon=True)
            self._thread.start()

    def drain(self) -> tuple[XidEvent, ...]:
        return tuple(self._events.popleft() for _ in range(len(self._events)))

    def _run(self) -> None:
        while True:
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, WAIT_MILLISECONDS)
            except pynvml.NVMLError as error:
                if error.value != pynvml.NVML_ERROR_TIMEOUT:
                    self._failed_waits += 1
                    if self._failed_waits >= FAILED_AFTER:
                        self._wait_refused = _refused("nvmlEventSetWait_v2", error)
                    # A lost GPU makes every wait fail at once. Without a pause this would be a busy loop.
                    time.sleep(PAUSE_SECONDS)
                    continue
            else:
                self._keep(event)
            self._failed_waits, self._wait_refused = 0, None

    def _keep(self, event: Any) -> None:
        # The UUID comes from our table: a card that fell off the bus cannot answer.
        uuid = self._uuids.get(_address(event.device))
        if uuid:
            self._events.append(XidEvent(uuid=uuid, xid=int(event.eventData), at=time.time()))


class FoundGpu(Struct, frozen=True):
    """A GPU that the driver counts: its handle and UUID, or the reason why it has none."""

    index: int
    raw: Any = None
    uuid: str = ""
    reason: str = ""


class Session:
    def __init__(self, library: str | None, tracker: CallTracker, listener: EventListener) -> None:
        self.is_open = False
        self.driver_version = ""
        self.nvml_version = ""
        self._library = library
        self._tracker = tracker
        self._listener = listener

    def refresh(self) -> list[FoundGpu]:
        """Open the library if necessary, then list the GPUs."""
        if not self.is_open:
            self._open()
        found = list(self._enumerate())
        self._listener.start()
        return found

    def close(self) -> None:
        """Shut the library down if it still works. The exit of the process closes the rest."""
        if self.is_open:
            with suppress(pynvml.NVMLError):
                self._call("nvmlShutdown")

    def _open(self) -> None:
        self._load()
        try:
            self._call("nvmlInit")
            self.driver_version = self._text("nvmlSystemGetDriverVersion")
            self.nvml_version = self._text("nvmlSystemGetNVMLVersion")
        except pynvml.NVMLError as error:
            raise failure.SessionFailed(failure.reason(error.value), "nvmlInit") from error
        self.is_open = True

    def _load(self) -> None:
        """Load the library if the user named one. Otherwise the bindings search for it, each time again."""
        if self._library is None or pynvml.nvmlLib is not None:
            return
        try:
            pynvml.nvmlLib = ctypes.CDLL(self._library)
        except OSError as error:
            raise failure.SessionFailed("library_not_found", "dlopen", str(error)) from error

    def _enumerate(self) -> Iterator[FoundGpu]:
        for index in range(self._count()):
            try:
                raw = self._call("nvmlDeviceGetHandleByIndex", index)
                uuid = self._call("nvmlDeviceGetUUID", raw)
                self._listener.listen(raw, uuid, self._call)
                yield FoundGpu(index, raw, uuid)
            except pynvml.NVMLError as error:
                if error.value in failure.SESSION_LOST:
                    raise failure.SessionFailed(failure.reason(error.value), "nvmlDeviceGetHandleByIndex") from error
                yield FoundGpu(index, reason=failure.reason(error.value))
            except UnicodeDecodeError:
                self._tracker.errors[NOT_TEXT] += 1
                yield FoundGpu(index, reason=NOT_TEXT)

    def _count(self) -> int:
        try:
            count = int(self._call("nvmlDeviceGetCount"))
        except pynvml.NVMLError as error:
            raise failure.SessionFailed(failure.reason(error.value), "nvmlDeviceGetCount") from error
        if count > MOST_GPUS:
            raise failure.SessionFailed("implausible_value", "nvmlDeviceGetCount", f"{count} GPUs")
        return count

    def _text(self, name: str) -> str:
        """Return an empty text if it cannot be decoded: a garbled version must not cost the GPUs."""
        try:
            return str(self._call(name))
        except UnicodeDecodeError:
            self._tracker.errors[NOT_TEXT] += 1
            return ""

    def _call(self, name: str, *args: Any) -> Any:
        return self._tracker.run(name, getattr(pynvml, name), *args)


def _refused(name: str, error: Any) -> Refused:
    call = name.removeprefix("nvmlDeviceGet").removeprefix("nvmlDevice").removeprefix("nvml")
    return Refused(call=call, reason=failure.reason(error.value))


def _address(raw: Any) -> int:
    return ctypes.cast(raw, ctypes.c_void_p).value or 0
