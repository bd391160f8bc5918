"""The collector over HTTP: one attempt at a time, and a closed set of reasons for failures."""

from collections.abc import Callable

from podgpu.net.client import HttpAnswer, HttpClient
from podgpu.net.connection import HttpFault
from podgpu.net.login import ClientCertificate, Login
from podgpu.push.environment import Destination

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
# Those that OTLP declares worth another try.
_AGAIN = frozenset({429, 502, 503, 504})

Complaint = Callable[[bytes], str]


class Undelivered(Exception):
    """Why the collector did not take it. `again` says that the same may be sent once more, after `pause` seconds."""

    def __init__(self, reason: str, detail: str, *, again: bool = False, pause: float = 0.0) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail[:DETAIL_LENGTH]
        self.again = again
        self.pause = pause


class CollectorClient:
    """`complaint` reads the answer of a collector that took the request: what it left out, or nothing."""

    def __init__(self, destination: Destination, complaint: Complaint) -> None:
        to = destination
        client = (
            ClientCertificate(cert=to.cert_file, key=to.key_file) if to.cert_file and to.key_file else None
        )
        self._destination = to
        self._complaint = complaint
        self._client = HttpClient(Login(ca_file=to.ca_file, client=client), connections=1)

    async def send(self, body: bytes) -> None:
        """Send a body, compressed already where that is asked for. Raises Undelivered."""
        to = self._destination
        encoding = {"Content-Encoding": "gzip"} if to.gzip else {}
        headers = {**to.headers, "Content-Type": "application/x-protobuf", **encoding}
        try:
            answer = await self._client.request(
                "POST", to.url, headers, body, seconds=to.timeout, limit=ANSWER_BYTES
            )
        except HttpFault as fault:
            reason = _BY_FAULT.get(fault.reason, "unreachable")
            raise Undelivered(reason, fault.detail, again=reason in ("deadline", "unreachable")) from None
        self._check(answer)

    async def close(self) -> None:
        await self._client.close()

    def _check(self, answer: HttpAnswer) -> None:
        status = answer.status
        if not 200 <= status < 300:
            reason = _BY_STATUS.get(status) or ("unreachable" if status in _AGAIN else "refused")
            raise Undelivered(reason, f"HTTP {status}", again=status in _AGAIN, pause=answer.retry_after)
        if complaint := self._complaint(answer.body):
            raise Undelivered("rejected", complaint)
