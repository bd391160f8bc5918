"""The node's pods by the kubelet's own Pods API, without the API server and without any rights."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from google.protobuf.message import DecodeError, Message
from grpclib.client import Channel

from podgpu.kube._gen.pods_pb2 import EnvVar, PodMessage, Quantity, Time, WatchEvent
from podgpu.kube.condition import Condition
from podgpu.kube.kubelet import PODS_API_FOLDER, rpc
from podgpu.kube.kubelet.rpc import AnswerRejected, FieldReader, KubeletCall
from podgpu.kube.limits import MOST_LISTED, MOST_PODS, Prefixes, name_crowded_pod
from podgpu.kube.object_cache import ObjectStore
from podgpu.kube.pod_object import SUBMITTER, decode_pod, pod_order, to_pod
from podgpu.kube.throttle import Backoff, CpuThrottle
from podgpu.model import Fault, PartStatus, Pod
from podgpu.supervise import brief

LIST = "/v1alpha1.Pods/ListPods"
WATCH = "/v1alpha1.Pods/WatchPods"
RELIST_SECONDS = 300.0  # a watch may have fallen silent unnoticed
SYNC_SECONDS = 10.0
LOOK_SECONDS = 2.0  # between two checks for a missing socket
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 30.0

_ADDED, _MODIFIED, _DELETED, _SYNCED = 1, 2, 3, 4
_YEAR_10000 = 253402300800


class PodsApi:
    """Lists, then watches, and lists again whenever the watch is lost. A watch alone begins with all pods too.

    `annotations` are prefixes of those to keep.
    """

    name = "pods-api"

    def __init__(
        self,
        kubelet: Path,
        *,
        annotations: Prefixes = (),
        deadline: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._socket = kubelet / PODS_API_FOLDER / "pods-api.sock"
        self._annotations = annotations
        self._deadline = deadline
        self._clock = clock
        self._sleep = sleep
        self._pods = ObjectStore(pod_order, MOST_PODS)
        self._condition = Condition(self.name, clock=clock)
        self.errors = self._condition.errors
        self._asked = LIST
        self._list_fault: Fault | None = None
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        self._throttle = CpuThrottle()

    async def run(self) -> None:
        while True:
            try:
                await self._session()
            except Exception as error:
                self._condition.failed(rpc.fault(error, self._asked))
                await self._rest()

    def pods(self) -> tuple[Pod, ...] | None:
        return self._pods.items() if self._condition.has_worked else None

    def status(self) -> PartStatus:
        return name_crowded_pod(self._condition.status(), self.pods())

    async def _session(self) -> None:
        """List and watch, until it is time to list again or something fails."""
        with closing(rpc.open_channel(self._socket)) as channel:
            await self._listed(channel)
            watch = brief(self._watch(channel))
            try:
                await asyncio.wait({watch}, timeout=RELIST_SECONDS)
                if watch.done():
                    await watch
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)

    async def _listed(self, channel: Channel) -> None:
        """A list that is too large is no fault, since the watch sends the pods one at a time.

        Pods can make it too large. But only a kubelet that is in trouble sends too many fields.
        """
        self._list_fault = None
        try:
            await self._list(channel)
        except AnswerRejected as refused:
            if refused.reason not in ("too_large", "too_many"):
                raise
            if refused.reason == "too_large":
                self.errors[refused.reason] += 1
            else:
                self._list_fault = rpc.fault(refused, LIST)

    async def _list(self, channel: Channel) -> None:
        self._asked = LIST
        started = self._clock()
        async with asyncio.timeout(self._deadline):
            answer = await rpc.answer(channel, LIST)
        pods: list[Pod | None] = []
        listed = FieldReader(MOST_LISTED).contents(memoryview(answer), 1)
        for data in islice(listed, MOST_PODS):
            async with self._throttle.work():
                pods.append(self._pod(bytes(data)))
        self._publish((pod for pod in pods if pod), excess=sum(1 for _ in islice(listed, MOST_PODS)))
        self._condition.seconds = self._clock() - started

    async def _watch(self, channel: Channel) -> None:
        self._asked = WATCH
        async with rpc.call(channel, WATCH) as events:
            await self._sync(events)
            self._backoff.reset()
            with self._condition.kept_current():
                async for data in events:
                    async with self._throttle.work():
                        self._apply(WatchEvent.FromString(data))
                        self._judge()
        raise AnswerRejected("unavailable", "the kubelet ended the watch")

    async def _sync(self, events: KubeletCall) -> None:
        """Keep the pods that a watch begins with, and drop those that ended between the list and the watch."""
        seen: set[str | None] = set()
        async with asyncio.timeout(SYNC_SECONDS):
            async for data in events:
                event = WatchEvent.FromString(data)
                if event.type == _SYNCED:
                    break
                async with self._throttle.work():
                    seen.add(self._apply(event))
            else:
                raise AnswerRejected("unavailable", "the watch ended before it had sent all pods")
        self._publish((pod for pod in self._pods.items() if pod.uid in seen), self._pods.excess)

    def _apply(self, event: WatchEvent) -> str | None:
        """Return the UID of the event's pod."""
        if event.type not in (_ADDED, _MODIFIED, _DELETED):
            self.errors["unknown_event"] += 1
            return None
        pod = self._pod(event.pod)
        if pod is None:
            return None
        if event.type == _DELETED:
            self._pods.drop(pod.uid)
        else:
            self._pods.put(pod.uid, pod)
        return pod.uid

    def _pod(self, data: bytes) -> Pod | None:
        try:
            return to_pod(decode_pod(pod_json(data)), self._annotations, self.errors)
        except ValueError:  # that of msgspec too
            self.errors["bad_pod"] += 1
            return None

    def _publish(self, pods: Iterable[Pod], excess: int = 0) -> None:
        self._pods.replace_all({pod.uid: pod for pod in pods}, excess)
        self._judge()

    def _judge(self) -> None:
        fault = self._list_fault
        if self._pods.excess:
            detail = f"more than {MOST_PODS} pods; no node has as many, and the others are left out"
            fault = Fault(reason="too_many", call=self._asked.rpartition("/")[2], detail=detail)
        self._condition.worked(fault)

    async def _rest(self) -> None:
        """Wait longer each time. While there is no socket, look for its file often, since that costs nothing."""
        if self._condition.fault and self._condition.fault.reason == "no_socket":
            await self._sleep(LOOK_SECONDS)
            while not os.path.exists(self._socket):  # noqa: ASYNC240, PTH110 - quick, and never raises
                await self._sleep(LOOK_SECONDS)
            self._backoff.reset()
        else:
            await self._sleep(self._backoff.pause())


def pod_json(message: bytes | PodMessage) -> bytes:
    """Return a pod as the API server writes it. Raise ValueError for bytes that are no protobuf message."""
    try:
        found = PodMessage.FromString(message) if isinstance(message, bytes) else message
    except DecodeError as error:
        raise ValueError("not a pod") from error
    return msgspec.json.encode({"spec": {}, "status": {}, **_object(found)})


def _object(message: Message) -> dict[str, Any]:
    return {field.json_name: _value(value) for field, value in message.ListFields()}


def _value(value: Any) -> Any:
    """A pod may have 100,000 variables, of which only one is read."""
    match value:
        case str() | bool():
            return value
        case Quantity():
            return value.text
        case Time():
            return _time(value)
        case Message():
            return _object(value)
        case _ if hasattr(value, "items"):
            return {key: _value(content) for key, content in value.items()}
        case _:
            return [_value(item) for item in value if not isinstance(item, EnvVar) or item.name == SUBMITTER]


def _time(time: Time) -> str:
    """A time up to 1970 means that there is none."""
    if not 0 < time.seconds < _YEAR_10000:
        return ""
    return datetime.fromtimestamp(time.seconds + time.nanos / 1e9, UTC).isoformat()
