"""The counters that a report is made of."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from podgpu.catalog.row import Scope
from podgpu.cluster.store.response import Point, own_labels


class Measure(StrEnum):
    __hash__ = str.__hash__  # that of an enum takes longer, and a report looks up millions of counters

    BUSY = "busy"
    ENERGY = "energy"
    HELD = "held"
    UNSIZED = "unsized"  # time for which a share of unknown size was held
    BUSY_LEAST = "busy_least"
    BUSY_MOST = "busy_most"
    BUSY_LIKELY_LEAST = "busy_likely_least"
    BUSY_LIKELY_MOST = "busy_likely_most"


class CounterScope(StrEnum):
    """What a counter describes. `METER` is the GPU's own counter of energy, which no agent resets."""

    __hash__ = str.__hash__  # as above

    CONTAINER = "container"
    UNATTRIBUTED = "unattributed"
    BOOKED = "booked"
    METER = "meter"


class CounterFamily(NamedTuple):
    """A family of counters. `unit` makes integers of its values: the books are kept in integers.

    One with both ends of a range has two measures, of the least and of the `most`, which the label `end` tells apart.
    """

    metric: str
    scope: CounterScope
    measure: Measure
    unit: int
    most: Measure | None = None
    end: str = ""


_MICRO, _MILLI = 1_000_000, 1_000
_CONTAINER, _UNATTRIBUTED, _GPU = (scope.prefix for scope in (Scope.CONTAINER, Scope.UNATTRIBUTED, Scope.GPU))

FAMILIES = (
    CounterFamily(f"{_CONTAINER}allocated_seconds_total", CounterScope.CONTAINER, Measure.HELD, _MICRO),
    CounterFamily(f"{_CONTAINER}unknown_share_seconds_total", CounterScope.CONTAINER, Measure.UNSIZED, _MICRO),
    CounterFamily(f"{_CONTAINER}busy_seconds_total", CounterScope.CONTAINER, Measure.BUSY, _MICRO),
    CounterFamily(f"{_CONTAINER}energy_joules_total", CounterScope.CONTAINER, Measure.ENERGY, _MILLI),
    CounterFamily(f"{_UNATTRIBUTED}busy_seconds_total", CounterScope.UNATTRIBUTED, Measure.BUSY, _MICRO),
    CounterFamily(f"{_UNATTRIBUTED}energy_joules_total", CounterScope.UNATTRIBUTED, Measure.ENERGY, _MILLI),
    CounterFamily(f"{_GPU}booked_busy_seconds_total", CounterScope.BOOKED, Measure.BUSY, _MICRO),
    CounterFamily(f"{_GPU}booked_energy_joules_total", CounterScope.BOOKED, Measure.ENERGY, _MILLI),
    CounterFamily(f"{_GPU}energy_joules_total", CounterScope.METER, Measure.ENERGY, _MILLI),
)
# What a container used at least and at most, and likely so, for a bill by use.
_PROVEN, _LIKELY = (Measure.BUSY_LEAST, Measure.BUSY_MOST), (Measure.BUSY_LIKELY_LEAST, Measure.BUSY_LIKELY_MOST)
RANGE_FAMILIES = tuple(
    CounterFamily(f"{prefix}busy_{kind}_seconds_total", scope, least, _MICRO, most, end)
    for prefix, scope, kind, (least, most), end in (
        (_CONTAINER, CounterScope.CONTAINER, "bound", _PROVEN, "bound"),
        (_CONTAINER, CounterScope.CONTAINER, "likely", _LIKELY, "end"),
        (_UNATTRIBUTED, CounterScope.UNATTRIBUTED, "bound", _PROVEN, "bound"),
    )
)


class CardKey(NamedTuple):
    """A GPU. Demo nodes have the same UUIDs, and nodes of two clusters may have the same name."""

    cluster: str
    node: str
    uuid: str


NodeKey = tuple[str, str]  # its cluster, and its name


class PodKey(NamedTuple):
    cluster: str
    node: str
    namespace: str
    pod: str


class CounterKey(NamedTuple):
    """A counter, by podgpu's own labels, whoever scraped it from which address."""

    card: CardKey
    scope: CounterScope
    measure: Measure
    mig: str = ""
    namespace: str = ""
    pod: str = ""
    container: str = ""
    reason: str = ""

    @property
    def node(self) -> str:
        return self.card.node

    @property
    def container_key(self) -> tuple[str, ...]:
        """A container on its card."""
        return self.mig, self.namespace, self.pod, self.container

    @property
    def pod_key(self) -> PodKey:
        return PodKey(self.card.cluster, self.card.node, self.namespace, self.pod)


CardValues = dict[CardKey, dict[CounterKey, int]]


def card_of(labels: Mapping[str, str]) -> CardKey | None:
    """Return None where the labels name no card: it is not podgpu's own series."""
    labels = own_labels(labels)
    node, uuid = labels.get("node", ""), labels.get("uuid", "")
    return CardKey(labels.get("cluster", ""), node, uuid) if node and uuid else None


def card_models(infos: Iterable[Point]) -> dict[CardKey, str]:
    """Return the model of each card. A card that was lost for a while may also have a series without a model."""
    models = sorted((point.labels.get("model", ""), card) for point in infos if (card := card_of(point.labels)))
    return {card: model for model, card in models}


def counter_of(family: CounterFamily, labels: Mapping[str, str]) -> CounterKey | None:
    labels = own_labels(labels)
    card = card_of(labels)
    if card is None:
        return None
    get = labels.get
    measure: Measure | None = family.measure
    if family.most:
        measure = {"least": family.measure, "most": family.most}.get(get(family.end, ""))
    if measure is None:
        return None
    if family.scope is CounterScope.CONTAINER:
        names = get("mig", ""), get("namespace", ""), get("pod", ""), get("container", "")
        return CounterKey(card, family.scope, measure, *names)
    return CounterKey(card, family.scope, measure, reason=get("reason", ""))
