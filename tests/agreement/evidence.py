"""What `podgpu why` says of each pod, taken out of its text."""

import re

from podgpu.model import Snapshot
from podgpu.views.why import why
from podgpu.views.why_evidence import pod_names
from tests.agreement.certainty import BOUNDED, ESTIMATED, EXACT, of_text
from tests.agreement.facts import Facts, listed, of_pod

WIDTH = 220


def evidence(snapshot: Snapshot) -> Facts:
    facts: Facts = {}
    for pod in pod_names(snapshot):
        namespace, _, name = pod.partition("/")
        facts |= facts_of_evidence(pod, why(snapshot, namespace, name, WIDTH) or "")
    return facts


def facts_of_evidence(pod: str, written: str) -> Facts:
    """What `podgpu why` prints of a pod in one place."""
    text = " ".join(written.split())
    busy = re.findall(r" Busy (.+?) of the GPU's time(?:, (\S+ [kM]?W))?, (.+?) (?:Proven|Booked) ", text)
    if text.count(" Booked ") != 1 or len(busy) != 1:
        return {}
    shown, power, how = busy[0]
    facts = of_text(pod, shown)
    said = [word for word in how.replace(",", "").split() if word in (EXACT, BOUNDED, ESTIMATED)]
    if said:
        facts[of_pod(pod, "certainty")] = listed(dict.fromkeys([facts.get(of_pod(pod, "certainty"), said[0]), *said]))
    if proven := re.search(r" Proven between (\d+)% and (\d+)% of", text):
        facts[of_pod(pod, "proven")] = f"{proven[1]}–{proven[2]}%"
    if power:
        facts[of_pod(pod, "power")] = power
    facts[of_pod(pod, "state")] = (
        "idle"
        if " Note Idle since" in text
        else "waiting"
        if " Note Waiting for its first use" in text
        else "unknown"
        if " Note Not known whether it uses" in text
        else ""
    )
    return facts
