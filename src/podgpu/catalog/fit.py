"""What fits, as `podgpu fit` advises: served on request alone."""

from podgpu.catalog.row import Metric, gauge, info

ROWS: tuple[Metric, ...] = (
    info(
        "podgpu_workload_fit_info",
        "What `podgpu fit` advises about a container of a workload: release, smaller, share, leave, larger or unknown; "
        "what it should hold, and how sure that is.",
        own_labels=("advice", "to", "certainty"),
    ),
    gauge(
        "podgpu_workload_fit_gpus", "Shares of cards that its replicas hold, in cards. Absent if not known."
    ),
    gauge(
        "podgpu_workload_fit_saved_gpus",
        "Shares of cards that the advice saves, in cards; below 0 if it needs more. Absent if not known.",
    ),
    gauge(
        "podgpu_workload_fit_peak_memory_bytes",
        "Most device memory that was seen on one of its devices. Absent if not measured.",
    ),
    gauge(
        "podgpu_workload_fit_busy_ratio",
        "Part of a card that it was busy for, at most, in 99 % of the minutes, or as many as were asked for.",
    ),
    gauge(
        "podgpu_workload_fit_timestamp_seconds",
        "Until when the evidence was read, in seconds since 1970.",
    ),
)
