"""Facts as surfaces show them: the name of a fact, and its value as text. One fact has one name everywhere."""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from podgpu import numbers

Facts = dict[str, str]
# What is shown of everything together.
GPUS, HELD, BUSY, UNUSED, UNUSED_PODS, POWER = "GPUs", "held", "busy", "not used", "pods that idle", "power"
WASTE = "who wastes what"
DARK = "dark nodes"
PROBLEMS, ADVICE = "problems", "problems and what to do"


def of_pod(pod: str, what: str) -> str:
    """Such as `ml/train-0 state`."""
    return f"{pod} {what}"


def of_group(kind: str, namespace: str, name: str) -> str:
    """A namespace or a workload, by the kind of its row: `namespaces ml`, `workloads ml/train`."""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def of_node(node: str) -> str:
    """Whether it is dark."""
    return f"node {node} is"


def dark_of_text(text: str) -> Facts:
    """Read of how many nodes how many are dark, as a person would. `live` is said only where none is."""
    if found := re.search(r"([0-9,]+) of ([0-9,]+) nodes? (?:are |is )?dark", text):
        return {DARK: f"{found[1]} of {found[2]}"}
    if found := re.search(r"of ([0-9,]+) nodes? live, ([0-9,]+) dark", text):
        return {DARK: f"{found[2]} of {found[1]}"}
    if found := re.search(r"(?:all )?([0-9,]+) nodes? dark", text):
        return {DARK: f"{found[1]} of {found[1]}"}
    if found := re.search(r"([0-9,]+) nodes?, live", text):
        return {DARK: f"0 of {found[1]}"}
    return {}


def gpus(value: float | None) -> str:
    return numbers.gpu_number(value)


def listed(texts: Iterable[str]) -> str:
    """Several as one fact, in their order."""
    return " | ".join(" ".join(text.split()) for text in texts)


class Line(Struct, frozen=True):
    """What the surfaces say about one fact."""

    fact: str
    said: Mapping[str, str]

    @property
    def differs(self) -> bool:
        return len(set(self.said.values())) > 1

    def __str__(self) -> str:
        shown = f"{self.fact:<44.44} {len(self.said):>3} surfaces"
        if not self.differs:
            return f"{shown}   agree: {next(iter(self.said.values()))[:60]}"
        by_value: dict[str, list[str]] = {}
        for surface, value in self.said.items():
            by_value.setdefault(value, []).append(surface)
        told = "; ".join(f"{', '.join(surfaces)}: {value}" for value, surfaces in by_value.items())
        return f"{shown}  DIFFER: {told}"


def compared(said: Mapping[str, Facts]) -> list[Line]:
    """`said` is what each surface says."""
    names = dict.fromkeys(name for facts in said.values() for name in facts)
    return [Line(name, {surface: facts[name] for surface, facts in said.items() if name in facts}) for name in names]
