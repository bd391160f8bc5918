"""An NVML handle. Every call on a device goes through here.

A call that the device refuses is repeated at once and, if it is refused again, made again only after a pause. Any other
failure is counted, and the value is absent. A lost card or driver raises. The tracker shows other threads which call a
thread is in.
"""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pynvml

from podgpu.sources.nvml import failure

# The names in older libraries. The first version of MemoryInfo counts reserved memory as used.
OLDER = {
    ("MemoryInfo", (pynvml.nvmlMemory_v2,)): ("MemoryInfo", ()),
    ("CurrentClocksEventReasons", ()): ("CurrentClocksThrottleReasons", ()),
    ("ProcessesUtilizationInfo", ()): ("ProcessUtilization", ()),
} | {
    (f"{kind}RunningProcesses{newer}", ()): (f"{kind}RunningProcesses{older}", ())
    for kind in ("Compute", "Graphics", "MPSCompute")
    for newer, older in (("_v3", "_v2"), ("_v2", ""))
}

NOT_TEXT = "not_text"  # the bindings cannot decode what is not UTF-8
TRIES = 3  # of a call that is refused for the first time: the driver rarely makes a mistake three times


class CallTracker:
    """Which call a thread is in, and the errors it counted. That thread writes it and others read it."""

    def __init__(self) -> None:
        self.call = ""
        self.errors: Counter[str] = Counter()

    def run(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        self.call = name
        try:
            return function(*args)
        finally:
            self.call = ""

    def take_errors(self) -> Counter[str]:
        taken, self.errors = self.errors, Counter()
        return taken


class Handle:
    def __init__(self, raw: Any, tracker: CallTracker) -> None:
        self.raw = raw
        self.tracker = tracker
        self.refusals = failure.Refusals()

    def get(self, function: str, *args: Any) -> Any | None:
        """Call `nvmlDeviceGet<function>`, or its name in an older library. Return None if there is no answer."""
        for name, numbers in _forms(function, args):
            answer = self.call(f"nvmlDeviceGet{name}", *numbers)
            if answer is not None or not self.refuses(f"nvmlDeviceGet{name}", *numbers):
                return answer
        return None

    def lacks(self, call: str) -> bool:
        """Whether a call is refused under all of its names, so that there is no answer to expect."""
        _, getter, function = call.rpartition("nvmlDeviceGet")
        return all(self.refuses(f"{getter}{name}", *numbers) for name, numbers in _forms(function, ()))

    def call(self, name: str, *args: Any, function: Callable[..., Any] | None = None) -> Any | None:
        """Call any function that takes this handle first, by default that of the bindings.

        Return None if there is no answer.
        """
        key = _key(name, args)
        if self.refusals.is_paused(key):
            return None
        for _ in range(1 if self.refusals.is_refused(key) else TRIES):
            try:
                answer = self._run(name, function, *args)
            except pynvml.NVMLError as error:
                self.fail(error.value, name, *args)
                if not self.refusals.is_refused(key):
                    return None
            except UnicodeDecodeError:
                self.tracker.errors[NOT_TEXT] += 1
                return None
            else:
                self.refusals.record_answer(key)
                return answer
        return None

    def fail(self, code: int, name: str, *args: Any) -> None:
        """Raise, remember or count a failed call. NOT_FOUND is an answer, not a failure."""
        failure.raise_if_lost(code, name)
        if code in failure.REFUSED:
            if self.refusals.record_refusal(_key(name, args), code):
                self.tracker.errors["refused"] += 1
        elif code != pynvml.NVML_ERROR_NOT_FOUND:
            self.tracker.errors[failure.reason(code)] += 1

    def refuses(self, name: str, *args: Any) -> bool:
        return self.refusals.is_refused(_key(name, args))

    def _run(self, name: str, function: Callable[..., Any] | None, *args: Any) -> Any:
        function = function or FIRST_LISTS.get(name) or getattr(pynvml, name, None)
        if function is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return self.tracker.run(name, function, self.raw, *args)


def _forms(function: str, args: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield a call and its names in ever older libraries."""
    wanted: tuple[str, tuple[Any, ...]] | None = (function, args)
    while wanted:
        yield wanted
        wanted = OLDER.get(wanted)


def _key(name: str, args: tuple[Any, ...]) -> tuple[str, tuple[int, ...]]:
    """A refusal is for a function with certain numbers. Buffers and lists differ from call to call."""
    return name, tuple(arg for arg in args if isinstance(arg, int))


SPARE_ENTRIES = 5  # room for processes that start between the two calls
NO_MEMORY_FIGURE = 2**64 - 1


class _ProcessInfoV1(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong))


class ProcessInfo(NamedTuple):
    """A process, with the field names of the bindings. Memory is None if the driver has no figure for it."""

    pid: int
    usedGpuMemory: int | None  # noqa: N815


def _list_v1(symbol: str, raw: Any) -> list[ProcessInfo]:
    """Read the first form of a process list, the only one before R460: an entry has no MIG instance.

    The bindings do not have it. Under its name they ask for the third form.
    """
    function = getattr(pynvml.nvmlLib, symbol, None)
    if function is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    count = ctypes.c_uint(0)
    code = function(raw, ctypes.byref(count), None)
    if code == pynvml.NVML_SUCCESS:
        return []
    if code != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
        raise pynvml.NVMLError(code)
    count.value = 2 * count.value + SPARE_ENTRIES
    entries = (_ProcessInfoV1 * count.value)()
    code = function(raw, ctypes.byref(count), entries)
    if code != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(code)
    return [
        ProcessInfo(entry.pid, None if entry.used == NO_MEMORY_FIGURE else entry.used)
        for entry in entries[: count.value]
    ]


FIRST_LISTS: dict[str, Callable[[Any], list[ProcessInfo]]] = {
    symbol: partial(_list_v1, symbol)
    for symbol in (f"nvmlDeviceGet{kind}RunningProcesses" for kind in ("Compute", "Graphics", "MPSCompute"))
}
