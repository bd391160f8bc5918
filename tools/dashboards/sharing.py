"""Cards that several share: who has how much, how surely and by which method that is known, and what sharing costs."""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import BUSY, CLUSTER, CONTAINER, GPU, NAMESPACE, NODE, POD
from tools.dashboards.panel import Column, Query, Section, Thresholds, areas, lines, stat, table

_CARD = "cluster, node, gpu, uuid"
_PLACE = "cluster, node, gpu, uuid, mig, namespace, pod, container"
_SHOWN = "cluster, namespace, pod, container, node, gpu"
_NAME = "{{namespace}}/{{pod}}/{{container}} GPU {{gpu}}"
_GPU = "{{node}} GPU {{gpu}}"
# One method of each container, also while a replaced agent's series are still there.
_METHOD = f"topk by ({_PLACE}) (1, max by ({_PLACE}, method) (podgpu_container_info{{<namespace>}}))"
_SHARED = f"count by ({_CARD}) (podgpu_container_info{{<namespace>}}) > 1"
_ESTIMATE = "weighted|reserved|equal"
_NO_LOG = "No log of context switches is read: docs/switches.md"

# Bounds move once a minute, so a shorter look would see steps.
_SPAN = "5m"
_BOOKED = f"rate(podgpu_container_busy_seconds_total{{<namespace>}}[{_SPAN}])"


def _bound(which: str) -> str:
    return f'rate(podgpu_container_busy_bound_seconds_total{{<namespace>, bound="{which}"}}[{_SPAN}])'


_DOUBT: Thresholds = ((None, "green"), (0.2, "orange"), (0.5, "red"))
_COSTLY: Thresholds = ((None, "green"), (0.05, "orange"), (0.2, "red"))

_NOW = Section(
    "Now",
    (
        stat(
            "Shared GPUs",
            "Cards that more than one container is on. On a card with MIG each has an instance of its own.",
            "short",
            f"count({_SHARED})",
            absent="none",
        ),
        stat(
            "Containers on them",
            "Containers that are on a shared card.",
            "short",
            f"count(podgpu_container_info{{<namespace>}} and on ({_CARD}) ({_SHARED}))",
            absent="none",
        ),
        stat(
            "Estimated",
            "Containers whose busy time is divided by their claims or evenly, because it cannot be measured.",
            "short",
            f'count(podgpu_container_info{{<namespace>, method=~"{_ESTIMATE}"}})',
            absent="none",
        ),
        stat(
            "Uncertain",
            "Busy time between the least and the most that containers can have had, as a share of what is booked. It"
            " may exceed 100 %: each of two may have had all that both had together.",
            "percentunit",
            f"(sum({_bound('most')}) - sum({_bound('least')})) / (sum({_BOOKED}) > 0)",
            thresholds=_DOUBT,
            absent="no work",
        ),
        stat(
            "Lost to switching",
            "The highest share of its time that a card spends between one context and the next.",
            "percentunit",
            f"clamp_max(max(rate(podgpu_gpu_switching_seconds_total{{<node>}}[{_SPAN}])), 1)",
            thresholds=_COSTLY,
            absent="no log",
        ),
        stat(
            "Evaded samples",
            "The highest share of a card's busy time in which a container was on it and no sample named it.",
            "percentunit",
            "max(podgpu_container_sampling_evasion_ratio{<namespace>})",
            thresholds=_COSTLY,
            absent="not known",
        ),
    ),
)

_BOUNDS = Section(
    "Bounds",
    (
        lines(
            "Busy time: at least, booked, at most",
            "What containers of the chosen namespaces had together, in cards. The bounds move once a minute.",
            "short",
            Query(f"sum({_bound('most')})", "at most"),
            Query(f"sum({_BOOKED})", "booked"),
            Query(f"sum({_bound('least')})", "at least"),
            width=24,
        ),
        lines(
            "Uncertainty by container",
            "The most less the least that a container can have had, as a share of the card.",
            "percentunit",
            Query(
                f"clamp(sum by ({_PLACE}) ({_bound('most')}) - sum by ({_PLACE}) ({_bound('least')}), 0, 1)",
                _NAME,
            ),
            most=1,
            width=24,
        ),
        table(
            "Containers",
            "Busy time of each container on a shared card over five minutes, as a share of the card, with its bounds.",
            (CLUSTER, NAMESPACE, POD, CONTAINER, NODE, GPU),
            *(
                Query(
                    f"clamp_max(sum by ({_SHOWN}) ({rate} and on ({_CARD}) ({_SHARED})), 1)",
                    name,
                    "percentunit",
                    width=90,
                )
                for name, rate in (
                    ("At least", _bound("least")),
                    ("Booked", _BOOKED),
                    ("At most", _bound("most")),
                )
            ),
            Query(
                f"sum by ({_SHOWN}) (podgpu_container_allocated_ratio{{<namespace>}} and on ({_CARD}) ({_SHARED}))",
                "Share",
                "percentunit",
                width=80,
            ),
            sort="Booked",
            absent="No card is shared",
        ),
    ),
)

_METHODS = Section(
    "Methods",
    (
        areas(
            "Busy GPUs by method",
            "Busy time of containers by the way it was found, in cards. Weighted, reserved and equal are estimates.",
            "short",
            Query(
                f"sum by (method) (sum by ({_PLACE}) ({BUSY}) * on ({_PLACE}) group_left (method) {_METHOD})",
                "{{method}}",
            ),
        ),
        lines(
            "Containers by method",
            "How many containers' busy time was found in each way.",
            "short",
            Query("count by (method) (podgpu_container_info{<namespace>})", "{{method}}"),
            whole=True,
        ),
        table(
            "Estimated containers",
            "Containers whose busy time could not be measured. docs/attribution.md says what each method needs.",
            (CLUSTER, NAMESPACE, POD, CONTAINER, NODE, GPU, Column("method", "Method", 100)),
            Query(f'max by ({_SHOWN}, method) (podgpu_container_info{{<namespace>, method=~"{_ESTIMATE}"}})'),
            sort="Namespace",
            absent="No container's busy time is estimated",
        ),
    ),
)

_SWITCHING = Section(
    "Switching",
    (
        lines(
            "Context switches",
            "How often a card goes from one context to another, each second.",
            "cps",
            Query("rate(podgpu_gpu_context_switches_total{<node>}[$__rate_interval])", _GPU),
            absent=_NO_LOG,
        ),
        lines(
            "Time lost to switching",
            "Share of time between one context and the next, in which no process runs.",
            "percentunit",
            Query("clamp_max(rate(podgpu_gpu_switching_seconds_total{<node>}[$__rate_interval]), 1)", _GPU),
            most=1,
            absent=_NO_LOG,
        ),
        lines(
            "Time on the card",
            "Share of time in which each container's contexts were on the card, at work or not.",
            "percentunit",
            Query(
                f"clamp_max(sum by ({_PLACE})"
                " (rate(podgpu_container_resident_seconds_total{<namespace>}[$__rate_interval])), 1)",
                _NAME,
            ),
            most=1,
            absent=_NO_LOG,
            width=24,
        ),
        lines(
            "Evaded samples",
            "Share of the card's busy time in which a container was on it and the driver's samples did not name it.",
            "percentunit",
            Query("podgpu_container_sampling_evasion_ratio{<namespace>}", _NAME),
            most=1,
            absent=_NO_LOG,
            width=24,
        ),
    ),
)

_CROWD = Section(
    "How full the cards are",
    (
        lines(
            "Containers on each card",
            "How many containers are on each card.",
            "short",
            Query(f"count by ({_CARD}) (podgpu_container_info{{<namespace>}})", _GPU),
            whole=True,
        ),
        lines(
            "Given of each card",
            "Shares that containers were given. Above 100 %: a sharing system gives out more than there is.",
            "percentunit",
            Query(f"sum by ({_CARD}) (podgpu_container_allocated_ratio{{<namespace>}})", _GPU),
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-sharing",
    title="podgpu / Sharing",
    description="Who has how much of a shared card, between which bounds, by which method, and what sharing costs.",
    sections=(_NOW, _BOUNDS, _METHODS, _SWITCHING, _CROWD),
)
