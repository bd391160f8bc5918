"""The agent about itself: what works, what does not and why, how old the numbers are."""

from podgpu.catalog.row import Metric, counter, gauge, info

ROWS: tuple[Metric, ...] = (
    info(
        "podgpu_build_info",
        "Versions of podgpu, the driver and NVML. demo is true when the numbers are made up.",
        own_labels=("version", "driver_version", "nvml_version", "demo"),
    ),
    gauge("podgpu_up", "1 when every source works and every GPU answers, else 0."),
    info(
        "podgpu_guest_gpu_info",
        "A GPU that is given to virtual machines. The driver does not list it, so nothing of it is measured.",
        own_labels=("pci_bus_id", "model"),
    ),
    gauge("podgpu_snapshot_timestamp_seconds", "When the numbers on this page were taken, in seconds since 1970."),
    gauge("podgpu_interval_seconds", "Time between two readings of the GPUs, as configured."),
    gauge(
        "podgpu_idle_after_seconds",
        "A holder that has not used its GPU for so long counts as idle, as configured by --idle.after.",
    ),
    gauge(
        "podgpu_watched_since_timestamp_seconds",
        "When this agent began to watch, in seconds since 1970. Use before that is not known to it.",
    ),
    gauge("podgpu_source_up", "1 when the last reading of this source worked, else 0.", own_labels=("source",)),
    gauge(
        "podgpu_source_problem",
        "Why a source does not work. Present, and 1, only while it does not.",
        own_labels=("source", "reason"),
    ),
    gauge(
        "podgpu_source_age_seconds",
        "Time since this source last worked. Absent until it worked once.",
        own_labels=("source",),
    ),
    gauge("podgpu_source_duration_seconds", "How long the last reading of this source took.", own_labels=("source",)),
    counter(
        "podgpu_errors_total",
        "Errors met while reading a source. One error may cost a single value or a whole reading.",
        own_labels=("source", "reason"),
    ),
    gauge("podgpu_series", "Number of series there are to show, before the series limit drops any."),
    counter(
        "podgpu_series_dropped_total",
        "Series left out because a page would have outgrown the series limit, by family.",
        own_labels=("family",),
    ),
)
