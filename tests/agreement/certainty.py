"""How sure busy time is, as surfaces say it, and the ranges that groups must have."""

import json as plain_json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from podgpu import numbers
from podgpu.model import Cluster
from podgpu.views.cluster import json as cluster_json
from podgpu.views.why_sentences import CERTAINTIES
from tests.agreement.facts import Facts, listed, of_group, of_pod
from tools.docs import PAGES

EXACT, BOUNDED, ESTIMATED = "exact", "bounded", "estimated"
WORDS = "words for certainty"
DIGITS = 9


def of_text(name: str, shown: str) -> Facts:
    """What a number with its range says. Without a range it may be exact, or the range too narrow to be shown."""
    facts = {of_pod(name, "use"): shown}
    if "(" in shown:
        facts[of_pod(name, "certainty")] = ESTIMATED if "~" in shown else BOUNDED
    return facts


def of_use(name: str, use: Mapping[str, Any]) -> Facts:
    """What a document says. Of an estimate the likely range is shown, and what is proven stands beside it."""
    certainty, ratio = use.get("certainty", ""), use.get("ratio")
    kind = "likely_" if certainty == ESTIMATED and "likely_least" in use else ""
    shown = numbers.use(ratio, use.get(f"{kind}least"), use.get(f"{kind}most"), certainty)
    facts = {of_pod(name, "use"): shown}
    if certainty:
        facts[of_pod(name, "certainty")] = certainty
    if kind and (proven := numbers.bounds(use.get("least"), use.get("most"))):
        facts[of_pod(name, "proven")] = f"{proven}%"
    return facts


def of_legend(text: str) -> Facts:
    """What a range without the mark means, and one with it, where a surface explains them."""
    found = re.findall(r"\((~?)12–34\):? (?:is )?(\w+)", " ".join(text.split()))
    return {f"({mark}12–34)": word for mark, word in found}


def words() -> dict[str, Facts]:
    """The words for how sure a number is, as the docs and the page define them."""
    docs = {path: render() for path, render in PAGES}
    (label,) = re.findall(r"`podgpu_container_info`.* how sure its busy time is \((.+?)\)", docs["docs/metrics.md"])
    fields = re.findall(r"^\| `certainty` \|.*$", docs["docs/snapshot.md"], re.MULTILINE)
    return {
        "docs/metrics.md": {WORDS: _listed(set(re.findall(r"\w+", label)) - {"or"})},
        **{
            f"docs/snapshot.md, field {number}": {WORDS: _listed(set(re.findall(r"`(\w+)`", field)) - {"certainty"})}
            for number, field in enumerate(fields, 1)
        },
        "page": {WORDS: _listed(CERTAINTIES)},
        "what is compared": {WORDS: _listed((EXACT, BOUNDED, ESTIMATED))},
    }


def _listed(found: Iterable[str]) -> str:
    return listed(sorted(found))


def of_row(row: Mapping[str, Any], kind: str) -> Facts:
    """A row of a namespace or a workload, as a document has it."""
    return of_use(of_group(kind, row["namespace"], row["name"]), row["use"])


class Found(Struct, frozen=True):
    """What a group had of one card, or of several: the least, the most and the likely range of the sum."""

    ratio: float
    proven: tuple[float, float]
    likely: tuple[float, float]
    certainty: str


def recomputed(cluster: Cluster) -> Facts:
    """The ranges of namespaces and workloads, made from the readings of tenants in the cluster's document alone."""
    by_group: dict[str, list[Found | None]] = defaultdict(list)
    for card in _cards(plain_json.loads(cluster_json.encode(cluster))):
        members: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for tenant in card["tenants"]:
            if tenant.get("use", {}).get("ratio") is not None:
                for group in _groups(tenant):
                    members[group].append(tenant)
        for group, own in members.items():
            by_group[group].append(together(card, own))
    facts: Facts = {}
    for group, parts in by_group.items():
        known = [part for part in parts if part]
        if len(known) == len(parts):
            facts |= of_use(group, _mean(known))
    return facts


def _cards(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for node in document["nodes"]:
        if node["state"] == "fresh" and "snapshot" in node:
            yield from (card for card in node["snapshot"]["cards"] if "fault" not in card)


def _groups(tenant: Mapping[str, Any]) -> Iterator[str]:
    namespace = tenant["container"]["namespace"]
    if namespace:
        yield of_group("namespaces", "", namespace)
        if "workload" in tenant:
            yield of_group("workloads", namespace, tenant["workload"]["name"])


def together(card: Mapping[str, Any], own: Sequence[Mapping[str, Any]]) -> Found | None:
    """What they had at least is also the card's busy time less what all others can have had at most."""
    busy = card.get("use", {}).get("ratio")
    uses = [tenant["use"] for tenant in own]
    ratio, doubt = sum(use["ratio"] for use in uses), _weakest(use["certainty"] for use in uses)
    if all("least" not in use for use in uses):
        return Found(ratio, (ratio, ratio), (ratio, ratio), doubt)
    if busy is None:
        return None
    others = [tenant.get("use", {}) for tenant in card["tenants"] if not any(tenant is member for member in own)]
    others += [rest["use"] for rest in card["rest"] if rest.get("use", {}).get("ratio") is not None]
    others += [{}] * bool(card["ended"])  # what they had of the minute is not known

    def sums(kind: str) -> tuple[float, float]:
        low, high = (sum(_end(use, f"{kind}{end}", end, busy) for use in uses) for end in ("least", "most"))
        least, most = (sum(_end(use, f"{kind}{end}", end, busy) for use in others) for end in ("least", "most"))
        return min(ratio, max(low, busy - most)), max(ratio, min(high, busy - least))

    proven, likely = sums(""), sums("likely_")
    if round(proven[1] - proven[0], DIGITS) <= 0:
        return Found(ratio, (ratio, ratio), (ratio, ratio), EXACT)
    inside = (max(proven[0], likely[0]), min(proven[1], likely[1]))
    return Found(ratio, proven, inside if doubt == ESTIMATED else proven, ESTIMATED if doubt == ESTIMATED else BOUNDED)


def _end(use: Mapping[str, Any], name: str, end: str, busy: float) -> float:
    """One end of a range. What is not known may be anything; what is not in doubt is the number itself."""
    if use.get("ratio") is None:
        return busy if end == "most" else 0.0
    found: float = use.get(name, use.get(end, use["ratio"]))
    return found


def _mean(parts: Sequence[Found]) -> dict[str, Any]:
    """All cards together, as a document would have it."""

    def mean(values: Iterable[float]) -> float:
        return round(sum(values) / len(parts), DIGITS)

    doubt = _weakest(part.certainty for part in parts)
    use: dict[str, Any] = {"ratio": mean(part.ratio for part in parts), "certainty": doubt}
    least, most = (mean(part.proven[end] for part in parts) for end in (0, 1))
    if least < most:
        use |= {"least": least, "most": most}
        if doubt == ESTIMATED:
            low, high = (mean(part.likely[end] for part in parts) for end in (0, 1))
            use |= {"likely_least": low, "likely_most": high}
    return use


def _weakest(certainties: Iterable[str]) -> str:
    found = set(certainties)
    return next((word for word in (ESTIMATED, BOUNDED) if word in found), EXACT)
