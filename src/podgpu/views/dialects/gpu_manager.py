"""Tencent's gpu-manager: what containers asked for and what they use, in cards, percent of cards and MiB."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from podgpu.catalog.row import Kind, Worth
from podgpu.model import ContainerRef, Gpu, Pod, Snapshot
from podgpu.views.dialects import Document, Families
from podgpu.views.dialects._holding import Holding, add, card_names, holdings, percent, reading
from podgpu.views.family import Family, labels_text
from podgpu.views.text import clean

CORE, MEMORY = "tencent.com/vcuda-core", "tencent.com/vcuda-memory"
CORES_OF_CARD = 100
BLOCK_MIB = 256
TOTAL = "total"

_DIGITS = 9


class Card(Struct, frozen=True):
    """A container's use of one card: percent of all of it, and MiB. None is what could not be measured."""

    holdings: tuple[Holding, ...]

    @property
    def gpu(self) -> Gpu:
        return self.holdings[0].device.gpu

    @property
    def percent(self) -> float | None:
        return percent(_sum(one.card_ratio for one in self.holdings))

    @property
    def mib(self) -> int | None:
        return _mib(_sum(one.memory_bytes for one in self.holdings))


class Tenant(Struct, frozen=True, kw_only=True):
    """A container. `asked` are its limits, for pods that ask for cards in gpu-manager's words."""

    container: ContainerRef
    cards: tuple[Card, ...] = ()
    asked: Mapping[str, str] | None = None

    @property
    def given(self) -> list[Holding]:
        return [one for card in self.cards for one in card.holdings if one.claims]

    @property
    def requested_cards(self) -> float | None:
        if self.asked is not None:
            cores = _whole(self.asked.get(CORE, "0"))
            return None if cores is None else cores / CORES_OF_CARD
        return _sum(_share(one) for one in self.given) if self.given else None

    @property
    def requested_mib(self) -> float | None:
        """Who asks for no memory may have all that the card has."""
        if self.asked is None:
            return _mib(_sum(_limit(one) for one in self.given)) if self.given else None
        blocks = _whole(self.asked.get(MEMORY, "0"))
        if blocks == 0 and self.requested_cards != 0:
            return _mib(_sum(one.reading("memory_total_bytes") for one in self.given)) if self.given else None
        return None if blocks is None else blocks * BLOCK_MIB


def families(snapshot: Snapshot, _options: None) -> list[Family]:
    utilization = _family("container_gpu_utilization", "gpu utilization")
    cards = _family("container_request_gpu_utilization", "request of gpu utilization")
    memory = _family("container_gpu_memory_total", "gpu memory usage in MiB")
    mib = _family("container_request_gpu_memory", "request of gpu memory in MiB")
    names = card_names(snapshot, "gpu")
    for one in _tenants(snapshot):
        for card in one.cards:
            name = names[card.gpu.uuid]
            add(utilization, _labels(snapshot, one, "gpu", name), card.percent)
            add(memory, _labels(snapshot, one, "gpu_memory", name), card.mib)
        if one.cards:
            add(utilization, _labels(snapshot, one, "gpu", TOTAL), _sum(card.percent for card in one.cards))
            add(memory, _labels(snapshot, one, "gpu_memory", TOTAL), _sum(card.mib for card in one.cards))
        add(cards, _labels(snapshot, one, "req_of_gpu", TOTAL), one.requested_cards)
        add(mib, _labels(snapshot, one, "req_of_gpu_memory", TOTAL), one.requested_mib)
    return [utilization, cards, memory, mib]


def usage(snapshot: Snapshot, _options: None, _query: Mapping[str, str]) -> bytes:
    """Write pods by their UID, as JSON.

    What is not known is left out, and so are user and cluster: annotations and environments stay in the agent.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in _tenants(snapshot):
        if uid := one.container.pod_uid:
            blank: dict[str, Any] = {"stat": {}, "project": clean(one.container.namespace), "spec": {}}
            pod = found.setdefault(clean(uid), blank)
            name = clean(one.container.container)
            if one.cards:
                pod["stat"][name] = {"dev": list(map(_device, one.cards))}
            pod["spec"][name] = _known({"gpu": one.requested_cards, "mem": one.requested_mib})
    return msgspec.json.encode({"usage": found})


def _tenants(snapshot: Snapshot) -> Iterator[Tenant]:
    held: dict[ContainerRef, dict[str, list[Holding]]] = {}
    for one in holdings(snapshot):
        held.setdefault(one.container, {}).setdefault(one.device.gpu.uuid, []).append(one)
    asked = {ref: limits for pod in snapshot.pods for ref, limits in _asked(pod)}
    for ref in sorted({*held, *asked}):
        cards = tuple(Card(tuple(group)) for group in held.get(ref, {}).values())
        limits = asked.get(ref, {})
        # What it holds without having asked for cores it has by another system.
        yield Tenant(container=ref, cards=cards, asked=limits if CORE in limits or not cards else None)


def _asked(pod: Pod) -> Iterator[tuple[ContainerRef, Mapping[str, str]]]:
    """Beside a container that asks for cores, one that does not asks for 0."""
    if not pod.finished and any(CORE in one.limits for one in pod.containers):
        for one in pod.containers:
            if not (one.is_init or one.is_ephemeral):
                yield ContainerRef(pod.namespace, pod.name, one.name, pod.uid), one.limits


def _device(card: Card) -> dict[str, Any]:
    first = card.holdings[0].device
    return _known(
        {
            "id": clean(first.gpu.pci_bus_id) or None,
            "card_idx": str(card.gpu.index),
            "gpu": card.percent,
            "mem": card.mib,
            "pids": sorted(process.pid for one in card.holdings for process in one.processes),
            "device_mem": _mib(reading(first.readings, "memory_total_bytes")),
        }
    )


def _share(one: Holding) -> float | None:
    """A share of 0 is one that its system could not tell."""
    shares = [claim.share for claim in one.claims]
    return None if one.part is None or not all(shares) else sum(shares) * one.part


def _limit(one: Holding) -> float | None:
    known = [claim.memory_limit_bytes for claim in one.claims if claim.memory_limit_bytes]
    return sum(known) if len(known) == len(one.claims) else one.reading("memory_total_bytes")


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def _mib(size: float | None) -> int | None:
    return None if size is None else int(size) >> 20


def _sum(values: Iterable[float | None]) -> float | None:
    """A sum of which a part is unknown is unknown."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if len(known) == len(listed) else None


def _family(name: str, help_text: str) -> Family:
    return Family(name, Kind.GAUGE, help_text, Worth.CORE)


def _labels(snapshot: Snapshot, one: Tenant, key: str, value: str) -> str:
    ref = one.container
    pairs = {
        "container_name": ref.container,
        "namespace": ref.namespace,
        "node": snapshot.node_of(one.cards[0].gpu) if one.cards else snapshot.node,
        "pod_name": ref.pod,
        key: value,
    }
    names = sorted(pairs)
    return labels_text(names, [pairs[name] for name in names])


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


PAGES: Mapping[str, Families] = {"/metrics/gpu-manager": families, "/metric": families}
DOCUMENTS: Mapping[str, Document] = {"/usage": usage}
