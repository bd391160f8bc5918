"""podgpu about itself: whether it works, how fresh its numbers are, and how much of a GPU it can account for."""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import CLUSTER, FIRING, GPU, NAMESPACE, NODE, POD, counted
from tools.dashboards.panel import BAD_ABOVE_ZERO, Column, Query, Section, areas, lines, stat, table, works

_BOOKED = "sum by (reason) (rate(podgpu_unattributed_{quantity}_total{{<node>}}[$__rate_interval]))"

_ERRORS = counted("podgpu_errors_total{<node>}", "$__rate_interval")

_NOW = Section(
    "Now",
    (
        stat("Agents", "Agents that are scraped.", "short", "count(podgpu_up{<node>})", absent="none"),
        stat(
            "Agents in trouble",
            "Agents of which a source or a GPU does not work.",
            "short",
            "sum(1 - podgpu_up{<node>})",
            thresholds=BAD_ABOVE_ZERO,
        ),
        stat(
            "Oldest numbers",
            "Age of the oldest snapshot that is served. More than a few intervals is trouble.",
            "s",
            "max(time() - podgpu_snapshot_timestamp_seconds{<node>})",
        ),
        stat("Series", "Series that all agents have to show.", "short", "sum(podgpu_series{<node>})"),
        stat(
            "Accounted for",
            "Busy time that is booked to containers, as a share of all that is booked.",
            "percentunit",
            "clamp(1 - sum(rate(podgpu_unattributed_busy_seconds_total{<node>}[15m]))"
            " / (sum(rate(podgpu_gpu_booked_busy_seconds_total{<node>}[15m])) > 0), 0, 1)",
            absent="no work",
        ),
        stat(
            "Alerts firing",
            "Alerts of podgpu's rules that fire now. The table below names them.",
            "short",
            f"count({FIRING}) or vector(0)",
            thresholds=BAD_ABOVE_ZERO,
        ),
    ),
)

_ALERTS = Section(
    "Alerts",
    (
        table(
            "Alerts that fire",
            "What the count above counts. docs/alerts.md has the runbook of each.",
            (
                Column("severity", "Severity", 80),
                Column("alertname", "Alert", 220),
                CLUSTER,
                NODE,
                GPU,
                NAMESPACE,
                POD,
            ),
            Query(
                f"count by (severity, alertname, cluster, node, gpu, namespace, pod) ({FIRING})",
                "Alerts",
                "none",
                width=80,
            ),
            sort="Severity",
            absent="No alert of podgpu's rules fires",
        ),
    ),
)

_SOURCES = Section(
    "Sources",
    (
        works(
            "Sources",
            "Whether each source of an agent works. Those that failed in the chosen time are on top.",
            "podgpu_source_up",
            "cluster, node, source",
            "{{node}} {{source}}",
        ),
        table(
            "Problems",
            "Why a source does not work. docs/operations.md says what to do for each reason.",
            (CLUSTER, NODE, Column("source", "Source"), Column("reason", "Reason", 160)),
            Query("max by (cluster, node, source, reason) (podgpu_source_problem{<node>})"),
            width=12,
            absent="No source reports a problem",
        ),
        lines(
            "Errors",
            "Errors met while reading: all of each node, and by source and reason where there were any.",
            "short",
            Query(
                f"sum by (node, source, reason) ({_ERRORS}) > 0 or sum by (node) ({_ERRORS})",
                "{{node}} {{source}} {{reason}}",
            ),
            whole=True,
        ),
        lines(
            "Duration of a reading",
            "How long the last reading of each source took.",
            "s",
            Query("max by (node, source) (podgpu_source_duration_seconds{<node>})", "{{node}} {{source}}"),
            width=24,
        ),
    ),
)

_PAGES = Section(
    "Pages",
    (
        lines(
            "Age of the numbers",
            "Time since each snapshot was taken.",
            "s",
            Query("time() - podgpu_snapshot_timestamp_seconds{<node>}", "{{node}} {{instance}}"),
        ),
        lines(
            "Scrape duration",
            "How long Prometheus waits for an agent's page.",
            "s",
            Query(
                "scrape_duration_seconds * on (cluster, job, instance) group_left (node)"
                " max by (cluster, job, instance, node) (podgpu_build_info{<node>})",
                "{{node}} {{instance}}",
            ),
        ),
        lines(
            "Series",
            "Series that each agent has to show, before the limit drops any.",
            "short",
            Query("podgpu_series{<node>}", "{{node}} {{instance}}"),
            whole=True,
        ),
        lines(
            "Series left out",
            "Series that were left out because a page outgrew the series limit.",
            "short",
            Query(
                f"sum by (node, family) ({counted('podgpu_series_dropped_total{<node>}', '$__rate_interval')})",
                "{{node}} {{family}}",
            ),
            whole=True,
            absent="No series is left out",
        ),
    ),
)

_BOOKS = Section(
    "The books",
    (
        areas(
            "Unattributed busy time",
            "Busy time that is booked to no container, by reason, in cards.",
            "short",
            Query(_BOOKED.format(quantity="busy_seconds"), "{{reason}}"),
            absent="No busy time is unattributed",
        ),
        areas(
            "Unattributed memory",
            "Device memory in use that is booked to no container, by reason.",
            "bytes",
            Query("sum by (reason) (podgpu_unattributed_memory_bytes{<node>})", "{{reason}}"),
            absent="No memory is unattributed",
        ),
        lines(
            "Unattributed processes",
            "Processes on GPUs that belong to no pod, by reason.",
            "short",
            Query(
                'sum by (reason) (podgpu_unattributed_processes{<node>, reason=~"host|container|unknown"})',
                "{{reason}}",
            ),
            whole=True,
            absent="No process is unattributed",
        ),
        lines(
            "Books that do not balance",
            "Energy of containers, unattributed and ended, minus all that is booked. Anything but 0 is a bug.",
            "joule",
            Query(
                "abs(sum by (cluster, node, gpu) (podgpu_container_energy_joules_total{<node>}"
                " or podgpu_unattributed_energy_joules_total{<node>} or podgpu_ended_energy_joules_total{<node>})"
                " - sum by (cluster, node, gpu) (podgpu_gpu_booked_energy_joules_total{<node>})) > 0.0005 or"
                " sum by (cluster, node, gpu) (podgpu_gpu_booked_energy_joules_total{<node>}) * 0",
                "{{node}} GPU {{gpu}}",
            ),
        ),
        lines(
            "Containers by method",
            "How the busy time of containers was found. Weighted, reserved and equal are estimates.",
            "short",
            Query("count by (method) (podgpu_container_info{<namespace>})", "{{method}}"),
            whole=True,
        ),
        table(
            "Versions",
            "What runs on each node. Numbers of a demo are made up.",
            (
                CLUSTER,
                NODE,
                Column("version", "podgpu", 100),
                Column("driver_version", "Driver", 100),
                Column("nvml_version", "NVML", 120),
                Column("demo", "Demo", 60),
            ),
            Query("max by (cluster, node, version, driver_version, nvml_version, demo) (podgpu_build_info{<node>})"),
            width=12,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-agent",
    title="podgpu / podgpu itself",
    description="Whether the agents work, how fresh their numbers are, and how much of the GPUs they can account for.",
    sections=(_NOW, _ALERTS, _SOURCES, _PAGES, _BOOKS),
)
