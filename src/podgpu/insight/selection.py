"""Which pods are meant: of one namespace, or with some labels."""

import re
from collections.abc import Callable, Mapping

from msgspec import Struct

from podgpu.errors import UserError
from podgpu.insight.tenants import NodeCard, Placement, placements
from podgpu.model import PendingPod

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]

_FORM = "write it like team=search, team!=search, 'team in (a, b)', team or !team, joined by commas"
_PARTS = re.compile(r",(?![^(]*\))")
_TERM = re.compile(
    r"(?P<not>!)?(?P<key>[A-Za-z0-9._/-]+)\s*"
    r"(?:(?P<op>==|=|!=)\s*(?P<value>[A-Za-z0-9._-]*)|\s(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?"
)


class PodSelection(Struct, frozen=True):
    """An empty namespace or node means all of them."""

    namespace: str = ""
    node: str = ""
    tests: tuple[Test, ...] = ()

    def takes(self, place: Placement) -> bool:
        if self.namespace and place.tenant.container.namespace != self.namespace:
            return False
        if self.node and place.on.node_name != self.node:
            return False
        labels = place.pod.labels if place.pod else {}
        return all(test(labels) for test in self.tests)

    def takes_node(self, name: str) -> bool:
        """Whether the whole node is selected, with whatever is on it."""
        return self.node in ("", name) and not self.namespace and not self.tests

    def takes_card(self, on: NodeCard) -> bool:
        """Whether a tenant of the card is selected, or the card's whole node."""
        return self.takes_node(on.node_name) or any(self.takes(place) for place in placements([on]))

    def takes_pending(self, pod: PendingPod) -> bool:
        """The labels of a pending pod are not known."""
        return self.namespace in ("", pod.namespace) and not self.tests and not self.node


EVERYTHING = PodSelection()


def label_tests(selector: str) -> tuple[Test, ...]:
    """Read a label selector as kubectl takes it."""
    return tuple(_test(part.strip()) for part in _PARTS.split(selector) if part.strip())


def _test(text: str) -> Test:
    found = _TERM.fullmatch(text)
    if not found or (found["not"] and (found["op"] or found["set"])):
        raise UserError(f"{text!r} is not a label selector; {_FORM}")
    key, value = found["key"], found["value"]
    if found["set"]:
        values = {text.strip() for text in found["values"].split(",")}
        return lambda labels: (labels.get(key) in values) == (found["set"] == "in")
    if found["op"] == "!=":
        return lambda labels: labels.get(key) != value
    if found["op"]:
        return lambda labels: labels.get(key) == value
    return lambda labels: (key in labels) != bool(found["not"])
