"""Tencent's gpu-manager: what each container requested and uses, in cards, percent of a card and MiB."""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

import msgspec
from msgspec import Struct

from podgpu.catalog.row import Kind, Worth
from podgpu.model import Card, ContainerRef, Gpu, Pod, Snapshot
from podgpu.model.quantity import amount, total
from podgpu.views.dialects import Answers, Dialect
from podgpu.views.dialects._pod_tenant import PodTenant, card_names, percent, pod_tenants, reading
from podgpu.views.sample_format import go, in_json
from podgpu.views.series import Family, Labels
from podgpu.views.text import clean

CORE, MEMORY = "tencent.com/vcuda-core", "tencent.com/vcuda-memory"
CORES_OF_CARD = 100
BLOCK_MIB = 256
TOTAL = "total"
MOST = 10**6  # of cores or blocks; no node has as many


class CardUse(Struct, frozen=True):
    """A container's use of one card: percent of the whole card, and MiB. None if it could not be measured."""

    tenants: tuple[PodTenant, ...]

    @property
    def card(self) -> Card:
        return self.tenants[0].card

    @property
    def gpu(self) -> Gpu:
        return self.card.gpu

    @property
    def percent(self) -> float | None:
        return percent(total(one.card_ratio for one in self.tenants))

    @property
    def mib(self) -> int | None:
        return _mib(total(one.memory_bytes for one in self.tenants))


class ContainerUse(Struct, frozen=True, kw_only=True):
    """A container on all its cards. `limits` are set if its pod requests cards from gpu-manager."""

    container: ContainerRef
    cards: tuple[CardUse, ...] = ()
    limits: Mapping[str, str] | None = None

    @property
    def given(self) -> list[PodTenant]:
        return [one for card in self.cards for one in card.tenants if one.claims]

    @property
    def requested_cards(self) -> float | None:
        if self.limits is not None:
            cores = _whole(self.limits.get(CORE, "0"))
            return None if cores is None else cores / CORES_OF_CARD
        return total(_share(one) for one in self.given) if self.given else None

    @property
    def requested_mib(self) -> float | None:
        """A container that requests no memory may use all of its cards'."""
        if self.limits is None:
            return _mib(total(_limit(one) for one in self.given)) if self.given else None
        blocks = _whole(self.limits.get(MEMORY, "0"))
        if blocks == 0 and self.requested_cards != 0:
            return (
                _mib(total(one.reading("memory_total_bytes") for one in self.given)) if self.given else None
            )
        return None if blocks is None else blocks * BLOCK_MIB


def families(snapshot: Snapshot, _options: None) -> list[Family]:
    utilization = _family("container_gpu_utilization", "gpu utilization")
    cards = _family("container_request_gpu_utilization", "request of gpu utilization")
    memory = _family("container_gpu_memory_total", "gpu memory usage in MiB")
    mib = _family("container_request_gpu_memory", "request of gpu memory in MiB")
    names = card_names(snapshot, "gpu")
    for one in _containers(snapshot):
        for card in one.cards:
            name = names[card.gpu.uuid]
            utilization.add(card.percent, _labels(snapshot, one, "gpu", name))
            memory.add(card.mib, _labels(snapshot, one, "gpu_memory", name))
        if one.cards:
            utilization.add(total(card.percent for card in one.cards), _labels(snapshot, one, "gpu", TOTAL))
            memory.add(total(card.mib for card in one.cards), _labels(snapshot, one, "gpu_memory", TOTAL))
        cards.add(one.requested_cards, _labels(snapshot, one, "req_of_gpu", TOTAL))
        mib.add(one.requested_mib, _labels(snapshot, one, "req_of_gpu_memory", TOTAL))
    return [utilization, cards, memory, mib]


def usage(snapshot: Snapshot, _options: None) -> Answers:
    """Pods by UID, as JSON. Unknown values are left out."""
    pods = {pod.uid: pod for pod in snapshot.pods}
    found: dict[str, dict[str, Any]] = {}
    for one in _containers(snapshot):
        if uid := one.container.pod_uid:
            pod = found.setdefault(clean(uid), _pod(one.container, pods.get(uid)))
            name = clean(one.container.container)
            if one.cards:
                pod["stat"][name] = {"dev": list(map(_device, one.cards))}
            pod["spec"][name] = _known(
                {"gpu": _number(one.requested_cards), "mem": _number(one.requested_mib)}
            )
    body = msgspec.json.encode({"usage": found})
    return lambda _query: body


def _pod(container: ContainerRef, known: Pod | None) -> dict[str, Any]:
    about = {"user": clean(known.submitter), "cluster": clean(known.cluster)} if known else {}
    given = {name: text for name, text in about.items() if text}
    return {"stat": {}, "project": clean(container.namespace), **given, "spec": {}}


def _containers(snapshot: Snapshot) -> Iterator[ContainerUse]:
    held: dict[ContainerRef, dict[str, list[PodTenant]]] = {}
    for one in pod_tenants(snapshot):
        held.setdefault(one.container, {}).setdefault(one.gpu.uuid, []).append(one)
    requested = {ref: limits for pod in snapshot.pods for ref, limits in _requested(pod)}
    for ref in sorted({*held, *requested}):
        cards = tuple(CardUse(tuple(group)) for group in held.get(ref, {}).values())
        limits = requested.get(ref, {})
        # A container that holds a card and requests no cores was given the card by another system.
        yield ContainerUse(container=ref, cards=cards, limits=limits if CORE in limits or not cards else None)


def _requested(pod: Pod) -> Iterator[tuple[ContainerRef, Mapping[str, str]]]:
    """In a pod that requests cores, a container that does not requests 0."""
    if not pod.finished and any(CORE in one.limits for one in pod.containers):
        for one in pod.containers:
            if not (one.is_init or one.is_ephemeral):
                yield ContainerRef(pod.namespace, pod.name, one.name, pod.uid), one.limits


def _device(use: CardUse) -> dict[str, Any]:
    return _known(
        {
            "id": clean(use.gpu.pci_bus_id) or None,
            "card_idx": str(use.gpu.index),
            "gpu": _number(use.percent),
            "mem": use.mib,
            "pids": sorted(process.pid for one in use.tenants for process in one.tenant.running),
            "device_mem": _mib(reading(use.card.readings, "memory_total_bytes")),
        }
    )


def _share(one: PodTenant) -> float | None:
    """A share of 0 is one that its system does not know."""
    part, shares = one.part, [claim.share for claim in one.claims]
    return None if part is None or not all(shares) else sum(shares) * part


def _limit(one: PodTenant) -> float | None:
    known = [claim.memory_limit_bytes for claim in one.claims if claim.memory_limit_bytes]
    return sum(known) if len(known) == len(one.claims) else one.reading("memory_total_bytes")


def _whole(text: str) -> int | None:
    """Read a quantity as gpu-manager does, in whole cores or blocks: what is left over counts as one more."""
    found = amount(text)
    return None if found is None or found > MOST else ceil(found)


def _number(value: float | None) -> float | None:
    return None if value is None else in_json(value)


def _mib(size: float | None) -> int | None:
    return None if size is None else int(size) >> 20


def _family(name: str, help_text: str) -> Family:
    return Family(name, Kind.GAUGE, help_text, Worth.CORE, writing=go)


def _labels(snapshot: Snapshot, one: ContainerUse, key: str, value: str) -> Labels:
    ref = one.container
    pairs = {
        "container_name": ref.container,
        "namespace": ref.namespace,
        "node": snapshot.node,
        "pod_name": ref.pod,
        key: value,
    }
    return Labels.by_name(pairs)


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


DIALECT = Dialect(pages={"/metrics/gpu-manager": families, "/metric": families}, documents={"/usage": usage})
