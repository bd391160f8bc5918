"""Who pays for what: GPU hours held, used and wasted, their cost, and how much of the time was seen at all.

All of it comes from podgpu's counters; only cost needs a recording rule, with the price of each
card and its currency.
"""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import CLUSTER, NAMESPACE, NODE, POD
from tools.dashboards.hours import BY_POD, BY_TEAM, ENERGY, NO_PRICE, cost, held, hours, summed, unknown, used, wasted
from tools.dashboards.panel import Column, Query, Section, Thresholds, areas, stat, table

_CURRENCY = Column("currency", "Currency", 85)


# For how much of the chosen time each card was scraped and answered. A replaced agent goes on where the other ended.
_SEEN = (
    "sum_over_time(max by (cluster, node, uuid) (podgpu_gpu_up{<node>})[$__range:$__interval])"
    " * $__interval_ms / $__range_ms"
)
_COVERAGE = f"clamp_max({_SEEN}, 1)"
_WASTED: Thresholds = ((None, "green"), (0.1, "orange"), (1, "red"))
_LOW: Thresholds = ((None, "red"), (0.95, "orange"), (0.99, "green"))

_TOTAL = Section(
    "The chosen time added up",
    (
        stat(
            "Hours held",
            "GPU hours that containers were given, used or not.",
            "short",
            f"sum({held()}) / 3600",
        ),
        stat(
            "Hours used",
            "GPU hours in which the GPUs worked for containers.",
            "short",
            f"sum({used()}) / 3600",
        ),
        stat(
            "Wasted",
            "GPU hours that a container held and is known not to have used. What nobody knows is no waste.",
            "short",
            f"sum({wasted()}) / 3600",
        ),
        stat(
            "Free",
            "GPU hours that nobody was given, while the cards could be read.",
            "short",
            f"clamp_min(sum({_COVERAGE}) * $__range_s / 3600"
            " - (sum(increase(podgpu_container_allocated_seconds_total{<node>}[$__range])) / 3600 or vector(0)), 0)",
            absent="no GPU",
        ),
        stat(
            "Cost",
            "What the hours held cost, by podgpu:gpu_hour_price and its label currency. Needs the recording rule of"
            " prices.",
            "short",
            cost(held(), ""),
            legend="{{currency}}",
            absent=NO_PRICE,
        ),
        stat(
            "Coverage",
            "Share of the chosen time in which the cards could be read. Hours that nobody saw are on no bill. A card"
            " that"
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
            "GPU hours and energy of each namespace over the chosen time. Unknown is what was held while nobody"
            " knows whether it was used.",
            (CLUSTER, NAMESPACE),
            Query(hours(held(), BY_TEAM), "Hours held", "short", width=115),
            Query(hours(used(), BY_TEAM), "Hours used", "short", width=95),
            Query(hours(wasted(), BY_TEAM), "Wasted", "short", width=75, thresholds=_WASTED),
            Query(hours(unknown(), BY_TEAM), "Unknown", "short", width=80),
            Query(f"{summed(ENERGY, BY_TEAM)} / 3.6e6", "Energy", "kwatth", width=85),
            sort="Hours held",
            absent="No container held a GPU",
        ),
        table(
            "Cost by namespace",
            "What the hours of each namespace cost, by podgpu:gpu_hour_price and its label currency.",
            (CLUSTER, NAMESPACE, _CURRENCY),
            Query(cost(held(), BY_TEAM), "Cost", "short", width=105),
            Query(cost(wasted(), BY_TEAM), "Cost of waste", "short", width=120),
            sort="Cost",
            absent="No container held a GPU that has a price",
        ),
        areas(
            "GPUs held",
            "Cards that each namespace holds, shares added up.",
            "short",
            Query(f"sum by (namespace) ({held('rate', '$__rate_interval')})", "{{namespace}}"),
        ),
        areas(
            "GPUs wasted",
            "Cards that containers of each namespace hold and do not use.",
            "short",
            Query(f"sum by (namespace) ({wasted('rate', '$__rate_interval')})", "{{namespace}}"),
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
            Query(f"topk(20, {hours(wasted(), BY_POD)})", "Hours wasted", "short", width=135, thresholds=_WASTED),
            Query(
                f"{hours(held(), BY_POD)} and on ({BY_POD}) topk(20, {hours(wasted(), BY_POD)})",
                "Hours held",
                "short",
                order="of the 20 most",
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
            "For how much of the chosen time the cards of each node could be read, and what was booked to no"
            " container.",
            (CLUSTER, NODE),
            Query(f"avg by (cluster, node) ({_COVERAGE})", "Read", "percentunit", thresholds=_LOW),
            Query(
                f"sum by (cluster, node) ({_COVERAGE}) * $__range_s / 3600",
                "GPU hours read",
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
                width=155,
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
    answer="Bills by namespace",
    sections=(_TOTAL, _TEAMS, _PODS, _NODES),
)
