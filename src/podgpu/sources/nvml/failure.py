"""NVML's return codes as a closed set of reasons."""

import pynvml

from podgpu.model import Fault

REASONS = {
    pynvml.NVML_ERROR_UNINITIALIZED: "uninitialized",
    pynvml.NVML_ERROR_INVALID_ARGUMENT: "invalid_argument",
    pynvml.NVML_ERROR_NOT_SUPPORTED: "not_supported",
    pynvml.NVML_ERROR_NO_PERMISSION: "no_permission",
    pynvml.NVML_ERROR_NOT_FOUND: "not_found",
    pynvml.NVML_ERROR_INSUFFICIENT_SIZE: "insufficient_size",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "driver_not_loaded",
    pynvml.NVML_ERROR_TIMEOUT: "timeout",
    pynvml.NVML_ERROR_IRQ_ISSUE: "irq_issue",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "library_not_found",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "function_not_found",
    pynvml.NVML_ERROR_CORRUPTED_INFOROM: "corrupted_inforom",
    pynvml.NVML_ERROR_GPU_IS_LOST: "lost",
    pynvml.NVML_ERROR_RESET_REQUIRED: "reset_required",
    pynvml.NVML_ERROR_OPERATING_SYSTEM: "operating_system",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "driver_mismatch",
    pynvml.NVML_ERROR_IN_USE: "in_use",
    pynvml.NVML_ERROR_MEMORY: "memory",
    pynvml.NVML_ERROR_NO_DATA: "no_data",
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: "version_mismatch",
    pynvml.NVML_ERROR_NOT_READY: "not_ready",
    pynvml.NVML_ERROR_GPU_NOT_FOUND: "gpu_not_found",
}

# The same device will always answer this way.
REFUSED = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    }
)

# The card has failed, not just the call.
CARD_GONE = frozenset(
    {pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED, pynvml.NVML_ERROR_GPU_NOT_FOUND}
)

# The library or the driver has failed, and this process cannot go on.
SESSION_GONE = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)


class Gone(Exception):
    """The card or the whole session is lost, as `call` found out."""

    def __init__(self, code: int, call: str) -> None:
        super().__init__(f"{call}: {reason(code)}")
        self.reason = reason(code)
        self.call = call


class CardGone(Gone):
    pass


class SessionGone(Gone):
    pass


def reason(code: int) -> str:
    return REASONS.get(code, "unknown_error")


def unforeseen(error: Exception) -> Fault:
    """Report a bug of podgpu or of the bindings, with the line that raised it."""
    import traceback  # takes memory that is seldom needed

    place = traceback.extract_tb(error.__traceback__)[-1]
    file = place.filename.rpartition("/")[2]
    return Fault(reason="sampler_error", detail=f"{error!r} at {file}:{place.lineno}")


def raise_if_gone(code: int, call: str) -> None:
    if code in CARD_GONE:
        raise CardGone(code, call)
    if code in SESSION_GONE:
        raise SessionGone(code, call)
