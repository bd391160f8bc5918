"""Who pays for what: GPU hours held, used and wasted, their cost, and how much of the time was seen at all.

All of it comes from podgpu's counters; only cost needs a recording rule, which has the price of each card.
"""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import CLUSTER, NAMESPACE, NODE, POD
from tools.dashboards.panel import Query, Section, Thresholds, areas, stat, table

_BY_TEAM = "cluster, namespace"
_BY_POD = "cluster, namespace, pod"
_PRICE = "on (cluster, node, uuid) group_left () last_over_time(podgpu:gpu_hour_price{<node>}[$__range])"
_ENERGY = "increase(podgpu_container_energy_joules_total{<namespace>}[$__range])"
_NO_PRICE = "no price"


def _held(window: str = "increase", span: str = "$__range") -> str:
    return f"{window}(podgpu_container_allocated_seconds_total{{<namespace>}}[{span}])"


def _used(window: str = "increase", span: str = "$__range") -> str:
    return f"{window}(podgpu_container_busy_seconds_total{{<namespace>}}[{span}])"


def _wasted(window: str = "increase", span: str = "$__range") -> str:
    """What each container held and did not use. One that uses more than it holds makes up for no other."""
    return f"clamp_min({_held(window, span)} - {_used(window, span)}, 0)"


def _hours(seconds: str, by: str) -> str:
    return f"sum by ({by}) ({seconds}) / 3600"


def _cost(seconds: str, by: str) -> str:
    return f"sum by ({by}) ({seconds} * {_PRICE}) / 3600"


# For how much of the chosen time a scrape found each card. A replaced agent goes on where the other ended.
_SEEN = (
    "count_over_time(max by (cluster, node, uuid) (podgpu_gpu_up{<node>})[$__range:$__interval])"
    " * $__interval_ms / $__range_ms"
)
_COVERAGE = f"clamp_max({_SEEN}, 1)"
_LOW: Thresholds = ((None, "red"), (0.95, "orange"), (0.99, "green"))

_TOTAL = Section(
    "The chosen time added up",
    (
        stat(
            "GPU hours held",
            "Hours that containers were given, used or not.",
            "short",
            f"sum({_held()}) / 3600",
        ),
        stat(
            "GPU hours used",
            "Hours in which the GPUs worked for containers.",
            "short",
            f"sum({_used()}) / 3600",
        ),
        stat(
            "GPU hours wasted",
            "Hours that a container held and did not use.",
            "short",
            f"sum({_wasted()}) / 3600",
        ),
        stat(
            "GPU hours free",
            "Hours that nobody was given, while the cards were seen.",
            "short",
            f"clamp_min(sum({_COVERAGE}) * $__range_s / 3600"
            " - (sum(increase(podgpu_container_allocated_seconds_total{<node>}[$__range])) / 3600 or vector(0)), 0)",
            absent="no GPU",
        ),
        stat(
            "Cost",
            "What the hours held cost, by podgpu:gpu_hour_price. Needs the recording rule of prices.",
            "short",
            f"sum({_held()} * {_PRICE}) / 3600",
            absent=_NO_PRICE,
        ),
        stat(
            "Coverage",
            "Share of the chosen time in which the cards were seen. Hours that nobody saw are on no bill. A card that"
            " was added within the time counts as unseen before.",
            "percentunit",
            f"avg({_COVERAGE})",
            thresholds=_LOW,
            absent="no GPU",
        ),
    ),
)

_TEAMS = Section(
    "Namespaces",
    (
        table(
            "Bills by namespace",
            "GPU hours and cost of each namespace over the chosen time. Cost is by what was held.",
            (CLUSTER, NAMESPACE),
            Query(_hours(_held(), _BY_TEAM), "Hours held", "short", width=105),
            Query(_hours(_used(), _BY_TEAM), "Hours used", "short", width=105),
            Query(_hours(_wasted(), _BY_TEAM), "Hours wasted", "short", width=105),
            Query(
                f"clamp(1 - sum by ({_BY_TEAM}) ({_wasted()}) / (sum by ({_BY_TEAM}) ({_held()}) > 0), 0, 1)",
                "Used of held",
                "percentunit",
            ),
            Query(
                f"sum by ({_BY_TEAM}) ({_ENERGY}) / 3.6e6",
                "Energy",
                "kwatth",
            ),
            Query(_cost(_held(), _BY_TEAM), "Cost", "short", width=105),
            Query(_cost(_wasted(), _BY_TEAM), "Cost of waste", "short"),
            sort="Hours held",
            absent="No container held a GPU",
        ),
        areas(
            "GPUs held",
            "Cards that each namespace holds, shares added up.",
            "short",
            Query(f"sum by (namespace) ({_held('rate', '$__rate_interval')})", "{{namespace}}"),
        ),
        areas(
            "GPUs wasted",
            "Cards that containers of each namespace hold and do not use.",
            "short",
            Query(f"sum by (namespace) ({_wasted('rate', '$__rate_interval')})", "{{namespace}}"),
        ),
    ),
)

_PODS = Section(
    "Pods",
    (
        table(
            "Most wasted",
            "The 20 pods that wasted the most GPU hours over the chosen time.",
            (CLUSTER, NAMESPACE, POD),
            Query(f"topk(20, {_hours(_wasted(), _BY_POD)})", "Hours wasted", "short"),
            Query(
                f"{_hours(_held(), _BY_POD)} and on ({_BY_POD}) topk(20, {_hours(_wasted(), _BY_POD)})",
                "Hours held",
                "short",
            ),
            Query(
                f"{_cost(_wasted(), _BY_POD)} and on ({_BY_POD}) topk(20, {_hours(_wasted(), _BY_POD)})",
                "Cost of waste",
                "short",
            ),
            sort="Hours wasted",
            absent="No container held a GPU",
        ),
    ),
)

_NODES = Section(
    "Coverage",
    (
        table(
            "Coverage by node",
            "For how much of the chosen time the cards of each node were seen, and what was booked to no container.",
            (CLUSTER, NODE),
            Query(f"avg by (cluster, node) ({_COVERAGE})", "Seen", "percentunit"),
            Query(
                f"sum by (cluster, node) ({_COVERAGE}) * $__range_s / 3600",
                "GPU hours seen",
                "short",
                width=130,
            ),
            Query(
                "sum by (cluster, node) (increase(podgpu_gpu_booked_busy_seconds_total{<node>}[$__range])) / 3600",
                "Hours busy",
                "short",
            ),
            Query(
                "sum by (cluster, node) (increase(podgpu_unattributed_busy_seconds_total{<node>}[$__range])) / 3600",
                "Busy for nobody",
                "short",
                width=130,
            ),
            sort="Busy for nobody",
            absent="No agent reports a GPU",
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-bills",
    title="podgpu / Bills",
    description="GPU hours held, used and wasted by each namespace, their cost, and how much of the time was seen.",
    sections=(_TOTAL, _TEAMS, _PODS, _NODES),
)
