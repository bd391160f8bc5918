"""Cards that several share: who has how much, how surely and by which method that is known, and what sharing costs."""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import BUSY, CLUSTER, CONTAINER, GPU, NAMESPACE, NODE, POD
from tools.dashboards.panel import Column, Query, Section, Thresholds, areas, lines, stat, table

_CARD = "cluster, node, gpu, uuid"
_PLACE = "cluster, node, gpu, uuid, mig, namespace, pod, container"
_SHOWN = "cluster, namespace, pod, container, node, gpu"
_NAME = "{{namespace}}/{{pod}}/{{container}} GPU {{gpu}}"
_GPU = "{{node}} GPU {{gpu}}"
_SHARED = "podgpu_container_shared{<namespace>}"
_ON_SHARED = f"and on ({_PLACE}) {_SHARED}"
_ESTIMATED = 'podgpu_container_info{<namespace>, certainty="estimated"}'
_NO_LOG = "No log of context switches is read: docs/switches.md"

# What is booked, ranges and bounds move together once a minute, so a shorter look would see steps.
_SPAN = "5m"
_BOOKED = f"rate(podgpu_container_busy_settled_seconds_total{{<namespace>}}[{_SPAN}])"


def _likely(end: str) -> str:
    return f'rate(podgpu_container_busy_likely_seconds_total{{<namespace>, end="{end}"}}[{_SPAN}])'


def _bound(which: str) -> str:
    return f'rate(podgpu_container_busy_bound_seconds_total{{<namespace>, bound="{which}"}}[{_SPAN}])'


def _busy_by(label: str) -> str:
    """Busy time by a label of the containers; one value of each, also while a replaced agent's series are there."""
    told = f"topk by ({_PLACE}) (1, max by ({_PLACE}, {label}) (podgpu_container_info{{<namespace>}}))"
    return f"sum by ({label}) (sum by ({_PLACE}) ({BUSY}) * on ({_PLACE}) group_left ({label}) {told})"


_DOUBT: Thresholds = ((None, "green"), (0.2, "orange"), (0.5, "red"))
_COSTLY: Thresholds = ((None, "green"), (0.05, "orange"), (0.2, "red"))

_NOW = Section(
    "Now",
    (
        stat(
            "Shared",
            "Cards that a container of the chosen namespaces shares with any other. On a card with MIG each has an"
            " instance of its own.",
            "short",
            f"count(count by ({_CARD}) ({_SHARED}))",
            absent="none",
        ),
        stat(
            "Containers",
            "Containers that are on a shared card.",
            "short",
            f"count({_SHARED})",
            absent="none",
        ),
        stat(
            "Estimated",
            "Containers whose busy time is likely, not proven: by the driver's samples, checks of its log, or claims.",
            "short",
            f"count({_ESTIMATED})",
            absent="none",
        ),
        stat(
            "Uncertain",
            "How wide the likely ranges of containers are, as a share of what is booked. It may exceed 100 %: each of"
            " two may have had all that both had together.",
            "percentunit",
            f"(sum({_likely('most')}) - sum({_likely('least')})) / (sum({_BOOKED}) > 0)",
            thresholds=_DOUBT,
            absent="no work",
        ),
        stat(
            "Switching",
            "The highest share of its time that a card spends between one context and the next.",
            "percentunit",
            f"clamp_max(max(rate(podgpu_gpu_switching_seconds_total{{<node>}}[{_SPAN}])), 1)",
            thresholds=_COSTLY,
            absent="no log",
        ),
        stat(
            "Misread",
            "The most by which the driver's samples misstate a container's share of a card's busy time. podgpu corrects"
            " that; other tools do not.",
            "percentunit",
            "max(abs(podgpu_container_sampling_error_ratio{<namespace>}))",
            absent="not known",
        ),
    ),
)

_CERTAINTY = Section(
    "How sure",
    (
        table(
            "Containers",
            "Busy time of each container on a shared card over five minutes, as a share of the card, with its likely"
            " range and its bounds. Bounds are proven; where samples divide a card, they may be 0 and its busy time.",
            (CLUSTER, NAMESPACE, POD, CONTAINER, NODE, GPU),
            *(
                Query(
                    f"clamp_max(sum by ({_SHOWN}) ({rate} {_ON_SHARED}), 1)",
                    name,
                    "percentunit",
                    width=width,
                )
                for name, rate, width in (
                    ("Booked", _BOOKED, 85),
                    ("Likely from", _likely("least"), 101),
                    ("Likely to", _likely("most"), 85),
                    ("At least", _bound("least"), 78),
                    ("At most", _bound("most"), 71),
                )
            ),
            sort="Booked",
            absent="No card is shared",
        ),
        lines(
            "Busy time: likely range",
            "What containers of the chosen namespaces likely had together, in cards, with what is booked. The ranges of"
            " containers are added up, so this is wider than it need be. It moves once a minute.",
            "short",
            Query(f"sum({_likely('most')})", "likely at most"),
            Query(f"sum({_BOOKED})", "booked"),
            Query(f"sum({_likely('least')})", "likely at least"),
            width=24,
        ),
        lines(
            "Likely range by container",
            "How wide the likely range of a container is, as a share of the card.",
            "percentunit",
            Query(
                f"clamp(sum by ({_PLACE}) ({_likely('most')}) - sum by ({_PLACE}) ({_likely('least')}), 0, 1)",
                _NAME,
            ),
            most=1,
            width=24,
        ),
    ),
)

_METHODS = Section(
    "Methods",
    (
        areas(
            "Busy GPUs by certainty",
            "Busy time of containers by how sure it is, in cards: exact, bounded by proof, or estimated.",
            "short",
            Query(_busy_by("certainty"), "{{certainty}}"),
        ),
        areas(
            "Busy GPUs by method",
            "Busy time of containers by the way it was found, in cards. docs/attribution.md explains each.",
            "short",
            Query(_busy_by("method"), "{{method}}"),
        ),
        table(
            "Estimated containers",
            "Containers whose busy time is a likely value. docs/attribution.md says what each method needs.",
            (CLUSTER, NAMESPACE, POD, CONTAINER, NODE, GPU, Column("method", "Method", 100)),
            Query(f"max by ({_SHOWN}, method) ({_ESTIMATED})"),
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
            "Sampling error",
            "By how much of the card's busy time the driver's samples name a container too often or, below 0, too"
            " seldom. podgpu corrects that; other tools that read the samples do not.",
            "percentunit",
            Query("podgpu_container_sampling_error_ratio{<namespace>}", _NAME),
            least=-1,
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
            "How many containers are on each card, of all namespaces.",
            "short",
            Query(f"count by ({_CARD}) (podgpu_container_info{{<node>}})", _GPU),
            whole=True,
        ),
        lines(
            "Given of each card",
            "Shares that containers of all namespaces were given. Above 100 %: a sharing system gives out more than"
            " there is.",
            "percentunit",
            Query(f"sum by ({_CARD}) (podgpu_container_allocated_ratio{{<node>}})", _GPU),
            thresholds=((None, "green"), (1.001, "orange")),
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-sharing",
    title="podgpu / Sharing",
    description="Who has how much of a shared card, how surely, by which method, and what sharing costs.",
    answer="Containers",
    sections=(_NOW, _CERTAINTY, _METHODS, _SWITCHING, _CROWD),
)
