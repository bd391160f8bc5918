"""The driver's library and its GPUs. Runs in the control thread. A process opens the library only once."""

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pynvml
from msgspec import Struct

from podgpu.sources.nvml import failure
from podgpu.sources.nvml.event import EventListener
from podgpu.sources.nvml.handle import Journal

NOT_TEXT = "not_text"  # the bindings cannot decode what is not UTF-8
MOST_GPUS = 256


class FoundGpu(Struct, frozen=True):
    """A GPU that the driver counts: its handle and UUID, or the reason why it has none."""

    index: int
    raw: Any = None
    uuid: str = ""
    reason: str = ""


class Unavailable(Exception):
    """The library cannot be opened now. It may work later."""

    def __init__(self, reason: str, call: str, detail: str = "") -> None:
        super().__init__(f"{call}: {reason}")
        self.reason = reason
        self.call = call
        self.detail = detail


class Session:
    def __init__(self, library: str | None, journal: Journal, listener: EventListener) -> None:
        self.is_open = False
        self.driver_version = ""
        self.nvml_version = ""
        self._library = library
        self._journal = journal
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
            raise Unavailable(failure.reason(error.value), "nvmlInit") from error
        self.is_open = True

    def _load(self) -> None:
        """Load the library if the user named one. Otherwise the bindings look for it, each time again."""
        if self._library is None or pynvml.nvmlLib is not None:
            return
        try:
            pynvml.nvmlLib = ctypes.CDLL(self._library)
        except OSError as error:
            raise Unavailable("library_not_found", "dlopen", str(error)) from error

    def _enumerate(self) -> Iterator[FoundGpu]:
        for index in range(self._count()):
            try:
                raw = self._call("nvmlDeviceGetHandleByIndex", index)
                uuid = self._call("nvmlDeviceGetUUID", raw)
                self._listener.listen(raw, uuid, self._call)
                yield FoundGpu(index, raw, uuid)
            except pynvml.NVMLError as error:
                if error.value in failure.SESSION_GONE:
                    raise failure.SessionGone(error.value, "nvmlDeviceGetHandleByIndex") from error
                yield FoundGpu(index, reason=failure.reason(error.value))
            except UnicodeDecodeError:
                self._journal.errors[NOT_TEXT] += 1
                yield FoundGpu(index, reason=NOT_TEXT)

    def _count(self) -> int:
        try:
            count = int(self._call("nvmlDeviceGetCount"))
        except pynvml.NVMLError as error:
            raise failure.SessionGone(error.value, "nvmlDeviceGetCount") from error
        if count > MOST_GPUS:
            raise Unavailable("implausible_value", "nvmlDeviceGetCount", f"{count} GPUs")
        return count

    def _text(self, name: str) -> str:
        """What is no text is not known: a garbled version must not cost the GPUs."""
        try:
            return str(self._call(name))
        except UnicodeDecodeError:
            self._journal.errors[NOT_TEXT] += 1
            return ""

    def _call(self, name: str, *args: Any) -> Any:
        self._journal.begin(name)
        try:
            return getattr(pynvml, name)(*args)
        finally:
            self._journal.end()
