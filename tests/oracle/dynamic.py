"""Makes up claims on the devices that a DRA driver published for a node, and the truth with them.

The devices and their owners are the driver's. Claims, their results and what the kubelet lists are composed here the
way Kubernetes 1.36 writes them.
"""

import random
from collections.abc import Iterator
from typing import Any, TypeAlias
from uuid import NAMESPACE_OID, uuid5

import msgspec
from msgspec import Raw

from tests.oracle.case import Case, CaseGpu, DynamicGiven, Right

DRIVER, HAMI = "gpu.nvidia.com", "hami-core-gpu.project-hami.io"
NAMESPACE, POOL = "ns", "node-1"
MIB = 1 << 20
SHARES = 24  # of each device

Json: TypeAlias = dict[str, Any]
Place: TypeAlias = tuple[str, str]  # card, instance


class DraNode:
    """A node that fills up with pods."""

    def __init__(self, kind: str, gpus: list[CaseGpu], driver: str, devices: list[Json]) -> None:
        self._case = Case(kind=kind, gpus=gpus, pods=[], truth=[])
        self._driver = driver
        spec = {"driver": driver, "pool": {"name": POOL, "generation": 1}, "devices": devices}
        self._case.slices.append({"spec": spec})
        self._pods: dict[str, Json] = {}

    def claim(self, name: str, results: list[Json], *pods: str, group: str = "") -> None:
        """Add a claim. `results` are of requests; the claim is reserved for pods, or for a group of them."""
        consumers = (
            [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": group, "uid": f"{group}-uid"}]
            if group
            else [{"resource": "pods", "name": pod, "uid": f"{pod}-uid"} for pod in pods]
        )
        given = [{"driver": self._driver, "pool": POOL, **result} for result in results]
        self._case.claims.append(
            {
                "metadata": {"name": name, "namespace": NAMESPACE},
                "status": {"allocation": {"devices": {"results": given}}, "reservedFor": consumers},
            }
        )

    def pod(self, name: str, claim: str, devices: list[str], containers: dict[str, str]) -> None:
        """Add a pod whose containers use requests of one claim. The kubelet lists all devices under each."""
        uses = {
            container: [{"name": "own", "request": request} if request else {"name": "own"}]
            for container, request in containers.items()
        }
        self._pods[name] = {
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"{name}-uid"},
            "spec": {
                "containers": [{"name": container, "resources": {"claims": use}} for container, use in uses.items()],
                "resourceClaims": [{"name": "own", "resourceClaimName": claim}],
            },
            "status": {"phase": "Running"},
        }
        self._case.dynamic.extend(
            DynamicGiven(
                namespace=NAMESPACE,
                pod=name,
                container=container,
                claim=claim,
                driver=self._driver,
                pool=POOL,
                device=device,
            )
            for container in containers
            for device in dict.fromkeys(devices)
        )

    def may(self, pod: str, container: str, place: Place, **what: Any) -> None:
        gpu, mig = place
        right = Right(namespace=NAMESPACE, pod=pod, container=container, gpu=gpu, mig=mig, **what)
        self._case.truth = [*(self._case.truth or ()), right]

    def case(self) -> Case:
        self._case.pods = [Raw(msgspec.json.encode(pod)) for pod in self._pods.values()]
        return self._case


def composed(case: Case, number: int) -> Iterator[Case]:
    chance = random.Random(number)
    yield _requests(case)
    yield _shared(case)
    yield _grouped(case)
    whole = [name for name, (_, mig) in (case.owner or {}).items() if not mig]
    yield _consumed(case, whole, chance)
    yield _hami(case, chance)


def _node(case: Case, kind: str, devices: list[Json] | None = None) -> DraNode:
    return DraNode(f"{case.kind}: {kind}", case.gpus, DRIVER, devices or case.devices or [])


def _owners(case: Case) -> dict[str, Place]:
    """Leave out devices that are only possible, not there."""
    return {name: place for name, place in (case.owner or {}).items() if any(place)}


def _requests(case: Case) -> Case:
    """Each pod has a claim with two requests, one for each container."""
    node, names = _node(case, "two requests"), list(_owners(case))
    for number, pair in enumerate(zip(names[::2], names[1::2], strict=False)):
        pod, claim = f"pod-{number}", f"claim-{number}"
        node.claim(claim, [{"request": f"r-{index}", "device": name} for index, name in enumerate(pair)], pod)
        node.pod(pod, claim, list(pair), {"c-0": "r-0", "c-1": "r-1"})
        for index, name in enumerate(pair):
            node.may(pod, f"c-{index}", _owners(case)[name], share=1.0)
    return node.case()


def _shared(case: Case) -> Case:
    """Two pods use one claim."""
    node = _node(case, "shared claim")
    for number, (name, place) in enumerate(_owners(case).items()):
        pods = f"pod-{number}-a", f"pod-{number}-b"
        node.claim(f"claim-{number}", [{"request": "gpu", "device": name}], *pods)
        for pod in pods:
            node.pod(pod, f"claim-{number}", [name], {"main": ""})
            node.may(pod, "main", place, share=0.5)
    return node.case()


def _grouped(case: Case) -> Case:
    """The claim is reserved for a group of pods, and names none of them."""
    node = _node(case, "pod group")
    for number, (name, place) in enumerate(_owners(case).items()):
        node.claim(f"claim-{number}", [{"request": "gpu", "device": name}], group=f"group-{number}")
        for pod in (f"pod-{number}-a", f"pod-{number}-b"):
            node.pod(pod, f"claim-{number}", [name], {"main": ""})
            node.may(pod, "main", place, share=0.5)
    return node.case()


def _consumed(case: Case, whole: list[str], chance: random.Random) -> Case:
    """Several claims consume shares of a card and parts of its memory, each claim twice, for two containers."""
    devices = [_sharable(device) for device in case.devices or ()]
    node = _node(case, "consumable capacity", devices)
    memory = {gpu.uuid: gpu.memory for gpu in case.gpus}
    for card, name in enumerate(whole):
        place = _owners(case)[name]
        total = _capacity(devices, name) or memory[place[0]]
        for number in range(chance.randint(1, 4)):
            pod, parts = f"pod-{card}-{number}", [chance.randint(1, 9) * 1024 * MIB for _ in range(2)]
            shares = [chance.randint(1, 3) for _ in parts]
            consumed = [{"memory": f"{part}", "shares": f"{share}"} for part, share in zip(parts, shares, strict=True)]
            results = [_share(pod, f"r-{index}", name, what) for index, what in enumerate(consumed)]
            node.claim(f"claim-{pod}", results, pod)
            node.pod(pod, f"claim-{pod}", [name], {"c-0": "r-0", "c-1": "r-1"})
            for index, (part, share) in enumerate(zip(parts, shares, strict=True)):
                node.may(pod, f"c-{index}", place, share=max(part / total, share / SHARES))
    return node.case()


def _hami(case: Case, chance: random.Random) -> Case:
    node = DraNode("hami", case.gpus, HAMI, [_hami_device(gpu) for gpu in case.gpus])
    for gpu in case.gpus:
        for number in range(chance.randint(1, 3)):
            pod, name = f"pod-{gpu.index}-{number}", f"hami-gpu-{gpu.minor}"
            cores, mib = chance.choice((0, 10, 30, 60)), chance.randint(1, 8192)
            result = _share(pod, "gpu", name, {"cores": str(cores), "memory": f"{mib}Mi"})
            node.claim(f"claim-{pod}", [result], pod)
            node.pod(pod, f"claim-{pod}", [name], {"main": ""})
            share = cores / 100 if cores else mib * MIB / gpu.memory
            node.may(pod, "main", (gpu.uuid, ""), memory=mib * MIB, cores=float(cores), share=share)
    return node.case()


def _share(pod: str, request: str, device: str, consumed: dict[str, str]) -> Json:
    share_id = str(uuid5(NAMESPACE_OID, f"{pod} {request} {device}"))
    return {"request": request, "device": device, "shareID": share_id, "consumedCapacity": consumed}


def _sharable(device: Json) -> Json:
    capacity = {**device.get("capacity", {}), "shares": {"value": str(SHARES)}}
    return {**device, "allowMultipleAllocations": True, "capacity": capacity}


def _capacity(devices: list[Json], name: str) -> int:
    """Read the memory that the driver publishes, in MiB."""
    found = next(device for device in devices if device["name"] == name)
    text = found.get("capacity", {}).get("memory", {}).get("value", "")
    return int(text.removesuffix("Mi")) * MIB if text.endswith("Mi") else 0


def _hami_device(gpu: CaseGpu) -> Json:
    return {
        "name": f"hami-gpu-{gpu.minor}",
        "attributes": {
            "type": {"string": "hami-gpu"},
            "uuid": {"string": gpu.uuid},
            "minor": {"int": gpu.minor},
        },
        "capacity": {"cores": {"value": "100"}, "memory": {"value": str(gpu.memory)}},
        "allowMultipleAllocations": True,
    }
