"""What each surface says, taken out of its text as a reader would. None of them looks at what was concluded."""

import html as markup
import io
import json as plain_json
import re
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import msgspec

from podgpu import numbers
from podgpu.cli._idle_table import idle_table
from podgpu.cli._output import print_sentences, print_table
from podgpu.cli._top.keys import VIEWS, TopState, press
from podgpu.cli._top.layout import render
from podgpu.cli._top.meters import meters
from podgpu.cli._top.rows import TopRows
from podgpu.cli.top import print_rows
from podgpu.doctor import Machine, examine, rendering
from podgpu.doctor.cluster import examine_cluster
from podgpu.insight.idle import idle_pods
from podgpu.insight.problems import folded
from podgpu.insight.selection import EVERYTHING
from podgpu.insight.tenants import cards_of, placements, pod_name
from podgpu.model import Cluster, Problem, Snapshot
from podgpu.model.kube import total_of_known
from podgpu.views import json, page
from podgpu.views.cluster import inspect as inspected
from podgpu.views.cluster import json as cluster_json
from podgpu.views.cluster import page as cluster_page
from podgpu.views.cluster.card_memory import cluster_memory
from podgpu.views.format import AT_LEAST
from podgpu.views.table import table
from tests.agreement.certainty import of_legend, of_row, of_text, of_use, recomputed
from tests.agreement.evidence import WIDTH, evidence
from tests.agreement.facts import (
    ADVICE,
    BUSY,
    DARK,
    GPUS,
    HELD,
    POWER,
    PROBLEMS,
    UNUSED,
    UNUSED_PODS,
    WASTE,
    Facts,
    dark_of_text,
    gpus,
    listed,
    of_node,
    of_pod,
)
from tests.agreement.series import cluster_metrics, dcgm_page, native_page, otlp_series
from tests.agreement.tables import STATES, columns, facts_of_table

UNNAMED = "problems that doctor does not name"
_OF_PARTS = ("part_down", "part_degraded", "view_lost")
GROUPS = {"namespaces": "NAMESPACE", "workloads": "NAMESPACE/WORKLOAD"}


def all_of(cluster: Cluster) -> dict[str, Facts]:
    """Every surface that is text. A browser is asked elsewhere."""
    said = {
        "cluster JSON": cluster_document(cluster),
        "cluster metrics": cluster_metrics(cluster),
        "recomputed groups": recomputed(cluster),
        "cluster page": without_scripts(cluster),
        "idle": idle(cluster),
        "inspect": inspect(cluster),
        **({"cluster doctor": cluster_doctor(cluster)} if len(cluster.nodes) > 1 else {}),
        "top header": top_header(cluster),
        "top help": top_help(cluster),
        "top meters": top_meters(cluster),
        "top problems": top_problems(cluster),
        **{f"top {view}": top(cluster, view) for view in VIEWS},
        **{
            f"rows by {by}": of_rows(cluster, by) for by in json.ROW_KINDS if by != json.PENDING
        },  # who waits holds nothing
    }
    for node in cluster.nodes:
        if node.snapshot is not None and node.state == "fresh":
            for name, surface in _OF_NODE.items():
                said[f"{node.name} {name}"] = _on(node.name, surface(node.snapshot), len(cluster.nodes) > 1)
    twice = _on_several(cluster)
    return {
        name: {fact: value for fact, value in facts.items() if fact.split(" ")[0] not in twice}
        for name, facts in said.items()
    }


def _on_several(cluster: Cluster) -> set[str]:
    """Pods of the same name on several nodes: nothing that is said of one is about the other."""
    nodes: dict[str, set[str]] = defaultdict(set)
    for place in placements(cards_of(cluster)):
        nodes[pod_name(place.tenant.container)].add(place.on.node_name)
    return {pod for pod, own in nodes.items() if len(own) > 1}


def _on(node: str, facts: Facts, are_many: bool) -> Facts:
    """What a node says of itself is about itself alone, unless it is the only one."""
    return {f"{node}: {fact}" if are_many and "/" not in fact else fact: value for fact, value in facts.items()}


def _sums(found: Mapping[str, Any]) -> Facts:
    facts = {
        GPUS: numbers.integer(found.get("gpus")),
        HELD: gpus(found.get("allocated_gpus")),
        UNUSED: gpus(found.get("unused_gpus")),
        UNUSED_PODS: numbers.integer(found.get("unused_pods")),
    }
    if "busy_gpus" in found and not found["unknown_busy"]:
        facts[BUSY] = gpus(found["busy_gpus"])
    if "power_watts" in found and not found["unknown_power"]:
        facts[POWER] = numbers.watts(found["power_watts"])
    return facts


def _problems(problems: Iterable[Mapping[str, Any]]) -> Facts:
    said = [(_sentence(problem["text"], problem["more"]), problem["next_step"]) for problem in problems]
    return {PROBLEMS: listed(text for text, _ in said), ADVICE: listed(map(" ".join, said)), UNNAMED: ""}


def _waste(insight: Mapping[str, Any]) -> Facts:
    """A cluster's document has those who waste most."""
    return {} if insight["more_waste"] else {WASTE: _joined("\n".join(row["text"] for row in insight["waste"]))}


def _sentence(text: str, more: int) -> str:
    return f"{text} And {numbers.integer(more)} more like it." if more else text


def _tenants(cards: Iterable[Mapping[str, Any]]) -> Facts:
    """Only those of one place: elsewhere a pod is the sum of several."""
    facts: Facts = {}
    places: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for card in cards:
        for tenant in card["tenants"]:
            places[_name(tenant["container"])].append(tenant)
    for pod, own in places.items():
        if len(own) == 1:
            facts |= _tenant(pod, own[0])
    return facts


def _tenant(pod: str, tenant: Mapping[str, Any]) -> Facts:
    use, booking = tenant.get("use", {}), tenant["booking"]
    facts = of_use(pod, use)
    facts[of_pod(pod, "power")] = numbers.watts(use.get("watts"))
    facts[of_pod(pod, "memory")] = numbers.gib(booking.get("memory_bytes"))
    for what, kind in (("proven seconds", ""), ("likely seconds", "likely_")):
        least, most = (booking.get(f"{kind}{end}_busy_us", 0) / 1e6 for end in ("least", "most"))
        facts[of_pod(pod, what)] = f"{least}–{most}"
    if "holding" in tenant:
        state = tenant["holding"]["state"]
        facts[of_pod(pod, "state")] = state if state in STATES else ""
    return facts


def _name(container: Mapping[str, str]) -> str:
    return f"{container['namespace']}/{container['pod']}" if container["pod"] else container["container"]


def document(snapshot: Snapshot) -> Facts:
    return facts_of_document(json.encode(snapshot))


def facts_of_document(written: bytes) -> Facts:
    found = plain_json.loads(written)
    return {
        **_sums(found["insight"]["sums"]),
        **_problems(found["insight"]["problems"]),
        **_tenants(found["cards"]),
    }


def cluster_document(cluster: Cluster) -> Facts:
    found = plain_json.loads(cluster_json.encode(cluster))
    fresh = [node["snapshot"] for node in found["nodes"] if node["state"] == "fresh" and "snapshot" in node]
    tenants = _tenants(card for snapshot in fresh for card in snapshot["cards"])
    dark = found["insight"]["dark"]
    facts = {DARK: f"{numbers.integer(dark['nodes'])} of {numbers.integer(dark['of_nodes'])}"}
    for node in found["nodes"]:
        facts[of_node(node["name"])] = "dark" if node.get("dark") else ""
    sums = found["insight"]["sums"]
    return {**facts, **_sums(sums), **_problems(found["insight"]["problems"]), **_waste(found["insight"]), **tenants}


def snapshot_table(snapshot: Snapshot) -> Facts:
    return facts_of_table(table(snapshot, WIDTH, colour=False))


def page_without_scripts(snapshot: Snapshot) -> Facts:
    (text,) = re.findall(r"<pre[^>]*>(.*?)</pre>", page.html(snapshot, 0.0).decode(), re.DOTALL)
    return facts_of_table(markup.unescape(text), names_are_whole=False)


def without_scripts(cluster: Cluster) -> Facts:
    before, after = cluster_page.frame(cluster)
    text = markup.unescape((before + b"".join(map(cluster_page.row, cluster.nodes)) + after).decode())
    (line,) = [line for line in text.splitlines() if "all nodes " in line] or [""]
    if not line:
        return {}
    told = dark_of_text(text.partition("<pre")[0])
    for node in cluster.nodes:
        state = text.partition(f"\n{node.name} ")[2].split()
        told[of_node(node.name)] = "dark" if state and state[0] == "dark" else ""
    cells = line[line.index("all nodes") + len("all nodes") :].split()
    facts = {**told, GPUS: cells[0], HELD: cells[1].removeprefix(AT_LEAST), UNUSED: cells[3]}
    sums = cluster.insight.sums if cluster.insight else None
    return facts | ({BUSY: cells[2]} if sums and not sums.unknown_busy else {})


def top_header(cluster: Cluster) -> Facts:
    above = render(TopRows(cluster, EVERYTHING), TopState(), WIDTH, 20).lines
    problem, text = ("".join(part for part, _ in line) for line in above[:2])
    facts: Facts = {}
    wanted = {GPUS: r"([0-9,]+) GPUs?\b", HELD: r"([0-9.,]+|-) held\s", BUSY: r"([0-9.,]+) busy\b"}
    for fact, pattern in wanted.items():
        if found := re.search(pattern, text):
            facts[fact] = found[1]
    idle = re.search(r"([0-9.,]+) idle in ([0-9,]+) pods?", text)
    none = numbers.UNKNOWN if "idle not known" in text else "0"
    facts[UNUSED], facts[UNUSED_PODS] = (idle[1], idle[2]) if idle else (none, none)
    facts |= {GPUS: numbers.UNKNOWN} if "GPUs not known" in text else {}
    facts |= dark_of_text(problem) | dark_of_text(text)
    sums = cluster.insight.sums if cluster.insight else None
    return {name: value for name, value in facts.items() if name != BUSY or (sums and not sums.unknown_busy)}


def top_help(cluster: Cluster) -> Facts:
    shown = render(TopRows(cluster, EVERYTHING), press(TopState(), "?", 10), WIDTH, 400).lines
    return of_legend(" ".join(part for line in shown for part, _ in line))


def top_meters(cluster: Cluster) -> Facts:
    """Of one node, there is a meter for each GPU."""
    shown = meters(TopRows(cluster, EVERYTHING), WIDTH, 400)
    return {GPUS: str(len(shown.zones))} if len(cluster.nodes) == 1 else {}


def top_problems(cluster: Cluster) -> Facts:
    shown = render(TopRows(cluster, EVERYTHING), press(TopState(), "w", 10), WIDTH, 400).lines[1:]
    lines = ["".join(part for part, _ in line) for line in shown]
    sentences: list[str] = []
    waste: list[str] = []
    last = sentences
    for line in lines:
        if line.startswith(("  ! ", "  - ")):
            last = sentences if line.startswith("  ! ") else waste
            last.append(line[4:])
        elif line.startswith("    ") and last:
            last[-1] += f" {line.strip()}"
    node = "|".join(re.escape(node.name) for node in cluster.nodes) if len(cluster.nodes) > 1 else "(?!)"
    problems = listed(re.sub(f"^(?:{node}): ", "", sentence) for sentence in sentences)
    return {PROBLEMS: problems, WASTE: _joined("\n".join(waste))}


def top(cluster: Cluster, view: str) -> Facts:
    return facts_of_rows(printed(cluster, view), view)


def printed(cluster: Cluster, view: str) -> str:
    arguments = Namespace(view=view, output="wide", no_headers=False)
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
        print_rows(EVERYTHING, arguments, cluster)
    return out.getvalue()


def facts_of_rows(text: str, view: str) -> Facts:
    """What `podgpu top` prints."""
    table_of = columns(text)
    if view in GROUPS:
        title = GROUPS[view]
        return {fact: value for row in table_of for fact, value in of_text(f"{view} {row[title]}", row["USE"]).items()}
    if view == "nodes":
        known = [row["GPUS"] for row in table_of if row["GPUS"] != numbers.UNKNOWN]  # a node may not answer
        states = {of_node(row["NODE"]): row["STATE"].split(" ")[0] for row in table_of}
        dark = {fact: "dark" if state == "dark" else "" for fact, state in states.items()}
        cards = numbers.integer(sum(int(number.replace(",", "")) for number in known) if known else None)
        return {GPUS: cards, **dark}
    if view != "pods":
        return {}
    facts: Facts = {}
    for row in table_of:
        pod, state = row["NAMESPACE/POD"], row["STATE"].split()
        if "," in row["GPU"] or (not state and not row["HELD"].strip("-")):
            continue
        facts |= of_text(pod, row["USE"])
        facts[of_pod(pod, "power")] = row["POWER"]
        facts[of_pod(pod, "memory")] = row["MEM GiB"]
        if not state or state[0] in STATES:  # else something else is worth knowing, such as a lost card
            facts[of_pod(pod, "state")] = state[0] if state else ""
    return facts


def idle(cluster: Cluster) -> Facts:
    arguments = Namespace(output="wide", no_headers=False)
    found = idle_pods(cluster)
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
        print_table(idle_table(found, cluster, "", arguments), arguments)
    with redirect_stdout(io.StringIO()) as below:
        print_sentences((row.text for row in found.waste), arguments)
    listed_rows = columns(out.getvalue())
    total = next((row for row in listed_rows if row["NAMESPACE/POD"] == "total"), None)
    pods = [row for row in listed_rows if row is not total]
    facts = {WASTE: _joined(below.getvalue())}
    if pods or not (found.unknown or found.unread):  # else it says what could not be judged, and no number
        facts |= {UNUSED_PODS: numbers.integer(len(pods)), UNUSED: total["HELD"] if total else "0"}
    return facts | {of_pod(row["NAMESPACE/POD"], "state"): "idle" for row in pods}


def _joined(sentences: str) -> str:
    """Sentences that were wrapped, as one text."""
    return " ".join(sentences.split())


def of_rows(cluster: Cluster, by: str) -> Facts:
    written = plain_json.loads(json.rows_document(cluster, by))
    found = written["rows"]
    if by == "problems":  # one by one, of which the document lists the first and counts the others
        return _problems(json.plain(tuple(folded(msgspec.convert(found, list[Problem])))))
    if by == "idle":
        waste = _joined("\n".join(row["text"] for row in written["waste"]))
        wasted = gpus(sum(row.get("held_gpus", 0.0) for row in found))
        is_told = bool(found) or not (written["unknown"] or written["unread"])
        return {WASTE: waste, **({UNUSED_PODS: numbers.integer(len(found)), UNUSED: wasted} if is_told else {})}
    if by == "labels":  # the rows of each label are about all pods
        found = [row for row in found if row["kind"] == found[0]["kind"]]
        if not found:
            return {}
    held = total_of_known(row.get("held_gpus") for row in found)
    if held is None and any(row.get("state") != "dark" for row in found):
        held = 0.0  # nothing was given
    unused = total_of_known(row.get("unused_gpus") for row in found)
    groups = [of_row(row, by) for row in found] if by in GROUPS else []
    states = {of_node(row["name"]): row.get("state") for row in found} if by == "nodes" else {}
    dark = {fact: "dark" if state == "dark" else "" for fact, state in states.items()}
    return {**dark, **_rows_sums(found, held, unused), **{fact: told[fact] for told in groups for fact in told}}


def _rows_sums(found: Sequence[Any], held: float | None, unused: float | None) -> Facts:
    """Where there are no rows, nothing is held, unless nobody knows."""
    if not found:
        return {}
    return {HELD: gpus(held), UNUSED: gpus(unused)}


def inspect(cluster: Cluster) -> Facts:
    found = plain_json.loads(inspected.document(cluster_memory(cluster)))
    cards = [len(node["cards"]) for node in found.get("nodes", ()) if node.get("cards")]
    return {GPUS: numbers.integer(sum(cards) if cards or not cluster.nodes else None)}


def cluster_doctor(cluster: Cluster) -> Facts:
    """What its checks say, all together: every problem of the cluster is in it."""
    findings = examine_cluster(cluster)
    text = " ".join(" ".join(finding.detail.split()) for finding in findings)
    problems = cluster.insight.problems if cluster.insight else ()
    missing = [problem.kind for problem in problems if _gist(problem) not in text and problem.kind not in _OF_PARTS]
    (nodes,) = [finding for finding in findings if finding.id == "cluster.nodes"]
    return {UNNAMED: listed(missing), **dark_of_text(nodes.detail)}


def doctor(snapshot: Snapshot) -> Facts:
    """Every problem has a check that warns or fails."""
    machine = Machine(now=snapshot.taken_at)
    text = " ".join(rendering.text(snapshot, examine(snapshot, machine), WIDTH, colour=False).split())
    problems = snapshot.insight.problems if snapshot.insight else ()
    missing = [problem.kind for problem in problems if _gist(problem) not in text]
    return {UNNAMED: listed(missing)}


def _gist(problem: Problem) -> str:
    """A part is named by its check, which has the name of what it checks."""
    text = " ".join(problem.text.split())
    return text.partition(": ")[2].partition(":")[0].rstrip(".") if problem.kind.startswith("part_") else text


_OF_NODE: Mapping[str, Callable[[Snapshot], Facts]] = {
    "JSON": document,
    "native page": native_page,
    "OTLP": otlp_series,
    "dcgm page": dcgm_page,
    "snapshot": snapshot_table,
    "page without scripts": page_without_scripts,
    "doctor": doctor,
    "why": evidence,
}
