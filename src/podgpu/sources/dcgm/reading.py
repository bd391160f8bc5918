"""A page becomes cards: what each reads, its MIG instances, and who the page says holds it.

A value may stand on several rows: the card's own, one for each pod that shares it, one for each of its MIG instances.
The card's own row is believed first, then those of pods as far as they agree, then what DCGM copies from the card to
its instances.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from podgpu.model import Ability, Allocation, Device, Gpu, Instance, MigInstance, Reading
from podgpu.sources.dcgm import labels as told
from podgpu.sources.dcgm.labels import Place
from podgpu.sources.dcgm.names import MEANINGS, Meaning
from podgpu.sources.dcgm.parse import Row, parse

MOST_CARDS = 64
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
    minors = _minors(drafts)
    cards = [draft.card(order, minors.get(draft.uuid), at, seconds) for order, draft in enumerate(drafts)]
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
    left_out: set[str] = set()
    for row in rows:
        place = told.place(row.labels, row.last, relabelled=relabelled)
        if place is None:
            continue
        if place.uuid not in drafts and len(drafts) >= MOST_CARDS:
            left_out.add(place.uuid)
        else:
            drafts.setdefault(place.uuid, _Draft(place.uuid, errors)).add(place, row)
    errors["too_many_cards"] += len(left_out)
    return list(drafts.values())


def _minors(drafts: "list[_Draft]") -> dict[str, int]:
    """A pod may bear a label of that name. The exporter's is on every row, and no two cards have one number."""
    minors: dict[str, int] = {}
    for draft in drafts:
        numbers = {told.minor(labels) for labels in draft.labels}
        number = numbers.pop() if len(numbers) == 1 else None
        if number is None:
            return {}
        minors[draft.uuid] = number
    return minors if len(set(minors.values())) == len(minors) else {}


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
        self.uuid = uuid
        self.labels: list[told.Labels] = []
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

    def card(self, order: int, minor: int | None, at: float, seconds: float) -> Card:
        for tiers in (self._card, *self._instances.values()):
            self._errors["contradiction"] += tiers.contradictions
        device = Device(
            gpu=self._gpu(order, minor),
            at=at,
            readings=self._card.readings(),
            instances=tuple(self._instance(number) for number in sorted(self._profiles)),
            ability=Ability(),
            seconds=seconds,
        )
        return Card(device=device, allocations=tuple(self._allocations()))

    def _gpu(self, order: int, minor: int | None) -> Gpu:
        numbers = (told.index(labels) for labels in self.labels)
        return Gpu(
            uuid=self.uuid,
            index=next((number for number in numbers if number is not None), order),
            minor=minor,
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
        return f"MIG-{self.uuid}/{number}/{COMPUTE_INSTANCE}"

    def _allocations(self) -> Iterator[Allocation]:
        """On a card with instances, a row of the card tells nobody's part of it."""
        held: dict[int | None, list[Place]] = {}
        for place in self._places:
            if place.tenant is not None:
                held.setdefault(place.instance, []).append(place)
        for instance, places in held.items():
            is_vague = instance is None and (
                bool(self._profiles) or _all_say(place.is_divided for place in places)
            )
            if not is_vague:
                device = self.uuid if instance is None else self._instance_name(instance)
                yield from _allocations(device, places)


def _allocations(device: str, places: list[Place]) -> Iterable[Allocation]:
    """In the words of the device plugin, each once."""
    is_replicated = _all_say(place.replica is not None for place in places)
    return dict.fromkeys(
        Allocation(
            namespace=place.tenant.namespace,
            pod=place.tenant.pod,
            container=place.tenant.container,
            resource=RESOURCE,
            device_id=f"{device}::{place.replica}" if is_replicated else device,
        )
        for place in places
        if place.tenant is not None
    )


def _all_say(signs: Iterable[bool]) -> bool:
    """Whether to believe a label that a pod may as well have given itself: one pod alone is not believed."""
    said = list(signs)
    return len(said) > 1 and all(said)


def _first(rows: Iterable[told.Labels], *names: str) -> str:
    return next((found for labels in rows if (found := told.fact(labels, *names))), "")
