"""Which container has which device, by the kubelet's pod-resources socket. It knows names, not UIDs.

Its lists become sets of rows, because the kubelet repeats a device for each NUMA node and lists in random order. The
field numbers are those of proto/podresources.proto.
"""

import asyncio
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from math import inf
from pathlib import Path
from typing import NamedTuple, TypeVar

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from msgspec import Struct
from msgspec.structs import replace

from podgpu.kube.condition import Condition
from podgpu.kube.kubelet import rpc
from podgpu.kube.kubelet.rpc import FieldReader, Fields, KubeletConnection
from podgpu.kube.limits import MOST_CONTAINERS, MOST_IDS, MOST_LISTED
from podgpu.model import Allocation, DynamicAllocation, Fault, PartStatus

LIST = "/v1.PodResourcesLister/List"
OLD_LIST = "/v1alpha1.PodResourcesLister/List"  # same numbers, fewer fields
ALLOCATABLE = "/v1.PodResourcesLister/GetAllocatableResources"
ALLOCATABLE_SECONDS = 60.0
AWAITED_SECONDS = 2.0  # while a plugin with allocated devices has not registered
LONGEST_PAUSE = 30.0
SMALL = 64 << 10  # bytes; a larger answer is read in a thread of its own
PIECE = 10_000  # rows that are sorted at once
SETTLING_SECONDS = 30.0  # until a kubelet that restarted lists all its pods

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
    """Rows. `pods` have namespace and name, `devices` have namespace, pod, container, resource and device id.

    `claims` have the columns of _CLAIM_FIELDS; the last may be missing. `excess` is how much exceeds the limits.
    """

    pods: Rows
    devices: Rows
    claims: Rows
    excess: int


def read_list(answer: bytes) -> Listed:
    """Raise AnswerRejected or DecodeError for an answer that cannot be read."""
    reader = AnswerReader()
    containers = list(reader.containers(memoryview(answer)))
    devices = ((*owner, *pair) for owner, fields in containers for pair in reader.pairs(fields.get(2, ())))
    claims = ((*owner, *row) for owner, fields in containers for row in reader.claims(fields.get(5, ())))
    device_rows, claim_rows = (frozenset(reader.limited(rows, MOST_IDS)) for rows in (devices, claims))
    return Listed(frozenset(reader.pods), device_rows, claim_rows, reader.excess)


def read_allocatable(answer: bytes) -> tuple[Rows, int, tuple[tuple[str, str], ...]]:
    """Return resource and device id of each device, how many exceed the limit, and the well-formed ones in order.

    Raise as `read_list` does.
    """
    reader = AnswerReader()
    pairs = reader.pairs(reader.fields.contents(memoryview(answer), 1))
    rows = frozenset(reader.limited(pairs, MOST_IDS))
    return rows, reader.excess, tuple((resource, device_id) for resource, device_id in texts(rows))


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
        for pod in self.limited(self.fields.contents(answer, 1), MOST_LISTED):
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


def malformed(rows: Rows) -> int:
    """Count the rows that no kubelet would send on purpose."""
    return sum(not _is_well_formed(row) for row in rows)


def _is_well_formed(row: Row) -> bool:
    *names, device_id = row
    return _ID.fullmatch(device_id) is not None and all(_NAME.fullmatch(name) for name in names)


def texts(rows: Rows) -> Iterator[tuple[str, ...]]:
    """Return the well-formed rows in order. They are sorted in pieces: while a thread sorts, no other thread runs."""
    well_formed = list(filter(_is_well_formed, rows))
    pieces = [sorted(well_formed[start : start + PIECE]) for start in range(0, len(well_formed), PIECE)]
    return (tuple(column.decode("ascii") for column in row) for row in merge(*pieces))


def allocations(rows: Rows) -> tuple[Allocation, ...]:
    return tuple(
        Allocation(namespace=namespace, pod=pod, container=container, resource=resource, device_id=device_id)
        for namespace, pod, container, resource, device_id in texts(rows)
    )


def dynamic_allocations(rows: Rows) -> tuple[DynamicAllocation, ...]:
    return tuple(DynamicAllocation(**dict(zip(_CLAIM_FIELDS, row, strict=False))) for row in texts(rows))


def _pods_of(rows: Rows) -> frozenset[tuple[str, str]]:
    return frozenset((row[0], row[1]) for row in texts(rows))


class Unlisted:
    """Rows of pods that were listed before the kubelet restarted, and not yet since.

    A kubelet that has just started lists the pods it knows of: none at first, then those in files, then those of the
    API server. Their devices are theirs all the while. A pod that ended meanwhile is never listed again, so the wait
    has an end.
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


class PodResourceLists(Struct, frozen=True, kw_only=True):
    """`allocatable` are (resource, device id) pairs: the healthy devices, whether or not a container has them.

    `awaited` are the pods, by namespace and name, that are listed only because they were before the kubelet restarted.
    """

    devices: tuple[Allocation, ...] = ()
    dynamic: tuple[DynamicAllocation, ...] = ()
    allocatable: tuple[tuple[str, str], ...] = ()
    awaited: frozenset[tuple[str, str]] = frozenset()


async def _in_thread_if_large(function: Callable[[bytes], T], answer: bytes) -> T:
    return function(answer) if len(answer) <= SMALL else await asyncio.to_thread(function, answer)


class PodResources:
    """A failure keeps the last lists and shows in `status`."""

    name = "podresources"

    def __init__(self, kubelet: Path, *, deadline: float = 2.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection = KubeletConnection(kubelet / "pod-resources" / "kubelet.sock")
        self._deadline = deadline
        self._clock = clock
        self._condition = Condition(self.name, clock=clock)
        self.errors = self._condition.errors
        self._lists = PodResourceLists()
        self._answer = b""
        self._devices: Rows = frozenset()
        self._claims: Rows = frozenset()
        self._allocatable: Rows = frozenset()
        self._socket_id = self._connection.socket_id
        self._unlisted_devices, self._unlisted_claims = Unlisted(), Unlisted()
        self._excess = 0
        self._asked = LIST
        self._allocatable_at = -inf
        self._is_awaiting = False
        self._pause = 0.0
        self._resume_at = -inf

    async def read(self) -> PodResourceLists:
        """Ask the kubelet, for at most `deadline` seconds. While it limits our rate, return what is known.

        The same object is returned for as long as nothing changes.
        """
        started = self._clock()
        if started < self._resume_at:
            return self._lists
        try:
            async with asyncio.timeout(self._deadline):
                await self._refresh()
        except Exception as error:
            self._note(error)
        else:
            self._pause = 0.0
        self._condition.seconds = self._clock() - started
        return self._lists

    def status(self) -> PartStatus:
        return self._condition.status()

    def is_steady(self) -> bool:
        """A kubelet that has restarted, or awaits pods or plugins, is asked in every cycle."""
        is_complete = self._condition.fault is None and not self._is_awaiting
        is_awaited = bool(self._unlisted_devices or self._unlisted_claims)
        return is_complete and not is_awaited and self._connection.is_current()

    async def close(self) -> None:
        self._connection.close()
        await asyncio.sleep(0)  # the event loop closes the descriptor in its next turn

    async def _refresh(self) -> None:
        is_v1, answer = await self._list()
        self._notice_restart()
        changed = False
        if answer != self._answer or self._unlisted_devices or self._unlisted_claims:
            changed = await self._take(answer)
        self._answer = answer
        self._judge()
        if is_v1 and (changed or self._allocatable_due()):
            await self._refresh_allocatable()

    def _notice_restart(self) -> None:
        if self._connection.socket_id != self._socket_id:
            self._socket_id = self._connection.socket_id
            self._unlisted_devices.expect(self._devices, self._clock())
            self._unlisted_claims.expect(self._claims, self._clock())
            self._allocatable_at = -inf

    async def _list(self) -> tuple[bool, bytes]:
        """Return whether the kubelet speaks v1, and its answer."""
        try:
            return True, await self._ask(LIST)
        except GRPCError as error:
            if error.status is not Status.UNIMPLEMENTED:
                raise
        return False, await self._ask(OLD_LIST)

    async def _ask(self, method: str) -> bytes:
        self._asked = method
        return await self._connection.answer(method)

    async def _take(self, answer: bytes) -> bool:
        """Return whether anything changed."""
        if (changes := await _in_thread_if_large(self._changes, answer)) is None:
            self._excess = 0
            return False
        found, lists, bad_ids = changes
        self._count_malformed(bad_ids)
        self._devices, self._claims, self._excess = found.devices, found.claims, found.excess
        return self._publish(lists)

    def _changes(self, answer: bytes) -> tuple[Listed, PodResourceLists, int] | None:
        """Read an answer. Return what it lists and how many new ids are malformed; None if nothing has changed."""
        found, now = read_list(answer), self._clock()
        old_devices = self._unlisted_devices.rows(found.pods, found.devices, now)
        # Several pods may share a claim, so a device of one pod is not taken away by another.
        old_claims = self._unlisted_claims.rows(found.pods, frozenset(), now)
        devices, claims = found.devices | old_devices, found.claims | old_claims
        awaited = _pods_of(old_devices | old_claims)
        is_same = (devices, claims, awaited) == (self._devices, self._claims, self._lists.awaited)
        if is_same and not found.excess:
            return None
        lists = replace(self._lists, devices=allocations(devices), dynamic=dynamic_allocations(claims), awaited=awaited)
        new = (devices - self._devices) | (claims - self._claims)
        return found._replace(devices=devices, claims=claims), lists, malformed(new)

    def _judge(self) -> None:
        """Report how much exceeds the limits, if anything does. The rest of the list is used."""
        detail = f"{self._excess} pods, containers or ids more than any node has are left out"
        fault = Fault(reason="too_many", call=LIST.rpartition("/")[2], detail=detail)
        self._condition.worked(fault if self._excess else None)

    def _publish(self, lists: PodResourceLists) -> bool:
        changed = lists != self._lists
        if changed:
            self._lists = lists
        return changed

    def _count_malformed(self, count: int) -> None:
        """Count a malformed id once, for as long as it is listed."""
        if count:
            self.errors["bad_id"] += count

    def _allocatable_due(self) -> bool:
        pause = AWAITED_SECONDS if self._is_awaiting else ALLOCATABLE_SECONDS
        return self._clock() - self._allocatable_at >= pause

    async def _refresh_allocatable(self) -> None:
        """The lists are complete without this answer, so a failure is only counted."""
        self._allocatable_at = self._clock()
        try:
            rows, excess, pairs = await _in_thread_if_large(read_allocatable, await self._ask(ALLOCATABLE))
        except Exception as error:
            reason = rpc.fault(error, ALLOCATABLE).reason
            self.errors[reason] += 1
            self._is_awaiting = reason != "unimplemented"
            return
        if excess:
            self.errors["too_many"] += 1
        self._count_malformed(malformed(rows - self._allocatable))
        self._allocatable = rows
        silent = {device.resource for device in self._lists.devices} - {resource for resource, _ in pairs}
        self._is_awaiting = bool(silent)
        # What a plugin offered before the kubelet restarted is still there, though it has not registered again.
        awaited = [pair for pair in self._lists.allocatable if pair[0] in silent]
        self._publish(replace(self._lists, allocatable=(*pairs, *awaited)))

    def _note(self, error: Exception) -> None:
        fault = rpc.fault(error, self._asked)
        self._condition.failed(fault)
        if fault.reason == "rate_limited":
            self._pause = min(2 * self._pause or 1.0, LONGEST_PAUSE)
            self._resume_at = self._clock() + self._pause
