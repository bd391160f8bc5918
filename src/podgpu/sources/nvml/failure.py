"""NVML's return codes as a closed set of reasons, and what a device refuses.

A refusal may be temporary, so each call is made again, after growing pauses.
"""

import time
from collections.abc import Callable, Iterator
from math import inf

import pynvml
from msgspec import Struct

from podgpu.model import Fault

FIRST_PAUSE = 1.0  # seconds
LONGEST_PAUSE = 3600.0

_NAMES = (
    "uninitialized invalid_argument not_supported no_permission not_found insufficient_size driver_not_loaded timeout "
    "irq_issue library_not_found function_not_found corrupted_inforom reset_required operating_system in_use memory "
    "no_data not_ready gpu_not_found"
)
REASONS: dict[int, str] = {getattr(pynvml, f"NVML_ERROR_{name.upper()}"): name for name in _NAMES.split()} | {
    pynvml.NVML_ERROR_GPU_IS_LOST: "lost",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "driver_mismatch",
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: "version_mismatch",
}

# The library will always answer this way; a new process may load another.
FOREVER = frozenset({pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH})

# The same device will probably answer this way again.
REFUSED = FOREVER | {pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION}

# The card has failed, not just the call.
CARD_LOST = frozenset(
    {pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED, pynvml.NVML_ERROR_GPU_NOT_FOUND}
)

# The library or the driver has failed, and this process cannot go on.
SESSION_LOST = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)


class NvmlFailure(Exception):
    def __init__(self, reason: str, call: str, detail: str = "") -> None:
        super().__init__(f"{call}: {reason}")
        self.fault = Fault(reason=reason, call=call, detail=detail)


class CardLost(NvmlFailure):
    """The card has failed, not just the call."""


class SessionFailed(NvmlFailure):
    """The library cannot be opened, or the driver has failed."""


def reason(code: int) -> str:
    return REASONS.get(code, "unknown_error")


def unforeseen(error: Exception) -> Fault:
    """Report a bug of podgpu or of the bindings, with the line that raised it."""
    import traceback  # takes memory that is rarely needed

    place = traceback.extract_tb(error.__traceback__)[-1]
    file = place.filename.rpartition("/")[2]
    return Fault(reason="sampler_error", detail=f"{error!r} at {file}:{place.lineno}")


def raise_if_lost(code: int, call: str) -> None:
    if code in CARD_LOST:
        raise CardLost(reason(code), call)
    if code in SESSION_LOST:
        raise SessionFailed(reason(code), call)


Key = tuple[str, tuple[int, ...]]  # a call's name and its numbers


class _RefusedCall(Struct):
    code: int
    due: float
    pause: float


class Refusals:
    """The calls that a device refuses now."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused: dict[Key, _RefusedCall] = {}
        self._answered: set[Key] = set()

    def is_refused(self, key: Key) -> bool:
        """Whether the call was refused the last time, so that there is no answer to expect."""
        return key in self._refused

    def is_paused(self, key: Key) -> bool:
        """Whether it is too early to ask again."""
        call = self._refused.get(key)
        return call is not None and self._clock() < call.due

    def record_refusal(self, key: Key, code: int) -> bool:
        """Remember a refusal. Return whether the call was answered before."""
        last = self._refused.get(key)
        pause = min(2 * last.pause, LONGEST_PAUSE) if last else FIRST_PAUSE
        self._refused[key] = _RefusedCall(code, inf if code in FOREVER else self._clock() + pause, pause)
        return last is None and key in self._answered

    def record_answer(self, key: Key) -> None:
        self._refused.pop(key, None)
        self._answered.add(key)

    def was_answered(self, key: Key) -> bool:
        """Whether the call was ever answered."""
        return key in self._answered

    def withdrawn(self) -> Iterator[tuple[Key, int]]:
        """Yield the calls that are refused now and were answered before, with NVML's code."""
        return ((key, call.code) for key, call in self._refused.items() if key in self._answered)

    def code(self, key: Key) -> int | None:
        call = self._refused.get(key)
        return call.code if call else None
