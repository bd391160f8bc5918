"""An NVML handle. Every call on a device goes through here.

A call that the device refuses is repeated at once and, if it is refused again, made again only after a pause. Any other
failure is counted, and the value is absent. A lost card or driver raises. The journal shows other threads which call a
thread is in.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pynvml

from podgpu.sources.nvml import failure, process_list_v1

# The names in older libraries. The first version of MemoryInfo counts reserved memory as used.
OLDER = {
    ("MemoryInfo", (pynvml.nvmlMemory_v2,)): ("MemoryInfo", ()),
    ("CurrentClocksEventReasons", ()): ("CurrentClocksThrottleReasons", ()),
    ("ComputeRunningProcesses_v3", ()): ("ComputeRunningProcesses_v2", ()),
    ("ComputeRunningProcesses_v2", ()): ("ComputeRunningProcesses", ()),
    ("GraphicsRunningProcesses_v3", ()): ("GraphicsRunningProcesses_v2", ()),
    ("GraphicsRunningProcesses_v2", ()): ("GraphicsRunningProcesses", ()),
    ("MPSComputeRunningProcesses_v3", ()): ("MPSComputeRunningProcesses_v2", ()),
    ("MPSComputeRunningProcesses_v2", ()): ("MPSComputeRunningProcesses", ()),
}


TRIES = 3  # of a call that is refused for the first time: a mistake of the driver is seldom made three times


class Journal:
    """What a thread is doing. That thread writes it and others read it, so each write replaces a whole tuple."""

    def __init__(self) -> None:
        self.entry: tuple[str, float] = ("", 0.0)
        self.errors: Counter[str] = Counter()

    def begin(self, call: str) -> None:
        self.entry = (call, time.monotonic())

    def end(self) -> None:
        self.entry = ("", 0.0)

    def take_errors(self) -> Counter[str]:
        taken, self.errors = self.errors, Counter()
        return taken


class Handle:
    def __init__(self, raw: Any, journal: Journal) -> None:
        self.raw = raw
        self.journal = journal
        self.refusals = failure.Refusals()

    def get(self, function: str, *args: Any) -> Any | None:
        """Call `nvmlDeviceGet<function>`, or its name in an older library. Return None if there is no answer."""
        for name, numbers in _forms(function, args):
            answer = self.call(f"nvmlDeviceGet{name}", *numbers)
            if not self.refuses(f"nvmlDeviceGet{name}", *numbers):
                return answer
        return None

    def lacks(self, call: str) -> bool:
        """Whether a call is refused under all of its names, so that there is no answer to expect."""
        _, getter, function = call.rpartition("nvmlDeviceGet")
        return all(self.refuses(f"{getter}{name}", *numbers) for name, numbers in _forms(function, ()))

    def call(self, name: str, *args: Any) -> Any | None:
        """Call any function that takes this handle first. Return None if there is no answer."""
        key = _key(name, args)
        if self.refusals.rests(key):
            return None
        for _ in range(1 if self.refusals.holds(key) else TRIES):
            try:
                answer = self._made(name, *args)
            except pynvml.NVMLError as error:
                self.fail(error.value, name, *args)
                if not self.refusals.holds(key):
                    return None
            except UnicodeDecodeError:  # the bindings raise it for a name that is not UTF-8
                self.journal.errors["not_text"] += 1
                return None
            else:
                self.refusals.lift(key)
                return answer
        return None

    def fail(self, code: int, name: str, *args: Any) -> None:
        """Raise, remember or count a failed call. NOT_FOUND is an answer, not a failure."""
        failure.raise_if_gone(code, name)
        if code in failure.REFUSED:
            if self.refusals.note(_key(name, args), code, forever=code in failure.FOREVER):
                self.journal.errors["refused"] += 1
        elif code != pynvml.NVML_ERROR_NOT_FOUND:
            self.journal.errors[failure.reason(code)] += 1

    def refuses(self, name: str, *args: Any) -> bool:
        return self.refusals.holds(_key(name, args))

    def _made(self, name: str, *args: Any) -> Any:
        function: Callable[..., Any] | None = process_list_v1.FUNCTIONS.get(name) or getattr(
            pynvml, name, None
        )
        if function is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        self.journal.begin(name)
        try:
            return function(self.raw, *args)
        finally:
            self.journal.end()


def _forms(function: str, args: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield a call and its names in ever older libraries."""
    wanted: tuple[str, tuple[Any, ...]] | None = (function, args)
    while wanted:
        yield wanted
        wanted = OLDER.get(wanted)


def _key(name: str, args: tuple[Any, ...]) -> tuple[str, tuple[int, ...]]:
    """A refusal is for a function with certain numbers. Buffers and lists differ from call to call."""
    return name, tuple(arg for arg in args if isinstance(arg, int))
