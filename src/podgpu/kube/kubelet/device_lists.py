"""The kubelet's lists of devices as sets of rows: it repeats a device per NUMA node and lists in random order.

The numbers of fields are those of proto/podresources.proto.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from typing import NamedTuple, TypeVar

from podgpu.kube.kubelet.protobuf_fields import FieldReader, Fields
from podgpu.kube.limits import MOST_CONTAINERS, MOST_IDS, MOST_LISTED
from podgpu.model import Allocation, DynamicAllocation

PIECE = 10_000

Row = tuple[bytes, ...]  # names, and a device's id at the end
Rows = frozenset[Row]
T = TypeVar("T")

_ID = re.compile(rb"[\x21-\x7e]{1,253}")
_NAME = re.compile(rb"[\x21-\x7e]{1,317}")  # a resource's name: a domain, a slash and a word


class Listed(NamedTuple):
    """`pods` are namespace and name. `given` are namespace, pod, container, resource and device id.

    `excess` is how much is beyond the bounds. `claimed` are namespace, pod, container, the claim's namespace and name,
    driver, pool, device and its share, if any.
    """

    pods: Rows
    given: Rows
    claimed: Rows
    excess: int


class Offered(NamedTuple):
    """`rows` are resource and device id."""

    rows: Rows
    excess: int


def listed(answer: bytes) -> Listed:
    """Raise AnswerRejected or DecodeError for an answer that cannot be read."""
    reading = AnswerReader()
    containers = list(reading.containers(memoryview(answer)))
    given = reading.some(
        ((*owner, *pair) for owner, fields in containers for pair in reading.pairs(fields.get(2, ()))),
        MOST_IDS,
    )
    claimed = reading.some(
        ((*owner, *row) for owner, fields in containers for row in reading.claimed(fields.get(5, ()))),
        MOST_IDS,
    )
    return Listed(frozenset(reading.pods), frozenset(given), frozenset(claimed), reading.excess)


def offered(answer: bytes) -> Offered:
    """Raise as `listed` does."""
    reading = AnswerReader()
    rows = frozenset(reading.some(reading.pairs(reading.walk.named(memoryview(answer), 1)), MOST_IDS))
    return Offered(rows, reading.excess)


class AnswerReader:
    """Reads one answer, and counts what is beyond the bounds."""

    def __init__(self) -> None:
        self.walk = FieldReader()
        self.excess = 0
        self.pods: set[Row] = set()

    def some(self, items: Iterable[T], most: int) -> Iterator[T]:
        for place, item in enumerate(items):
            if place < most:
                yield item
            else:
                self.excess += 1

    def containers(self, answer: memoryview) -> Iterator[tuple[Row, Fields]]:
        """Yield namespace, pod and container, and what there is of it."""
        for pod in self.some(self.walk.named(answer, 1), MOST_LISTED):
            fields = self.walk.grouped(pod)
            owner = _text(fields, 2), _text(fields, 1)
            self.pods.add(owner)
            for container in self.some(fields.get(3, ()), MOST_CONTAINERS):
                inner = self.walk.grouped(container)
                yield (*owner, _text(inner, 1)), inner

    def pairs(self, devices: Iterable[memoryview]) -> Iterator[tuple[bytes, bytes]]:
        for device in devices:
            fields = self.walk.grouped(device)
            resource = _text(fields, 1)
            yield from ((resource, bytes(device_id)) for device_id in fields.get(2, ()))

    def claimed(self, claims: Iterable[memoryview]) -> Iterator[Row]:
        for claim in claims:
            fields = self.walk.grouped(claim)
            name = _text(fields, 3), _text(fields, 2)
            for device in map(self.walk.grouped, fields.get(4, ())):
                if 4 in device:  # a kubelet before 1.31 names only the claim
                    share = (_text(device, 5),) if 5 in device else ()
                    yield *name, *(_text(device, number) for number in (2, 3, 4)), *share


def _text(fields: Fields, number: int) -> bytes:
    """As everywhere in protobuf, the last one counts."""
    return bytes(fields[number][-1]) if number in fields else b""


def bad(rows: Rows) -> Rows:
    """Return the rows that no kubelet can mean."""
    return frozenset(row for row in rows if not _is_sound(row))


def texts(rows: Rows) -> list[tuple[str, ...]]:
    """Return the rows that make sense, sorted."""
    return [tuple(each.decode("ascii") for each in row) for row in _sorted(list(rows - bad(rows)))]


def _sorted(rows: list[Row]) -> Iterable[Row]:
    """Sort in pieces: a thread that sorts lets no other thread work meanwhile."""
    pieces = [sorted(rows[start : start + PIECE]) for start in range(0, len(rows), PIECE)]
    return merge(*pieces)


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
            share_id="".join(share),
        )
        for namespace, pod, container, claim_namespace, claim_name, driver, pool, device, *share in texts(
            rows
        )
    )


def _is_sound(row: Row) -> bool:
    *names, device_id = row
    return _ID.fullmatch(device_id) is not None and all(_NAME.fullmatch(name) for name in names)


SETTLING_SECONDS = 30.0


class Unlisted:
    """Rows of pods that were listed before the kubelet started again, and not yet since.

    It lists the pods it has heard of: none at first, then those in files, then those of the API server. Its devices
    belong to their pods all the while. A pod that ended meanwhile is never listed again, so the wait has an end.
    """

    def __init__(self) -> None:
        self._rows: Rows = frozenset()
        self._until = 0.0

    def __bool__(self) -> bool:
        return bool(self._rows)

    def expect(self, rows: Rows, now: float) -> None:
        """Wait for the pods of these rows, from now on."""
        self._rows, self._until = rows, now + SETTLING_SECONDS

    def rows(self, listed: Collection[Row], given: Rows, now: float) -> Rows:
        """Return the rows of pods that are not listed. A device that was given to another pod is not among them."""
        if self._rows:
            taken = {_device(row) for row in given}
            kept = (row for row in self._rows if row[:2] not in listed and _device(row) not in taken)
            self._rows = frozenset(kept) if now < self._until else frozenset()
        return self._rows


def _device(row: Row) -> Row:
    return row[3:]
