"""The kubelet's lists of devices as sets of rows: it repeats a device per NUMA node and lists in random order.

The numbers of fields are those of proto/podresources.proto.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from typing import NamedTuple, TypeVar

from podgpu.kube.kubelet.rpc import FieldReader, Fields
from podgpu.kube.limits import MOST_CONTAINERS, MOST_IDS, MOST_LISTED
from podgpu.model import Allocation, DynamicAllocation

PIECE = 10_000
SETTLING_SECONDS = 30.0

Row = tuple[bytes, ...]  # names, and a device's id at the end
Rows = frozenset[Row]
T = TypeVar("T")

_ID = re.compile(rb"[\x21-\x7e]{1,253}")
_NAME = re.compile(rb"[\x21-\x7e]{1,317}")  # a resource's name: a domain, a slash and a word

_CLAIM_FIELDS = (
    *("namespace", "pod", "container", "claim_namespace", "claim_name"),
    *("driver", "pool", "device", "share_id"),
)


class Listed(NamedTuple):
    """`pods` are namespace and name. `excess` is how much exceeds the limits.

    `devices` have namespace, pod, container, resource and device id. `claims` have the columns of _CLAIM_FIELDS; the
    last may be missing.
    """

    pods: Rows
    devices: Rows
    claims: Rows
    excess: int


def listed(answer: bytes) -> Listed:
    """Raise AnswerRejected or DecodeError for an answer that cannot be read."""
    reader = AnswerReader()
    containers = list(reader.containers(memoryview(answer)))
    devices = ((*owner, *pair) for owner, fields in containers for pair in reader.pairs(fields.get(2, ())))
    claims = ((*owner, *row) for owner, fields in containers for row in reader.claims(fields.get(5, ())))
    device_rows, claim_rows = (frozenset(reader.limited(rows, MOST_IDS)) for rows in (devices, claims))
    return Listed(frozenset(reader.pods), device_rows, claim_rows, reader.excess)


def offered(answer: bytes) -> tuple[Rows, int]:
    """Return resource and device id of each device, and how many exceed the limit. Raise as `listed` does."""
    reader = AnswerReader()
    pairs = reader.pairs(reader.fields.named(memoryview(answer), 1))
    return frozenset(reader.limited(pairs, MOST_IDS)), reader.excess


class AnswerReader:
    """Reads one answer, and counts what exceeds the limits."""

    def __init__(self) -> None:
        self.fields = FieldReader()
        self.excess = 0
        self.pods: set[Row] = set()

    def limited(self, items: Iterable[T], most: int) -> Iterator[T]:
        for number, item in enumerate(items):
            if number < most:
                yield item
            else:
                self.excess += 1

    def containers(self, answer: memoryview) -> Iterator[tuple[Row, Fields]]:
        """Yield namespace, pod and container, with the container's fields."""
        for pod in self.limited(self.fields.named(answer, 1), MOST_LISTED):
            fields = self.fields.grouped(pod)
            owner = _text(fields, 2), _text(fields, 1)
            self.pods.add(owner)
            for container in self.limited(fields.get(3, ()), MOST_CONTAINERS):
                inner = self.fields.grouped(container)
                yield (*owner, _text(inner, 1)), inner

    def pairs(self, devices: Iterable[memoryview]) -> Iterator[Row]:
        for fields in map(self.fields.grouped, devices):
            resource = _text(fields, 1)
            yield from ((resource, bytes(device_id)) for device_id in fields.get(2, ()))

    def claims(self, claims: Iterable[memoryview]) -> Iterator[Row]:
        for fields in map(self.fields.grouped, claims):
            name = _text(fields, 3), _text(fields, 2)
            for device in map(self.fields.grouped, fields.get(4, ())):
                if 4 in device:  # a kubelet before 1.31 names only the claim
                    share = (_text(device, 5),) if 5 in device else ()
                    yield *name, *(_text(device, number) for number in (2, 3, 4)), *share


def _text(fields: Fields, number: int) -> bytes:
    """As everywhere in protobuf, the last value counts."""
    return bytes(fields[number][-1]) if number in fields else b""


def malformed(rows: Rows) -> Rows:
    """Return the rows that no kubelet can mean."""
    return frozenset(row for row in rows if not _is_sound(row))


def _is_sound(row: Row) -> bool:
    *names, device_id = row
    return _ID.fullmatch(device_id) is not None and all(_NAME.fullmatch(name) for name in names)


def texts(rows: Rows) -> Iterator[tuple[str, ...]]:
    """Return the sound rows in order. They are sorted in pieces: a thread that sorts lets no other thread work."""
    sound = list(filter(_is_sound, rows))
    pieces = [sorted(sound[start : start + PIECE]) for start in range(0, len(sound), PIECE)]
    return (tuple(column.decode("ascii") for column in row) for row in merge(*pieces))


def allocations(rows: Rows) -> tuple[Allocation, ...]:
    return tuple(
        Allocation(namespace=namespace, pod=pod, container=container, resource=resource, device_id=device_id)
        for namespace, pod, container, resource, device_id in texts(rows)
    )


def dynamic_allocations(rows: Rows) -> tuple[DynamicAllocation, ...]:
    return tuple(DynamicAllocation(**dict(zip(_CLAIM_FIELDS, row, strict=False))) for row in texts(rows))


class Unlisted:
    """Rows of pods that were listed before the kubelet restarted, and not yet since.

    A kubelet that has just started lists the pods it knows of: none at first, then those in files, then those of the
    API server. Its devices belong to their pods all the while. A pod that ended meanwhile is never listed again, so
    the wait has an end.
    """

    def __init__(self) -> None:
        self._rows: Rows = frozenset()
        self._until = 0.0

    def __bool__(self) -> bool:
        return bool(self._rows)

    def expect(self, rows: Rows, now: float) -> None:
        """Wait for the pods of these rows, from now on."""
        self._rows, self._until = rows, now + SETTLING_SECONDS

    def rows(self, pods: Collection[Row], devices: Rows, now: float) -> Rows:
        """Return the rows of pods that are not listed, without devices that were given to another pod."""
        if self._rows:
            taken = {row[3:] for row in devices}
            kept = (row for row in self._rows if row[:2] not in pods and row[3:] not in taken)
            self._rows = frozenset(kept) if now < self._until else frozenset()
        return self._rows
