"""What pages of metrics say, taken out of their text."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from podgpu.model import Cluster, Snapshot
from podgpu.views import exposition, native, otlp
from podgpu.views.cluster import metrics
from podgpu.views.dialects import dcgm
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from podgpu.views.exposition import Format
from podgpu.views.series import Labels
from tests.agreement.facts import BUSY, DARK, GPUS, HELD, UNUSED, UNUSED_PODS, Facts, gpus, of_node, of_pod

IDLE_SINCE = "podgpu_container_idle_since_timestamp_seconds"
# What is proven and what is likely of the busy time so far: the family, and the label of its two ends.
SECONDS = {
    "proven seconds": ("podgpu_container_busy_bound_seconds_total", "bound"),
    "likely seconds": ("podgpu_container_busy_likely_seconds_total", "end"),
}
Series = list[tuple[dict[str, str], float]]
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def samples(text: str) -> list[tuple[str, dict[str, str], float]]:
    return [(name, dict(_LABEL.findall(labels)), float(value)) for name, labels, value in _SAMPLE.findall(text)]


def cluster_metrics(cluster: Cluster) -> Facts:
    families = [
        *metrics.of_cluster(cluster),
        *(family for node in cluster.nodes for family in metrics.of_node(node)),
    ]
    totals: dict[str, float] = defaultdict(float)
    states: Facts = {}
    wanted = 0.0
    for family in families:
        for name, labels, value in samples(exposition.lines(family)):
            totals[name.removeprefix("podgpu_cluster_")] += value
            if name == "podgpu_cluster_node_info":
                states[of_node(labels["node"])] = "dark" if labels["state"] in ("stale", "failed") else ""
            elif name == "podgpu_cluster_nodes":
                wanted += value if labels["state"] != "allocation" else 0.0
    shown = {GPUS: "gpus", HELD: "allocated_gpus", UNUSED: "idle_gpus", BUSY: "busy_gpus"}
    facts = {fact: gpus(totals[name]) for fact, name in shown.items() if name in totals}
    facts |= {**states, DARK: f"{gpus(totals['dark_nodes'])} of {gpus(wanted)}"}
    sums = cluster.insight.sums if cluster.insight else None
    if sums and (sums.unknown_busy or sums.unknown_shares):
        facts.pop(BUSY, None)  # absent where a part is unknown, so that the others are no sum of all
        facts.pop(HELD, None)
    return facts


def native_page(snapshot: Snapshot) -> Facts:
    return facts_of_page(exposition.render(native.families(snapshot, {}), Format.TEXT).decode())


def facts_of_page(text: str) -> Facts:
    by_name: dict[str, Series] = defaultdict(list)
    for name, labels, value in samples(text):
        by_name[name].append((labels, value))
    idle = {(labels["namespace"], labels["pod"]) for labels, _ in by_name[IDLE_SINCE]}
    return {GPUS: str(len(by_name["podgpu_gpu_up"])), UNUSED_PODS: str(len(idle)), **_tenants(by_name)}


def _tenants(by_name: Mapping[str, Series]) -> Facts:
    """The certainty of each pod with one container in one place, and its seconds so far: what is proven, and likely."""
    facts: Facts = {}
    for pod, own in _by_pod(by_name.get("podgpu_container_info", ())).items():
        if len(own) == 1 and own[0][0]["certainty"]:
            facts[of_pod(pod, "certainty")] = own[0][0]["certainty"]
    for what, (family, label) in SECONDS.items():
        for pod, own in _by_pod(by_name.get(family, ())).items():
            ends = {labels[label]: value for labels, value in own}
            if len(own) == len(ends):
                facts[of_pod(pod, what)] = f"{ends['least']}–{ends['most']}"
    return facts


def _by_pod(series: Iterable[tuple[Mapping[str, str], float]]) -> dict[str, list[tuple[Mapping[str, str], float]]]:
    found: dict[str, list[tuple[Mapping[str, str], float]]] = defaultdict(list)
    for labels, value in series:
        if labels["pod"]:
            found[f"{labels['namespace']}/{labels['pod']}"].append((labels, value))
    return found


def otlp_series(snapshot: Snapshot) -> Facts:
    families = {family.name: family for family in otlp.families(snapshot)}
    facts = {GPUS: str(len(families["podgpu_gpu_up"].samples))} if "podgpu_gpu_up" in families else {}
    idle = families.get(IDLE_SINCE)
    pods = {labels[0].pairs()["pod_uid"] for labels in idle.samples} if idle else set()
    by_name = {
        name: [(_named(labels), value) for labels, value in families[name].samples.items()]
        for name in ("podgpu_container_info", *(family for family, _ in SECONDS.values()))
        if name in families
    }
    return {**facts, UNUSED_PODS: str(len(pods)), **_tenants(by_name)}


def _named(labels: Iterable[Labels]) -> dict[str, str]:
    return {name: value for part in labels for name, value in part.pairs().items()}


def dcgm_page(snapshot: Snapshot) -> Facts:
    text = exposition.render(dcgm.families(snapshot, DcgmPageOptions()), Format.TEXT).decode()
    power = [value for name, _, value in samples(text) if name == "DCGM_FI_DEV_POWER_USAGE"]
    return {"cards that report power": str(len(power))} if power else {}
