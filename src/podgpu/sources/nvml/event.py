"""XIDs as they happen. Each event is kept until the next report: two equal ones count two."""

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pynvml

from podgpu.model import XidEvent

WAIT_MILLISECONDS = (
    1000  # each wait costs a tenth of a millisecond; nobody can register or shut down meanwhile
)
PAUSE_SECONDS = 0.2  # after a wait that failed
MOST_KEPT = 10_000


class EventListener:
    """Waits for the driver's events in a thread of its own."""

    def __init__(self) -> None:
        self._events: deque[XidEvent] = deque(maxlen=MOST_KEPT)
        self._set: Any = None
        self._uuids: dict[int, str] = {}
        self._thread: threading.Thread | None = None

    def listen(self, raw: Any, uuid: str, call: Callable[..., Any]) -> None:
        """Register one GPU, by means of `call(name, *args)`. A GPU without events is left out."""
        if _address(raw) in self._uuids:
            return
        try:
            if not call("nvmlDeviceGetSupportedEventTypes", raw) & pynvml.nvmlEventTypeXidCriticalError:
                return
            if self._set is None:
                self._set = call("nvmlEventSetCreate")
            call("nvmlDeviceRegisterEvents", raw, pynvml.nvmlEventTypeXidCriticalError, self._set)
        except pynvml.NVMLError:
            return
        self._uuids[_address(raw)] = uuid

    def start(self) -> None:
        """Begin to wait, once the GPUs known so far are registered."""
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
                # A wait may also end early because a GPU is gone: that must not become a busy loop.
                if error.value != pynvml.NVML_ERROR_TIMEOUT:
                    time.sleep(PAUSE_SECONDS)
                continue
            self._keep(event)

    def _keep(self, event: Any) -> None:
        # The UUID is looked up, not asked for: a card that fell off the bus no longer answers.
        uuid = self._uuids.get(_address(event.device))
        if uuid:
            self._events.append(XidEvent(uuid=uuid, xid=int(event.eventData), at=time.time()))


def _address(raw: Any) -> int:
    return ctypes.cast(raw, ctypes.c_void_p).value or 0
