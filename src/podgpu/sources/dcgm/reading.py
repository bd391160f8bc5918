"""Turns a page into cards with their readings, their MIG instances and the containers that the page names.

A value may appear on several rows: the card's own, those of the pods that share it, and those of its MIG instances.
The card's own row comes first, then the rows of pods if they agree, then the values that DCGM copies from the card to
its instances.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec import Struct, field

from podgpu.catalog import device_rows
from podgpu.catalog.row import FLAG, Call, Metric, Unit
from podgpu.model import UNKNOWN, Ability, Allocation, Device, Gpu, Instance, MigInstance, Reading
from podgpu.sources.dcgm import labels as row_labels
from podgpu.sources.dcgm.labels import ClaimedMig, PagePlace
from podgpu.sources.dcgm.parse import PageRow, parse

MOST_CARDS = 64
RESOURCE = "nvidia.com/gpu"
# A page does not name compute instances. Every GPU instance has this one, and it is nearly always the only one.
COMPUTE_INSTANCE = 0
# Here 0 means that there is none: no XID yet, no sensor in the memory.
ZERO_IS_NONE = frozenset({("xid_last_code", ()), ("temperature_celsius", ("memory",))})
_PARTS_OF_MEMORY = ("memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes")
_MEMORY = "memory_total_bytes"

# How every name of dcgm-exporter begins, known or not: a row that names a GPU shows that there is one.
PREFIXES = ("DCGM_", "dcgm_")
_CLOCK_MASKS = ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")

_Key = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Meaning:
    """The value is one of `row`, in `unit`. With `bit` it is a mask, and the row says whether that bit is set."""

    row: Metric
    unit: Unit
    bit: int | None = None

    def base(self, value: float) -> float | None:
        """Return the value in base units, or None if no card can have it."""
        if self.bit is not None:
            return float(bool(int(value) & self.bit)) if value >= 0 else None
        base = self.unit.base(value)
        return base if abs(base) <= self._ceiling else None

    @property
    def _ceiling(self) -> float:
        """The larger of the two ceilings: a profiled ratio may read 1.003."""
        own = self.row.read.unit.ceiling if self.row.read else 0.0
        return max(own, self.unit.ceiling)

    @property
    def is_card_wide(self) -> bool:
        """Whether a value on the row of a MIG instance describes the whole card, such as its clocks, power and heat.

        Utilization does not: the hardware does not report it for a card in MIG mode, whatever the row says.
        """
        return not self.row.mig and not self.row.name.endswith("utilization_ratio")


def _aliases() -> dict[str, tuple[Meaning, ...]]:
    """Leave out names that stand for the sum of several rows, such as both directions of NVLink."""
    found: dict[str, set[Meaning]] = defaultdict(set)
    for row in device_rows():
        for alias in (row.dcgm, row.dcgm49, row.dcgm1x, *row.dcgm_also):
            if alias:
                found[alias.name].add(Meaning(row, alias.unit))
    return {name: tuple(meanings) for name, meanings in found.items() if len(meanings) == 1}


def _masks() -> dict[str, tuple[Meaning, ...]]:
    """Masks do not fit the catalog: each of their bits is a row."""
    bits = tuple(
        Meaning(row, FLAG, row.read.bit)
        for row in device_rows()
        if isinstance(row.read, Call) and row.read.function == "CurrentClocksEventReasons"
    )
    return dict.fromkeys(_CLOCK_MASKS, bits)


MEANINGS: dict[str, tuple[Meaning, ...]] = _aliases() | _masks()


class PageCard(Struct, frozen=True, kw_only=True):
    device: Device
    allocations: tuple[Allocation, ...] = ()


class PageContents(Struct, frozen=True, kw_only=True):
    """`node` is the host that the page names; empty if it names none."""

    cards: tuple[PageCard, ...] = ()
    node: str = ""
    driver_version: str = ""
    nvml_version: str = ""
    errors: Counter[str] = field(default_factory=Counter)


def read(page: bytes, *, at: float = 0.0, seconds: float = 0.0) -> PageContents:
    """`at` is when the page had arrived, `seconds` how long that took."""
    parsed = parse(page, MEANINGS, PREFIXES)
    errors = Counter({f"{reason}_sample": count for reason, count in parsed.skipped.items() if reason != "blank"})
    builders = _card_builders(parsed.rows, errors)
    minors = _minors(builders)
    cards = [builder.card(order, minors.get(builder.uuid), at, seconds) for order, builder in enumerate(builders)]
    facts = [labels for builder in builders for labels in (*builder.labels, *builder.links)]
    return PageContents(
        cards=tuple(sorted(cards, key=lambda card: card.device.gpu.index)),
        node=_first(facts, "Hostname", "hostname"),
        driver_version=_first(facts, "DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"),
        nvml_version=_first(facts, "DCGM_FI_NVML_VERSION"),
        errors=+errors,
    )


def _card_builders(rows: list[PageRow], errors: Counter[str]) -> "list[_CardBuilder]":
    relabelled = row_labels.is_relabelled(row.labels for row in rows)
    builders: dict[str, _CardBuilder] = {}
    left_out: set[str] = set()
    for row in rows:
        place = row_labels.place(row.labels, row.last, relabelled=relabelled)
        if place is None:
            continue
        if place.uuid not in builders and len(builders) >= MOST_CARDS:
            left_out.add(place.uuid)
        else:
            builders.setdefault(place.uuid, _CardBuilder(place.uuid, errors)).add(place, row)
    errors["too_many_cards"] += len(left_out)
    return list(builders.values())


def _minors(builders: "list[_CardBuilder]") -> dict[str, int]:
    """Return the minor numbers, unless they may come from a pod's label of that name.

    The exporter puts the label on every row, and no two cards share a number.
    """
    minors: dict[str, int] = {}
    for builder in builders:
        numbers = {row_labels.minor(labels) for labels in builder.labels}
        number = numbers.pop() if len(numbers) == 1 else None
        if number is None:
            return {}
        minors[builder.uuid] = number
    return minors if len(set(minors.values())) == len(minors) else {}


class _Values:
    """Values by metric and labels. If two rows contradict each other, neither counts."""

    def __init__(self) -> None:
        self._found: dict[_Key, tuple[str, float | None]] = {}

    def add(self, key: _Key, name: str, value: float) -> bool:
        """Return whether the value contradicts the one that was known."""
        before = self._found.setdefault(key, (name, value))
        # Another name for the same metric comes from another version. It is no contradiction.
        contradicts = before[0] == name and before[1] not in (value, None)
        if contradicts:
            self._found[key] = (name, None)
        return contradicts

    def known(self) -> dict[_Key, float]:
        return {key: value for key, (_, value) in self._found.items() if value is not None}


class _Tiers:
    """The values of a card or instance, from its own rows, from the rows of its pods, and copied ones."""

    def __init__(self) -> None:
        self.own = _Values()
        self.shared = _Values()
        self.copied: dict[_Key, float] = {}

    def of(self, place: PagePlace) -> _Values:
        return self.shared if place.is_shared_out else self.own

    def readings(self) -> tuple[Reading, ...]:
        values = self.copied | self.shared.known() | self.own.known()
        parts = [values.get((name, ())) for name in _PARTS_OF_MEMORY]
        if (_MEMORY, ()) not in values and None not in parts:
            values[_MEMORY, ()] = sum(part for part in parts if part is not None)
        return tuple(Reading(metric, value, labels) for (metric, labels), value in sorted(values.items()))


class _CardBuilder:
    """Collects the rows of a card."""

    def __init__(self, uuid: str, errors: Counter[str]) -> None:
        self.uuid = uuid
        self.labels: list[row_labels.Labels] = []
        self.links: list[row_labels.Labels] = []  # rows of single links, which have few labels of their card
        self._errors = errors
        self._card = _Tiers()
        self._instances: dict[int, _Tiers] = {}
        self._profiles: dict[int, str] = {}
        self._places: dict[PagePlace, None] = {}  # an ordered set

    def add(self, place: PagePlace, row: PageRow) -> None:
        if place.is_link:
            self.links.append(row.labels)
            return
        self.labels.append(row.labels)
        self._places[place] = None
        if place.instance is not None:
            self._profiles.setdefault(place.instance, row_labels.fact(row.labels, "GPU_I_PROFILE"))
        for name, value in row.samples:
            for meaning in MEANINGS[name]:
                self._take(place, row.labels, name, meaning, value)

    def _take(self, place: PagePlace, labels: row_labels.Labels, name: str, meaning: Meaning, value: float) -> None:
        values = tuple(row_labels.fact(labels, label) for label in meaning.row.own_labels)
        base = meaning.base(value)
        if base is None:
            self._errors["implausible_value"] += 1
        key = (meaning.row.name, (*meaning.row.label_values, *values))
        if base is None or not all(values) or (not base and key in ZERO_IS_NONE):
            return
        if place.instance is None or meaning.row.mig:
            tiers = self._card if place.instance is None else self._instances.setdefault(place.instance, _Tiers())
            self._errors["contradiction"] += tiers.of(place).add(key, name, base)
        elif meaning.is_card_wide:
            self._card.copied.setdefault(key, base)

    def card(self, order: int, minor: int | None, at: float, seconds: float) -> PageCard:
        device = Device(
            gpu=self._gpu(order, minor),
            at=at,
            readings=self._card.readings(),
            instances=(*(self._instance(number) for number in sorted(self._profiles)), *self._claimed_instances()),
            ability=Ability(),
            seconds=seconds,
        )
        return PageCard(device=device, allocations=tuple(self._allocations()))

    def _gpu(self, order: int, minor: int | None) -> Gpu:
        rows = (*self.labels, *self.links)
        numbers = (row_labels.index(labels) for labels in rows)
        return Gpu(
            uuid=self.uuid,
            index=next((number for number in numbers if number is not None), order),
            minor=minor,
            model=_first(rows, "modelName", "model_name"),
            pci_bus_id=_first(rows, "pci_bus_id"),
            vbios=_first(self.labels, "DCGM_FI_DEV_VBIOS_VERSION"),
            mig_enabled=bool(self._profiles or self._claimed),
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
        """Name an instance by its place on the card, as drivers before R470 did: pages do not have its UUID."""
        return f"MIG-{self.uuid}/{number}/{COMPUTE_INSTANCE}"

    @property
    def _claimed(self) -> dict[str, str]:
        """The MIG devices that resource claims name on rows of the card, with their profiles."""
        return {place.claimed.uuid: place.claimed.profile for place in self._places if place.claimed}

    def _claimed_instances(self) -> Iterator[Instance]:
        """The MIG devices that only claims name: on a page with instances they would be there twice."""
        for uuid, profile in sorted(self._claimed.items()) if not self._profiles else ():
            mig = MigInstance(uuid=uuid, gpu_instance_id=UNKNOWN, compute_instance_id=UNKNOWN, profile=profile)
            yield Instance(mig=mig)

    def _device(self, claimed: ClaimedMig) -> str:
        """Name the instance that a claim means. Empty if several could be meant."""
        if not self._profiles:
            return claimed.uuid
        fitting = [number for number, profile in self._profiles.items() if profile == claimed.profile]
        rivals = [uuid for uuid, profile in self._claimed.items() if profile == claimed.profile]
        return self._instance_name(fitting[0]) if len(fitting) == len(rivals) == 1 else ""

    def _allocations(self) -> Iterator[Allocation]:
        """List which container has which device. On a card with instances, its own rows need a claim to count."""
        held: dict[int | None, list[PagePlace]] = {}
        for place in self._places:
            if place.claimed and place.instance is None:
                if device := self._device(place.claimed):
                    yield from _allocations_of(device, [place])
            elif place.tenant is not None:
                held.setdefault(place.instance, []).append(place)
        for instance, places in held.items():
            is_vague = instance is None and (bool(self._profiles) or _all_say(place.is_divided for place in places))
            if not is_vague:
                device = self.uuid if instance is None else self._instance_name(instance)
                yield from _allocations_of(device, places)


def _allocations_of(device: str, places: list[PagePlace]) -> Iterable[Allocation]:
    """List each allocation once, with ids as the device plugin writes them."""
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
    """Whether to trust a label that a pod may have set itself. A single pod is not trusted."""
    said = list(signs)
    return len(said) > 1 and all(said)


def _first(rows: Iterable[row_labels.Labels], *names: str) -> str:
    return next((found for labels in rows if (found := row_labels.fact(labels, *names))), "")
