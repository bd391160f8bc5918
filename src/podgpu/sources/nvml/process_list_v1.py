"""The first form of the process lists, the only one before R460: an entry has no MIG instance.

The bindings do not have it. Under its name they ask for the third.
"""

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pynvml

EXTRA = 5  # entries of room for processes that start between the two calls
NO_FIGURE = 2**64 - 1


class _Raw(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong))


class Entry(NamedTuple):
    """A process, in the words of the bindings. Memory is None if the driver has no figure for it."""

    pid: int
    usedGpuMemory: int | None  # noqa: N815


def _listed(symbol: str, raw: Any) -> list[Entry]:
    """Ask for the number of entries, then for the entries."""
    function = getattr(pynvml.nvmlLib, symbol, None)
    if function is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    count = ctypes.c_uint(0)
    code = function(raw, ctypes.byref(count), None)
    if code == pynvml.NVML_SUCCESS:
        return []
    if code != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
        raise pynvml.NVMLError(code)
    count.value = 2 * count.value + EXTRA
    entries = (_Raw * count.value)()
    code = function(raw, ctypes.byref(count), entries)
    if code != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(code)
    return [Entry(one.pid, None if one.used == NO_FIGURE else one.used) for one in entries[: count.value]]


FUNCTIONS: dict[str, Callable[[Any], list[Entry]]] = {
    symbol: partial(_listed, symbol)
    for symbol in (
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetGraphicsRunningProcesses",
        "nvmlDeviceGetMPSComputeRunningProcesses",
    )
}
