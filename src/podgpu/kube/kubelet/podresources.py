"""Which container has which device, by the kubelet's pod-resources socket. It knows names, not UIDs."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from msgspec import Struct
from msgspec.structs import replace

from podgpu.kube.condition import Condition
from podgpu.kube.kubelet import device_lists, rpc
from podgpu.kube.kubelet.device_lists import Rows, Unlisted
from podgpu.kube.kubelet.rpc import KubeletConnection
from podgpu.model import Allocation, DynamicAllocation, Fault, PartStatus

LIST = "/v1.PodResourcesLister/List"
OLD_LIST = "/v1alpha1.PodResourcesLister/List"  # same numbers, fewer fields
ALLOCATABLE = "/v1.PodResourcesLister/GetAllocatableResources"
ALLOCATABLE_SECONDS = 60.0
AWAITED_SECONDS = 2.0  # while a plugin with allocated devices has not registered
LONGEST_PAUSE = 30.0
SMALL = 64 << 10  # bytes; a larger answer is read in a thread of its own

T = TypeVar("T")


class PodResourceLists(Struct, frozen=True, kw_only=True):
    """`allocatable` are (resource, device id) pairs: the healthy devices, whether or not a container has them."""

    devices: tuple[Allocation, ...] = ()
    dynamic: tuple[DynamicAllocation, ...] = ()
    allocatable: tuple[tuple[str, str], ...] = ()


class _ChangedList(NamedTuple):
    """A list that differs from the last one, and how much of it is malformed or exceeds the limits."""

    devices: Rows
    claims: Rows
    malformed: int
    excess: int
    lists: PodResourceLists


def _read_offers(answer: bytes) -> tuple[Rows, int, tuple[tuple[str, str], ...]]:
    rows, excess = device_lists.offered(answer)
    return rows, excess, tuple((resource, device_id) for resource, device_id in device_lists.texts(rows))


async def _in_thread_if_large(function: Callable[[bytes], T], answer: bytes) -> T:
    return function(answer) if len(answer) <= SMALL else await asyncio.to_thread(function, answer)


class PodResources:
    """A failure keeps the last lists and shows in `status`."""

    name = "podresources"

    def __init__(
        self, kubelet: Path, *, deadline: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = KubeletConnection(kubelet / "pod-resources" / "kubelet.sock")
        self._deadline = deadline
        self._clock = clock
        self._condition = Condition(self.name, clock=clock)
        self.errors = self._condition.errors
        self._lists = PodResourceLists()
        self._answer = b""
        self._devices: Rows = frozenset()
        self._claims: Rows = frozenset()
        self._offered: Rows = frozenset()
        self._socket_id = self._connection.socket_id
        self._unlisted_devices, self._unlisted_claims = Unlisted(), Unlisted()
        self._excess = 0
        self._asked = LIST
        self._allocatable_at: float | None = None
        self._is_awaiting = False
        self._pause = 0.0
        self._resume_at = 0.0

    async def read(self) -> PodResourceLists:
        """Ask the kubelet, for at most `deadline` seconds. While it limits our rate, return what is known.

        The same object is returned for as long as nothing changes.
        """
        started = self._clock()
        if self._pause and started < self._resume_at:
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
            self._allocatable_at = None

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
        found = await _in_thread_if_large(self._changes, answer)
        self._excess = found.excess if found else 0
        if found is None:
            return False
        self._count_malformed(found.malformed)
        self._devices, self._claims = found.devices, found.claims
        return self._publish(found.lists)

    def _changes(self, answer: bytes) -> _ChangedList | None:
        """Read an answer. Return None if it lists what is known already."""
        found, now = device_lists.listed(answer), self._clock()
        devices = found.devices | self._unlisted_devices.rows(found.pods, found.devices, now)
        # Several pods may share a claim, so a device of one pod is not taken away by another.
        claims = found.claims | self._unlisted_claims.rows(found.pods, frozenset(), now)
        if not found.excess and (devices, claims) == (self._devices, self._claims):
            return None
        lists = replace(
            self._lists,
            devices=device_lists.allocations(devices),
            dynamic=device_lists.dynamic_allocations(claims),
        )
        new = (devices - self._devices) | (claims - self._claims)
        return _ChangedList(devices, claims, len(device_lists.malformed(new)), found.excess, lists)

    def _judge(self) -> None:
        """A list that is too long is used as far as it goes."""
        if self._excess:
            detail = f"{self._excess} pods, containers or ids more than any node has are left out"
            self._condition.worked_partly(
                Fault(reason="too_many", call=LIST.rpartition("/")[2], detail=detail)
            )
        else:
            self._condition.worked()

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
        if self._allocatable_at is None:
            return True
        pause = AWAITED_SECONDS if self._is_awaiting else ALLOCATABLE_SECONDS
        return self._clock() - self._allocatable_at >= pause

    async def _refresh_allocatable(self) -> None:
        """The lists are complete without this answer, so a failure is only counted."""
        self._allocatable_at = self._clock()
        try:
            rows, excess, pairs = await _in_thread_if_large(_read_offers, await self._ask(ALLOCATABLE))
        except Exception as error:
            reason = rpc.fault(error, ALLOCATABLE).reason
            self.errors[reason] += 1
            self._is_awaiting = reason != "unimplemented"
            return
        if excess:
            self.errors["too_many"] += 1
        self._count_malformed(len(device_lists.malformed(rows - self._offered)))
        self._offered = rows
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
