"""The counters that a report is made of."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from podgpu.catalog.row import Scope
from podgpu.cluster.store.labels import own


class Quantity(StrEnum):
    BUSY = "busy"
    ENERGY = "energy"
    HELD = "held"


class Account(StrEnum):
    """Whose a counter is. `METER` is the GPU's own counter of energy, which no agent resets."""

    CONTAINER = "container"
    UNATTRIBUTED = "unattributed"
    BOOKED = "booked"
    METER = "meter"


class Family(NamedTuple):
    """A family of counters. `unit` makes integers of its values: the books are kept in integers."""

    metric: str
    account: Account
    quantity: Quantity
    unit: int


_MICRO, _MILLI = 1_000_000, 1_000
_CONTAINER, _UNATTRIBUTED, _GPU = (one.prefix for one in (Scope.CONTAINER, Scope.UNATTRIBUTED, Scope.GPU))

FAMILIES = (
    Family(f"{_CONTAINER}allocated_seconds_total", Account.CONTAINER, Quantity.HELD, _MICRO),
    Family(f"{_CONTAINER}busy_seconds_total", Account.CONTAINER, Quantity.BUSY, _MICRO),
    Family(f"{_CONTAINER}energy_joules_total", Account.CONTAINER, Quantity.ENERGY, _MILLI),
    Family(f"{_UNATTRIBUTED}busy_seconds_total", Account.UNATTRIBUTED, Quantity.BUSY, _MICRO),
    Family(f"{_UNATTRIBUTED}energy_joules_total", Account.UNATTRIBUTED, Quantity.ENERGY, _MILLI),
    Family(f"{_GPU}booked_busy_seconds_total", Account.BOOKED, Quantity.BUSY, _MICRO),
    Family(f"{_GPU}booked_energy_joules_total", Account.BOOKED, Quantity.ENERGY, _MILLI),
    Family(f"{_GPU}energy_joules_total", Account.METER, Quantity.ENERGY, _MILLI),
)


class CardKey(NamedTuple):
    """A GPU. Demo nodes have the same UUIDs, so the node counts too, and so may two clusters' nodes have one name."""

    cluster: str
    node: str
    uuid: str


class PodKey(NamedTuple):
    cluster: str
    node: str
    namespace: str
    pod: str


class Line(NamedTuple):
    """A counter, by podgpu's own labels. Who scraped it, and from which address, does not matter."""

    card: CardKey
    account: Account
    quantity: Quantity
    mig: str = ""
    namespace: str = ""
    pod: str = ""
    container: str = ""
    reason: str = ""

    @property
    def pod_key(self) -> PodKey:
        return PodKey(self.card.cluster, self.card.node, self.namespace, self.pod)


def card_of(labels: Mapping[str, str]) -> CardKey | None:
    """Return None where the labels name no card: it is not podgpu's own series."""
    labels = own(labels)
    node, uuid = labels.get("node", ""), labels.get("uuid", "")
    return CardKey(labels.get("cluster", ""), node, uuid) if node and uuid else None


def line_of(family: Family, labels: Mapping[str, str]) -> Line | None:
    card = card_of(labels)
    if card is None:
        return None
    if family.account is Account.CONTAINER:
        labels = own(labels)
        names = (labels.get(name, "") for name in ("mig", "namespace", "pod", "container"))
        return Line(card, family.account, family.quantity, *names)
    return Line(card, family.account, family.quantity, reason=labels.get("reason", ""))
