"""Tencent's gpu-manager: what each container requested and uses, in cards, percent of a card and MiB."""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

import msgspec
from msgspec import Struct

from podgpu.insight.tenants import reading
from podgpu.model import Card, ContainerRef, Pod, Snapshot
from podgpu.model.kube import amount, grouped, total
from podgpu.views.dialects import Answers, Dialect
from podgpu.views.dialects._pod_tenant import PodTenant, card_names, mib, percent, pod_tenants
from podgpu.views.row_table import known
from podgpu.views.sample_format import go, in_json
from podgpu.views.series import Family, Labels
from podgpu.views.text import clean

CORE, MEMORY = "tencent.com/vcuda-core", "tencent.com/vcuda-memory"
CORES_OF_CARD = 100
BLOCK_MIB = 256
TOTAL = "total"
MOST = 10**6  # of cores or blocks; no node has as many


class ContainerCardUse(Struct, frozen=True):
    """A container's use of one card: percent of the whole card, and MiB. None if it could not be measured."""

    tenants: tuple[PodTenant, ...]

    @property
    def card(self) -> Card:
        return self.tenants[0].card

    @property
    def percent(self) -> float | None:
        return percent(total(tenant.card_ratio for tenant in self.tenants))

    @property
    def mib(self) -> int | None:
        return mib(total(tenant.memory_bytes for tenant in self.tenants))


class ContainerUse(Struct, frozen=True, kw_only=True):
    """A container on all its cards. `limits` are set if its pod requests cards from gpu-manager."""

    container: ContainerRef
    cards: tuple[ContainerCardUse, ...] = ()
    limits: Mapping[str, str] | None = None

    @property
    def claimed(self) -> list[PodTenant]:
        return [tenant for card in self.cards for tenant in card.tenants if tenant.claims]

    @property
    def requested_cards(self) -> float | None:
        if self.limits is not None:
            cores = _whole(self.limits.get(CORE, "0"))
            return None if cores is None else cores / CORES_OF_CARD
        return total(tenant.share_of(claim) for tenant in self.claimed for claim in tenant.claims)

    @property
    def requested_mib(self) -> float | None:
        """A container that requests no memory may use all of its cards'."""
        if self.limits is None:
            return mib(total(map(_limit, self.claimed)))
        blocks = _whole(self.limits.get(MEMORY, "0"))
        if blocks == 0 and self.requested_cards != 0:
            return mib(total(tenant.reading("memory_total_bytes") for tenant in self.claimed))
        return None if blocks is None else blocks * BLOCK_MIB


def families(snapshot: Snapshot, _options: None) -> list[Family]:
    utilization = Family.gauge("container_gpu_utilization", "gpu utilization", go)
    cards = Family.gauge("container_request_gpu_utilization", "request of gpu utilization", go)
    memory = Family.gauge("container_gpu_memory_total", "gpu memory usage in MiB", go)
    mib = Family.gauge("container_request_gpu_memory", "request of gpu memory in MiB", go)
    names = card_names(snapshot, "gpu")
    for use in _containers(snapshot):
        for on_card in use.cards:
            name = names[on_card.card.gpu.uuid]
            utilization.add(on_card.percent, _labels(snapshot, use, "gpu", name))
            memory.add(on_card.mib, _labels(snapshot, use, "gpu_memory", name))
        if use.cards:
            utilization.add(total(card.percent for card in use.cards), _labels(snapshot, use, "gpu", TOTAL))
            memory.add(total(card.mib for card in use.cards), _labels(snapshot, use, "gpu_memory", TOTAL))
        cards.add(use.requested_cards, _labels(snapshot, use, "req_of_gpu", TOTAL))
        mib.add(use.requested_mib, _labels(snapshot, use, "req_of_gpu_memory", TOTAL))
    return [utilization, cards, memory, mib]


def usage(snapshot: Snapshot, _options: None) -> Answers:
    """Pods by UID, as JSON. Unknown values are left out."""
    pods = {pod.uid: pod for pod in snapshot.pods}
    found: dict[str, dict[str, Any]] = {}
    for use in _containers(snapshot):
        if uid := use.container.pod_uid:
            pod = found.setdefault(clean(uid), _pod(use.container, pods.get(uid)))
            name = clean(use.container.container)
            if use.cards:
                pod["stat"][name] = {"dev": list(map(_device, use.cards))}
            pod["spec"][name] = known({"gpu": in_json(use.requested_cards), "mem": in_json(use.requested_mib)})
    body = msgspec.json.encode({"usage": found})
    return lambda _query: body


def _pod(container: ContainerRef, pod: Pod | None) -> dict[str, Any]:
    about = {"user": clean(pod.submitter), "cluster": clean(pod.cluster)} if pod else {}
    known_facts = {name: text for name, text in about.items() if text}
    return {"stat": {}, "project": clean(container.namespace), **known_facts, "spec": {}}


def _containers(snapshot: Snapshot) -> Iterator[ContainerUse]:
    held = grouped(pod_tenants(snapshot), lambda tenant: tenant.container)
    requested = {ref: limits for pod in snapshot.pods for ref, limits in _requested(pod)}
    for ref in sorted({*held, *requested}):
        by_card = grouped(held.get(ref, ()), lambda tenant: tenant.gpu.uuid)
        cards = tuple(ContainerCardUse(tuple(group)) for group in by_card.values())
        limits = requested.get(ref, {})
        # A container that holds a card and requests no cores was given the card by another system.
        yield ContainerUse(container=ref, cards=cards, limits=limits if CORE in limits or not cards else None)


def _requested(pod: Pod) -> Iterator[tuple[ContainerRef, Mapping[str, str]]]:
    """In a pod that requests cores, a container that does not requests 0."""
    if not pod.finished and any(CORE in container.limits for container in pod.containers):
        for container in pod.main_containers:
            yield ContainerRef(pod.namespace, pod.name, container.name, pod.uid), container.limits


def _device(use: ContainerCardUse) -> dict[str, Any]:
    return known(
        {
            "id": clean(use.card.gpu.pci_bus_id) or None,
            "card_idx": str(use.card.gpu.index),
            "gpu": in_json(use.percent),
            "mem": use.mib,
            "pids": sorted(process.pid for tenant in use.tenants for process in tenant.tenant.running),
            "device_mem": mib(reading(use.card.readings, "memory_total_bytes")),
        }
    )


def _limit(tenant: PodTenant) -> float | None:
    known = [claim.memory_limit_bytes for claim in tenant.claims if claim.memory_limit_bytes]
    return sum(known) if len(known) == len(tenant.claims) else tenant.reading("memory_total_bytes")


def _whole(text: str) -> int | None:
    """Read a quantity as gpu-manager does, in whole cores or blocks, rounded up."""
    number = amount(text)
    return None if number is None or number > MOST else ceil(number)


def _labels(snapshot: Snapshot, use: ContainerUse, key: str, value: str) -> Labels:
    ref = use.container
    pairs = {
        "container_name": ref.container,
        "namespace": ref.namespace,
        "node": snapshot.node,
        "pod_name": ref.pod,
        key: value,
    }
    return Labels.by_name(pairs)


DIALECT = Dialect(pages={"/metrics/gpu-manager": families, "/metric": families}, documents={"/usage": usage})
