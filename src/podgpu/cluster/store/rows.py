"""A node's series, sorted by what they are about."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct, field

from podgpu.catalog.row import Scope

# By the name without its prefix: the labels and values of each series.
Values = dict[str, list[tuple[Mapping[str, str], float]]]


class ContainerPlace(NamedTuple):
    mig: str
    namespace: str
    pod: str
    container: str


def _values() -> Values:
    return defaultdict(list)


class CardRows(Struct):
    uuid: str
    index: str
    gpu: Values = field(default_factory=_values)
    ended: Values = field(default_factory=_values)
    instances: dict[tuple[str, str], Values] = field(default_factory=lambda: defaultdict(_values))
    containers: dict[ContainerPlace, Values] = field(default_factory=lambda: defaultdict(_values))
    rest: dict[str, Values] = field(default_factory=lambda: defaultdict(_values))


class NodeRows(Struct):
    node: str
    agent: Values = field(default_factory=_values)
    cards: dict[str, CardRows] = field(default_factory=dict)

    def value(self, name: str, **wanted: str) -> float | None:
        return named(self.agent, name, **wanted)

    def add(self, metric: str, labels: Mapping[str, str], value: float) -> None:
        for scope in (Scope.GPU, Scope.MIG, Scope.CONTAINER, Scope.UNATTRIBUTED, Scope.ENDED):
            if metric.startswith(scope.prefix):
                if labels.get("uuid"):
                    self._sorted(scope, labels)[metric.removeprefix(scope.prefix)].append((labels, value))
                return
        self.agent[metric.removeprefix(Scope.AGENT.prefix)].append((labels, value))

    def _sorted(self, scope: Scope, labels: Mapping[str, str]) -> Values:
        uuid = labels["uuid"]
        card = self.cards.setdefault(uuid, CardRows(uuid, labels.get("gpu", "")))
        if scope is Scope.CONTAINER:
            return card.containers[ContainerPlace(*(labels.get(name, "") for name in ContainerPlace._fields))]
        if scope is Scope.MIG:
            return card.instances[labels.get("mig", ""), labels.get("profile", "")]
        if scope is Scope.UNATTRIBUTED:
            return card.rest[labels.get("reason", "")]
        return card.ended if scope is Scope.ENDED else card.gpu


def named(values: Values, name: str, **wanted: str) -> float | None:
    """Return the value of the series of this name that has these labels; None if there is none."""
    found = values.get(name, ())
    return next(
        (value for labels, value in found if all(labels.get(key) == one for key, one in wanted.items())), None
    )
