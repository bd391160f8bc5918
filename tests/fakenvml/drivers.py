"""Older drivers: what their library lacks of the functions that podgpu asks for."""

_LISTS = tuple(f"nvmlDeviceGet{kind}RunningProcesses" for kind in ("Compute", "Graphics", "MPSCompute"))
_THIRD = tuple(f"{name}_v3" for name in _LISTS)
_SECOND = tuple(f"{name}_v2" for name in _LISTS)
_SINCE_535 = (
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetJpgUtilization",
    "nvmlDeviceGetOfaUtilization",
    "nvmlDeviceGetTemperatureV",
    "nvmlDeviceGetProcessesUtilizationInfo",
    *("nvmlGpmQueryDeviceSupport", "nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet"),
)
_SINCE_510 = (*_SINCE_535, *_THIRD, "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetNumGpuCores")
_SINCE_460 = (
    *_SINCE_510,
    *_SECOND,
    "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)

# The oldest driver that each form of the process lists is tried with.
LACKS: dict[str, tuple[str, ...]] = {"510.39.01": _SINCE_535, "460.27.04": _SINCE_510, "450.57": _SINCE_460}
FORMS = {"510.39.01": "_v3", "460.27.04": "_v2", "450.57": ""}
