"""A page becomes cards: what each reads, its MIG instances, and who the page says holds it.

A value may stand on several rows: the card's own, one for each pod that shares it, one for each of its MIG instances.
The card's own row is believed first, then those of pods as far as they agree, then what DCGM copies from the card to
its instances.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from podgpu.model import Allocation, Device, Gpu, Instance, MigInstance, Reading
from podgpu.sources.dcgm import labels as told
from podgpu.sources.dcgm.labels import Place
from podgpu.sources.dcgm.names import MEANINGS, Meaning
from podgpu.sources.dcgm.parse import Row, parse

MOST_CARDS = 1024
RESOURCE = "nvidia.com/gpu"
# Of a GPU instance a page tells no compute instances. This one is always there, and nearly always the only one.
COMPUTE_INSTANCE = 0
# Where 0 says that there is none: no XID yet, no sensor in the memory.
ZERO_IS_NONE = frozenset({("xid_last_code", ()), ("temperature_celsius", ("memory",))})
_PARTS_OF_MEMORY = ("memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes")
_MEMORY = "memory_total_bytes"

_Key = tuple[str, tuple[str, ...]]


class Card(Struct, frozen=True, kw_only=True):
    device: Device
    allocations: tuple[Allocation, ...] = ()


class Found(Struct, frozen=True, kw_only=True):
    cards: tuple[Card, ...] = ()
    driver_version: str = ""
    nvml_version: str = ""
    errors: Counter[str] = field(default_factory=Counter)


def read(page: bytes, *, at: float = 0.0, seconds: float = 0.0) -> Found:
    """`at` and `seconds` are when the page was there, and how long it took to come."""
    parsed = parse(page, MEANINGS)
    errors = Counter(
        {f"{reason}_sample": count for reason, count in parsed.skipped.items() if reason != "blank"}
    )
    drafts = _drafts(parsed.rows, errors)
    cards = [draft.card(order, at, seconds) for order, draft in enumerate(drafts)]
    facts = [labels for draft in drafts for labels in draft.labels]
    return Found(
        cards=tuple(sorted(cards, key=lambda card: card.device.gpu.index)),
        driver_version=_first(facts, "DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"),
        nvml_version=_first(facts, "DCGM_FI_NVML_VERSION"),
        errors=+errors,
    )


def _drafts(rows: Iterable[Row], errors: Counter[str]) -> "list[_Draft]":
    rows = [row for row in rows if row.samples]
    relabelled = told.is_relabelled(row.labels for row in rows)
    drafts: dict[str, _Draft] = {}
    for row in rows:
        place = told.place(row.labels, relabelled=relabelled)
        if place is None or (place.uuid not in drafts and len(drafts) >= MOST_CARDS):
            continue
        drafts.setdefault(place.uuid, _Draft(place.uuid, errors)).add(place, row)
    return list(drafts.values())


class _Values:
    """Values by what they are of. Where two rows contradict each other, neither is believed."""

    def __init__(self) -> None:
        self._found: dict[_Key, tuple[str, float | None]] = {}
        self.contradictions = 0

    def add(self, key: _Key, name: str, value: float) -> None:
        before = self._found.setdefault(key, (name, value))
        # Another name for the same thing is only another generation's, and no second opinion.
        if before[0] == name and before[1] not in (value, None):
            self._found[key] = (name, None)
            self.contradictions += 1

    def add_first(self, key: _Key, name: str, value: float) -> None:
        self._found.setdefault(key, (name, value))

    def known(self) -> dict[_Key, float]:
        return {key: value for key, (_, value) in self._found.items() if value is not None}


class _Tiers:
    """The values of one card or instance, from rows of its own and from rows of those who share it."""

    def __init__(self) -> None:
        self.own = _Values()
        self.shared = _Values()
        self.copied = _Values()

    def of(self, place: Place) -> _Values:
        return self.shared if place.is_shared_out else self.own

    def readings(self) -> tuple[Reading, ...]:
        values = self.copied.known() | self.shared.known() | self.own.known()
        parts = [values.get((name, ())) for name in _PARTS_OF_MEMORY]
        if (_MEMORY, ()) not in values and None not in parts:
            values[_MEMORY, ()] = sum(part for part in parts if part is not None)
        return tuple(Reading(metric, value, labels) for (metric, labels), value in sorted(values.items()))

    @property
    def contradictions(self) -> int:
        return self.own.contradictions + self.shared.contradictions


class _Draft:
    """One card while its rows come in."""

    def __init__(self, uuid: str, errors: Counter[str]) -> None:
        self.labels: list[told.Labels] = []
        self._uuid = uuid
        self._errors = errors
        self._card = _Tiers()
        self._instances: dict[int, _Tiers] = {}
        self._profiles: dict[int, str] = {}
        self._places: dict[Place, None] = {}  # in their order, each once

    def add(self, place: Place, row: Row) -> None:
        self.labels.append(row.labels)
        self._places[place] = None
        if place.instance is not None:
            self._profiles.setdefault(place.instance, told.fact(row.labels, "GPU_I_PROFILE"))
        for name, value in row.samples:
            for meaning in MEANINGS[name]:
                self._take(place, row.labels, name, meaning, value)

    def _take(self, place: Place, labels: told.Labels, name: str, meaning: Meaning, value: float) -> None:
        own = tuple(told.fact(labels, label) for label in meaning.row.own_labels)
        base = meaning.base(value)
        if base is None:
            self._errors["implausible_value"] += 1
        key = (meaning.row.name, (*meaning.row.label_values, *own))
        if base is None or not all(own) or (not base and key in ZERO_IS_NONE):
            return
        if place.instance is None:
            self._card.of(place).add(key, name, base)
        elif meaning.row.mig:
            self._instances.setdefault(place.instance, _Tiers()).of(place).add(key, name, base)
        elif meaning.is_card_wide:
            self._card.copied.add_first(key, name, base)

    def card(self, order: int, at: float, seconds: float) -> Card:
        for tiers in (self._card, *self._instances.values()):
            self._errors["contradiction"] += tiers.contradictions
        device = Device(
            gpu=self._gpu(order),
            at=at,
            readings=self._card.readings(),
            instances=tuple(self._instance(number) for number in sorted(self._profiles)),
            processes_known=False,
            seconds=seconds,
        )
        return Card(device=device, allocations=tuple(self._allocations()))

    def _gpu(self, order: int) -> Gpu:
        numbers = (told.index(labels) for labels in self.labels)
        minors = (told.minor(labels) for labels in self.labels)
        return Gpu(
            uuid=self._uuid,
            index=next((number for number in numbers if number is not None), order),
            minor=next((number for number in minors if number is not None), None),
            model=_first(self.labels, "modelName", "model_name"),
            pci_bus_id=_first(self.labels, "pci_bus_id"),
            vbios=_first(self.labels, "DCGM_FI_DEV_VBIOS_VERSION"),
            mig_enabled=bool(self._profiles),
        )

    def _instance(self, number: int) -> Instance:
        mig = MigInstance(
            uuid=self._instance_name(number),
            gpu_instance_id=number,
            compute_instance_id=COMPUTE_INSTANCE,
            profile=self._profiles[number],
        )
        tiers = self._instances.get(number)
        return Instance(mig=mig, readings=tiers.readings() if tiers else ())

    def _instance_name(self, number: int) -> str:
        """A page tells no UUID of an instance. By its place on the card drivers before R470 named it."""
        return f"MIG-{self._uuid}/{number}/{COMPUTE_INSTANCE}"

    def _allocations(self) -> Iterator[Allocation]:
        """In the words of the device plugin. On a card with instances, a row of the card tells nobody's part of it."""
        for place in self._places:
            is_vague = place.instance is None and (place.is_divided or bool(self._profiles))
            if place.tenant is None or is_vague:
                continue
            device = self._uuid if place.instance is None else self._instance_name(place.instance)
            yield Allocation(
                namespace=place.tenant.namespace,
                pod=place.tenant.pod,
                container=place.tenant.container,
                resource=RESOURCE,
                device_id=device if place.replica is None else f"{device}::{place.replica}",
            )


def _first(rows: Iterable[told.Labels], *names: str) -> str:
    return next((found for labels in rows if (found := told.fact(labels, *names))), "")
