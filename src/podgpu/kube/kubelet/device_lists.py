"""The kubelet's lists of devices as sets of rows: it repeats a device per NUMA node and lists in random order."""

import re
from collections.abc import Iterable, Iterator

from podgpu.kube._gen.podresources_pb2 import AllocatableResponse, DeviceEntry, ListResponse
from podgpu.model import Allocation, DynamicAllocation

Row = tuple[bytes, ...]  # names, and a device's id at the end
Rows = frozenset[Row]

_ID = re.compile(rb"[\x21-\x7e]{1,253}")
_NAME = re.compile(rb"[\x21-\x7e]{1,317}")  # a resource's name: a domain, a slash and a word


def given(answer: ListResponse) -> Rows:
    """Return namespace, pod, container, resource and device id."""
    return frozenset(
        (pod.namespace, pod.name, container.name, resource, device_id)
        for pod in answer.pods
        for container in pod.containers
        for resource, device_id in _pairs(container.devices)
    )


def claimed(answer: ListResponse) -> Rows:
    """Return namespace, pod, container, the claim's namespace and name, driver, pool and device."""
    return frozenset(_claimed(answer))


def offered(answer: AllocatableResponse) -> Rows:
    """Return resource and device id."""
    return frozenset(_pairs(answer.devices))


def bad(rows: Rows) -> Rows:
    """Return the rows that no kubelet can mean."""
    return frozenset(row for row in rows if not _is_sound(row))


def texts(rows: Rows) -> list[tuple[str, ...]]:
    """Return the rows that make sense, sorted."""
    return [tuple(each.decode("ascii") for each in row) for row in sorted(rows - bad(rows))]


def allocations(rows: Rows) -> tuple[Allocation, ...]:
    return tuple(
        Allocation(namespace=namespace, pod=pod, container=container, resource=resource, device_id=device_id)
        for namespace, pod, container, resource, device_id in texts(rows)
    )


def dynamic_allocations(rows: Rows) -> tuple[DynamicAllocation, ...]:
    return tuple(
        DynamicAllocation(
            namespace=namespace,
            pod=pod,
            container=container,
            claim_namespace=claim_namespace,
            claim_name=claim_name,
            driver=driver,
            pool=pool,
            device=device,
        )
        for namespace, pod, container, claim_namespace, claim_name, driver, pool, device in texts(rows)
    )


def _is_sound(row: Row) -> bool:
    *names, device_id = row
    return _ID.fullmatch(device_id) is not None and all(_NAME.fullmatch(name) for name in names)


def _pairs(devices: Iterable[DeviceEntry]) -> Iterator[tuple[bytes, bytes]]:
    return ((each.resource, device_id) for each in devices for device_id in each.ids)


def _claimed(answer: ListResponse) -> Iterator[Row]:
    for pod in answer.pods:
        for container in pod.containers:
            owner = pod.namespace, pod.name, container.name
            for claim in container.claims:
                for each in claim.devices:
                    if each.device:  # a kubelet before 1.31 names only the claim
                        yield *owner, claim.namespace, claim.name, each.driver, each.pool, each.device
