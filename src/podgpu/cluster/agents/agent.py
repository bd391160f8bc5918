"""One agent, read by conditional requests: an unchanged snapshot costs neither a body nor a decoding."""

import asyncio

from podgpu.cluster.agents.client import AgentClient
from podgpu.cluster.node_state import ReadFault
from podgpu.errors import UserError
from podgpu.model import Snapshot, Written
from podgpu.model.document import SchemaError, decode

SLIM = "/api/v1/snapshot?form=slim"
FULL = "/api/v1/snapshot"


class AgentReader:
    """`node` is the one that Kubernetes runs the agent on; empty if only its address is known."""

    origin = "agent"

    def __init__(
        self, client: AgentClient, url: str, node: str = "", *, turn: asyncio.Lock | None = None
    ) -> None:
        """With a `turn` that agents share, documents are decoded one by one: sixty at once would hold up others."""
        self._client = client
        self._turn = turn or asyncio.Lock()
        self._url = url.rstrip("/")
        self._node = node
        self._etag = ""
        self._snapshot: Snapshot | None = None
        self.written: Written | None = None

    async def read(self) -> Snapshot:
        answer = await self._client.get(self._url + SLIM, self._etag if self._snapshot else "")
        if answer.body is None:
            if self._snapshot is None:
                raise ReadFault("garbage", "it answers that nothing has changed, but sent nothing before")
            return self._snapshot
        self._snapshot = self.written = None
        async with self._turn:
            self._snapshot = found = self._checked(answer.body)
            await asyncio.sleep(0)
        self._etag = answer.etag
        if answer.packed and _may_stand_in_another(answer.body):
            self.written = Written(found, answer.packed)
        return found

    async def full(self) -> Snapshot:
        """Return the snapshot with everything in it."""
        answer = await self._client.get(self._url + FULL)
        return self._checked(answer.body or b"")

    async def close(self) -> None:
        self._client.forget(self._url)

    def _checked(self, body: bytes) -> Snapshot:
        try:
            snapshot = decode(body)
        except SchemaError as error:
            raise ReadFault("newer_schema" if error.is_newer else "older_schema", str(error)) from None
        except UserError as error:
            raise ReadFault("garbage", str(error)) from None
        # A snapshot of another node would be booked to this one.
        if self._node and snapshot.node != self._node:
            raise ReadFault("wrong_node", f"it reports node {snapshot.node!r}, but runs on {self._node!r}")
        if not snapshot.node:
            raise ReadFault("wrong_node", "it does not say which node it reports")
        return snapshot


def _may_stand_in_another(document: bytes) -> bool:
    """Whether it is in one line, and UTF-8 also in what the decoder skips because it does not know it."""
    if b"\n" in document or b"\r" in document:
        return False
    try:
        return document.isascii() or bool(document.decode())
    except UnicodeDecodeError:
        return False
