"""Which container was given which device, by the kubelet's pod-resources socket. It knows names, not UIDs."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from msgspec import Struct
from msgspec.structs import replace

from podgpu.kube.condition import Condition
from podgpu.kube.kubelet import device_lists, rpc
from podgpu.kube.kubelet.connection import KubeletConnection
from podgpu.kube.kubelet.device_lists import Rows, Unlisted
from podgpu.model import Allocation, DynamicAllocation, Fault, PartStatus

LIST = "/v1.PodResourcesLister/List"
OLD_LIST = "/v1alpha1.PodResourcesLister/List"  # same numbers, fewer fields
ALLOCATABLE = "/v1.PodResourcesLister/GetAllocatableResources"
ALLOCATABLE_SECONDS = 60.0
AWAITED_SECONDS = 2.0  # while a plugin that has given devices out has not registered
LONGEST_PAUSE = 30.0
SMALL = 64 << 10  # bytes; a larger answer is read in a thread of its own

T = TypeVar("T")


class PodResourceLists(Struct, frozen=True, kw_only=True):
    """`allocatable` are (resource, device id) pairs: the healthy devices, whether or not a container has them."""

    devices: tuple[Allocation, ...] = ()
    dynamic: tuple[DynamicAllocation, ...] = ()
    allocatable: tuple[tuple[str, str], ...] = ()


class News(Struct, frozen=True, kw_only=True):
    """A list that differs from the last one, and what is beyond the bounds."""

    given: Rows
    claimed: Rows
    bad: int
    excess: int
    devices: tuple[Allocation, ...]
    dynamic: tuple[DynamicAllocation, ...]


def offers(answer: bytes) -> tuple[device_lists.Offered, tuple[tuple[str, str], ...]]:
    found = device_lists.offered(answer)
    return found, tuple((resource, device_id) for resource, device_id in device_lists.texts(found.rows))


async def aside(function: Callable[[bytes], T], answer: bytes) -> T:
    """Read an answer, in a thread if it is a large one: the event loop has other work."""
    return function(answer) if len(answer) <= SMALL else await asyncio.to_thread(function, answer)


class PodResources:
    """A failure keeps the last map and shows in `status`."""

    name = "podresources"

    def __init__(
        self, kubelet: Path, *, deadline: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = KubeletConnection(kubelet / "pod-resources" / "kubelet.sock")
        self._deadline = deadline
        self._clock = clock
        self._condition = Condition(self.name, clock=clock)
        self.errors = self._condition.errors
        self._allocated = PodResourceLists()
        self._answer = b""
        self._given: Rows = frozenset()
        self._claimed: Rows = frozenset()
        self._offered: Rows = frozenset()
        self._seal = self._connection.seal
        self._ungiven, self._unclaimed = Unlisted(), Unlisted()
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
            return self._allocated
        try:
            async with asyncio.timeout(self._deadline):
                await self._refresh()
        except Exception as error:
            self._note(error)
        else:
            self._pause = 0.0
        self._condition.seconds = self._clock() - started
        return self._allocated

    def status(self) -> PartStatus:
        return self._condition.status()

    async def close(self) -> None:
        self._connection.close()
        await asyncio.sleep(0)  # the event loop closes the descriptor in its next turn

    async def _refresh(self) -> None:
        is_v1, answer = await self._list()
        self._notice_restart()
        is_news = answer != self._answer or self._ungiven or self._unclaimed
        changed = bool(is_news) and await self._take(answer)
        self._answer = answer
        self._judge()
        if is_v1 and (changed or self._allocatable_due()):
            await self._refresh_allocatable()

    def _notice_restart(self) -> None:
        if self._connection.seal != self._seal:
            self._seal = self._connection.seal
            self._ungiven.expect(self._given, self._clock())
            self._unclaimed.expect(self._claimed, self._clock())
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
        found = await aside(self._news, answer)
        self._excess = found.excess if found else 0
        if found is None:
            return False
        self._count_bad(found.bad)
        self._given, self._claimed = found.given, found.claimed
        return self._publish(replace(self._allocated, devices=found.devices, dynamic=found.dynamic))

    def _news(self, answer: bytes) -> News | None:
        """Read an answer. Return None if it says what is known already."""
        found, now = device_lists.listed(answer), self._clock()
        given = found.given | self._ungiven.rows(found.pods, found.given, now)
        # A claim may be several pods', so a device of one is not taken away by another.
        claimed = found.claimed | self._unclaimed.rows(found.pods, frozenset(), now)
        if not found.excess and (given, claimed) == (self._given, self._claimed):
            return None
        return News(
            given=given,
            claimed=claimed,
            bad=len(device_lists.bad((given - self._given) | (claimed - self._claimed))),
            excess=found.excess,
            devices=device_lists.allocations(given),
            dynamic=device_lists.dynamic_allocations(claimed),
        )

    def _judge(self) -> None:
        """A list that is too long is used as far as it goes."""
        if self._excess:
            detail = f"{self._excess} pods, containers or ids more than any node has are left out"
            self._condition.worked_partly(
                Fault(reason="too_many", call=LIST.rpartition("/")[2], detail=detail)
            )
        else:
            self._condition.worked()

    def _publish(self, allocated: PodResourceLists) -> bool:
        changed = allocated != self._allocated
        if changed:
            self._allocated = allocated
        return changed

    def _count_bad(self, bad: int) -> None:
        """Count a bad id once, for as long as it is listed."""
        if bad:
            self.errors["bad_id"] += bad

    def _allocatable_due(self) -> bool:
        if self._allocatable_at is None:
            return True
        pause = AWAITED_SECONDS if self._is_awaiting else ALLOCATABLE_SECONDS
        return self._clock() - self._allocatable_at >= pause

    async def _refresh_allocatable(self) -> None:
        """The map is complete without this answer, so a failure is only counted."""
        self._allocatable_at = self._clock()
        try:
            found, pairs = await aside(offers, await self._ask(ALLOCATABLE))
        except Exception as error:
            reason = rpc.fault(error, ALLOCATABLE).reason
            self.errors[reason] += 1
            self._is_awaiting = reason != "unimplemented"
            return
        if found.excess:
            self.errors["too_many"] += 1
        self._count_bad(len(device_lists.bad(found.rows - self._offered)))
        self._offered = found.rows
        silent = {one.resource for one in self._allocated.devices} - {resource for resource, _ in pairs}
        self._is_awaiting = bool(silent)
        # What a plugin offered before the kubelet restarted is still there, though it has not registered again.
        awaited = [pair for pair in self._allocated.allocatable if pair[0] in silent]
        self._publish(replace(self._allocated, allocatable=(*pairs, *awaited)))

    def _note(self, error: Exception) -> None:
        fault = rpc.fault(error, self._asked)
        self._condition.failed(fault)
        if fault.reason == "rate_limited":
            self._pause = min(2 * self._pause or 1.0, LONGEST_PAUSE)
            self._resume_at = self._clock() + self._pause
