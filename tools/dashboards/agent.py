"""podgpu about itself: whether it works, how fresh its numbers are, and how much of a GPU it can account for."""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import BEGAN, CLUSTER, FIRING, GPU, NAMESPACE, NO_RULES, NODE, POD, counted
from tools.dashboards.panel import BAD_ABOVE_ZERO, Column, Query, Section, areas, lines, stat, table, works

_BOOKED = "sum by (reason) (rate(podgpu_unattributed_{quantity}_total{{<node>}}[$__rate_interval]))"

_ALERT = "severity, alertname, cluster, node, gpu, namespace, pod"
_RUNBOOK = "https://github.com/podgpu/podgpu/blob/main/docs/alerts.md#${__value.raw}"
_SEVERITY = Column(
    "severity",
    "Severity",
    100,
    colors=(("critical", "critical", "red"), ("warning", "warning", "orange"), ("info", "info", "blue")),
)
_ERRORS = counted("podgpu_errors_total{<node>}", "$__rate_interval")

_NOW = Section(
    "Now",
    (
        stat(
            "Agents",
            "Nodes with an agent now or in the last six hours. Needs the recording rules.",
            "short",
            "count(podgpu:node_not_seen:bool{<node>})",
            absent=NO_RULES,
        ),
        stat(
            "Not seen",
            "Nodes whose agent was scraped in the last six hours and is not now. Needs the recording rules.",
            "short",
            "sum(podgpu:node_not_seen:bool{<node>})",
            thresholds=BAD_ABOVE_ZERO,
            absent=NO_RULES,
        ),
        stat(
            "In trouble",
            "Agents that are scraped and of which a source or a GPU does not work.",
            "short",
            "sum(1 - podgpu_up{<node>})",
            thresholds=BAD_ABOVE_ZERO,
        ),
        stat(
            "Oldest",
            "Age of the oldest snapshot that is served. More than a few intervals is trouble.",
            "s",
            "max(time() - podgpu_snapshot_timestamp_seconds{<node>})",
        ),
        stat(
            "Accounted",
            "Busy time that is booked to containers, as a share of all that is booked.",
            "percentunit",
            "clamp(1 - sum(rate(podgpu_unattributed_busy_seconds_total{<node>}[15m]))"
            " / (sum(rate(podgpu_gpu_booked_busy_seconds_total{<node>}[15m])) > 0), 0, 1)",
            absent="no work",
        ),
        stat(
            "Alerts",
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
            "What the count above counts, and for how long. A name leads to its runbook.",
            (
                _SEVERITY,
                Column("alertname", "Alert", 210, _RUNBOOK),
                CLUSTER,
                NODE,
                GPU,
                NAMESPACE,
                POD,
            ),
            Query(f"count by ({_ALERT}) ({FIRING})", "Alerts", "none", width=65),
            Query(
                f"max by ({_ALERT}) (time() - {BEGAN} and on ({_ALERT}) {FIRING})",
                "For",
                "s",
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
            "podgpu_source_up{<node>}",
            "min_over_time(podgpu_source_up{<node>}[$__range] @ end())",
            "cluster, node, source",
            "{{node}} {{source}}",
        ),
        table(
            "Problems",
            "Why a source does not work. docs/operations.md says what to do for each reason.",
            (CLUSTER, NODE, Column("source", "Source"), Column("reason", "Reason", 120)),
            Query("max by (cluster, node, source, reason) (podgpu_source_problem{<node>})"),
            width=12,
            sort="Node",
            absent="No source reports a problem",
        ),
        lines(
            "Errors",
            "Errors met while reading, by source and reason.",
            "short",
            Query(
                f"sum by (node, source, reason) ({_ERRORS})",
                "{{node}} {{source}} {{reason}}",
                order="counts whole numbers",
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
                order="counts whole numbers",
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
                "round(abs(sum by (cluster, node, gpu) (podgpu_container_energy_joules_total{<node>}"
                " or podgpu_unattributed_energy_joules_total{<node>} or podgpu_ended_energy_joules_total{<node>})"
                " - sum by (cluster, node, gpu) (podgpu_gpu_booked_energy_joules_total{<node>})), 0.001)",
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
                Column("version", "podgpu", 70),
                Column("driver_version", "Driver", 85),
                Column("demo", "Demo", 55),
            ),
            Query("max by (cluster, node, version, driver_version, demo) (podgpu_build_info{<node>})"),
            sort="Node",
            width=12,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-agent",
    title="podgpu / podgpu itself",
    description="Whether the agents work, how fresh their numbers are, and how much of the GPUs they can account for.",
    answer="Alerts that fire",
    sections=(_NOW, _ALERTS, _SOURCES, _PAGES, _BOOKS),
)
