"""Pushes the newest snapshot once per interval. Counters are cumulative, so older ones need not be sent."""

import asyncio
import gzip
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from podgpu.model import Fault, PartStatus, Snapshot
from podgpu.net.client import HttpClient
from podgpu.net.connection import HttpFault
from podgpu.net.login import ClientCertificate, Login
from podgpu.push.environment import Destination

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
LAST_SECONDS = 1.0  # for the last push: the agent has few seconds to stop

ANSWER_BYTES = 64 << 10
DETAIL_LENGTH = 300
_BY_STATUS = {401: "unauthorized", 403: "unauthorized", 413: "too_large", 429: "throttled"}
_BY_FAULT = {
    "timeout": "deadline",
    "garbage": "garbage",
    "too_large": "garbage",
    "tls": "tls",
    "certificates": "tls",
}
# OTLP says that these are worth another try.
_AGAIN = frozenset({429, 502, 503, 504})

Encode = Callable[[Snapshot], bytes]
Complaint = Callable[[bytes], str]


class PushedFeed(Protocol):
    @property
    def snapshot(self) -> Snapshot: ...
    async def changed(self, seen: Snapshot) -> Snapshot: ...


class Undelivered(NamedTuple):
    """Why a push failed. `again` says that the same may be sent again, `pause` how many seconds to wait before that."""

    reason: str
    detail: str
    again: bool = False
    pause: float = 0.0


class Push:
    """A part of the agent: a collector that is down or slow, or that refuses, affects nothing but its status.

    `complaint` reads from the answer of a collector what it did not accept; empty if it accepted everything.
    """

    name = "otlp"

    def __init__(
        self,
        feed: PushedFeed,
        destination: Destination,
        encode: Encode,
        complaint: Complaint,
        *,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        to = destination
        client = ClientCertificate(cert=to.cert_file, key=to.key_file) if to.cert_file and to.key_file else None
        self.errors: Counter[str] = Counter()
        self._feed = feed
        self._destination = to
        self._encode = encode
        self._complaint = complaint
        self._client = HttpClient(Login(ca_file=to.ca_file, client=client), connections=1)
        self._first_pause = first_pause
        self._fault: Fault | None = Fault(reason="starting")
        self._failing_since = time.monotonic()
        self._good_at: float | None = None
        self._seconds = 0.0
        self._delivered = feed.snapshot  # the agent's first holds nothing yet

    async def run(self) -> None:
        """Push until cancelled."""
        seen = self._feed.snapshot
        while True:
            due = time.monotonic() + self._destination.interval
            seen = await self._feed.changed(seen)
            # In a thread, since thousands of series take long to encode and to compress.
            pause = await self._deliver(seen, await asyncio.to_thread(self._body, seen), due)
            await asyncio.sleep(max(pause, due - time.monotonic()))

    def status(self) -> PartStatus:
        now = time.monotonic()
        fault = self._fault
        return PartStatus(
            name=self.name,
            outgoing=True,
            up=fault is None,
            fault=fault and Fault(reason=fault.reason, detail=fault.detail, seconds=now - self._failing_since),
            duration_seconds=self._seconds,
            age_seconds=None if self._good_at is None else now - self._good_at,
        )

    async def close(self) -> None:
        """Push what was read since the last push, if the collector takes it at once. Call it after `run` has ended."""
        last = self._feed.snapshot
        if last is not self._delivered:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._attempt(last, await asyncio.to_thread(self._body, last))
        await self._client.close()

    def _body(self, snapshot: Snapshot) -> bytes:
        body = self._encode(snapshot)
        return gzip.compress(body, 6, mtime=0) if self._destination.gzip else body

    async def _deliver(self, snapshot: Snapshot, body: bytes, due: float) -> float:
        """Try until it is delivered, refused for good, or the next one is due. Return how long that has to wait."""
        pause = self._first_pause
        while (failure := await self._attempt(snapshot, body)) and failure.again:
            wait = max(failure.pause, pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads the agents' retries
            if time.monotonic() + wait >= due:
                return failure.pause
            await asyncio.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)
        return 0.0

    async def _attempt(self, snapshot: Snapshot, body: bytes) -> Undelivered | None:
        began = time.monotonic()
        failure = await self._send(body)
        now = time.monotonic()
        self._seconds = now - began
        if failure is None:
            self._fault, self._good_at, self._delivered = None, now, snapshot
            return None
        self.errors[failure.reason] += 1
        if self._fault is None or self._fault.reason != failure.reason:
            self._failing_since = now
        self._fault = Fault(reason=failure.reason, detail=failure.detail[:DETAIL_LENGTH])
        return failure

    async def _send(self, body: bytes) -> Undelivered | None:
        to = self._destination
        encoding = {"Content-Encoding": "gzip"} if to.gzip else {}
        headers = {**to.headers, "Content-Type": "application/x-protobuf", **encoding}
        try:
            answer = await self._client.request("POST", to.url, headers, body, seconds=to.timeout, limit=ANSWER_BYTES)
        except HttpFault as fault:
            reason = _BY_FAULT.get(fault.reason, "unreachable")
            return Undelivered(reason, fault.detail, again=reason in ("deadline", "unreachable"))
        status = answer.status
        if not 200 <= status < 300:
            reason = _BY_STATUS.get(status) or ("unreachable" if status in _AGAIN else "refused")
            return Undelivered(reason, f"HTTP {status}", again=status in _AGAIN, pause=answer.retry_after)
        complaint = self._complaint(answer.body)
        return Undelivered("rejected", complaint) if complaint else None
