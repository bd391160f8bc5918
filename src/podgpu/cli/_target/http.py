"""A cluster, or an agent as a cluster of one node, over one HTTP connection."""

import asyncio
import threading
import time
from urllib.parse import urlencode

from msgspec.structs import replace

from podgpu.cli._target.progress import waiting
from podgpu.cluster.agent_reader import open_login
from podgpu.cluster.login_options import LoginOptions
from podgpu.errors import UserError
from podgpu.insight import InsightSettings, conclude, ensured
from podgpu.insight.part_problems import VIEW
from podgpu.model import Cluster, Fault, PartStatus, Snapshot, of_one
from podgpu.net.client import HttpAnswer, HttpClient
from podgpu.net.connection import ConnectionRefused, HttpFault
from podgpu.numbers import duration
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json

TIMEOUT_SECONDS = 10.0
LARGEST_BYTES = 512 * 2**20
_NOT_PODGPU = "is neither an agent nor a cluster of podgpu; give another --url"
_ADVICE = "is `podgpu agent` or `podgpu cluster` running there? give another address with --url"


class NothingListens(UserError):
    """The connection is refused."""


class DocumentClient:
    """Each request has one deadline, even if the answer comes in small pieces."""

    def __init__(self, url: str, chosen: LoginOptions, timeout: float = TIMEOUT_SECONDS) -> None:
        self.url = url
        self._chosen = chosen
        self._login = open_login(chosen, [url])
        self._timeout = timeout
        self._client = HttpClient(self._login)
        self._runner = asyncio.Runner()
        self._running = threading.Lock()

    def get(self, path: str, etag: str = "") -> tuple[HttpAnswer, bytes | None]:
        """Return any answer of 200, 304 or 404, and its body if it is another than the `etag` names.

        All else is a UserError that says what to do.
        """
        try:
            with self._running:
                answer = self._runner.run(self._asked(path, etag))
            if answer.status not in (200, 304, 404):
                raise UserError(f"{self.url} {self._refusal(answer.status)}")
            return answer, None if answer.status == 304 else answer.plain(LARGEST_BYTES)
        except ConnectionRefused:
            raise NothingListens(f"{self.url} refuses the connection; {_ADVICE}") from None
        except HttpFault as fault:
            raise UserError(f"{self.url} {self._problem(fault)}") from None

    def document(self, path: str, otherwise: str) -> bytes:
        """Return the body of an answer of 200. All else is a UserError: what the server says, or `otherwise`."""
        answer, body = self.get(path)
        if answer.status != 200 or body is None:
            raise UserError((body or b"").decode(errors="replace").strip() or otherwise)
        return body

    def twin(self) -> "DocumentClient":
        """Open another one for the same server, for another thread."""
        return DocumentClient(self.url, self._chosen, self._timeout)

    def close(self) -> None:
        """Close it, unless another thread waits for an answer: that ends with the process."""
        if self._running.acquire(blocking=False):
            self._runner.run(self._client.close())
            self._runner.close()

    async def _asked(self, path: str, etag: str) -> HttpAnswer:
        headers = {"Accept-Encoding": "gzip", **({"If-None-Match": etag} if etag else {})}
        url = self.url.rstrip("/") + path
        return await self._client.request("GET", url, headers, seconds=self._timeout, limit=LARGEST_BYTES)

    def _refusal(self, status: int) -> str:
        if status == 401 and not self._login.has_secret:
            return "asks for a login; give --login.token-file or --login.password-file"
        if status == 401:
            return "does not accept the login; check the files of --login"
        if status == 403:
            return "does not let this account read; ask its administrator for access"
        return f"answers {status}; {_ADVICE}"

    def _problem(self, fault: HttpFault) -> str:
        if fault.reason == "timeout":
            return f"does not answer within {duration(self._timeout)}; {_ADVICE}"
        if fault.reason == "tls":
            advice = "give its authority with --login.ca-file, or http:// if it has no TLS"
            return f"and podgpu do not agree on TLS ({fault.detail}); {advice}"
        if fault.reason in ("credential", "certificates"):
            return f"cannot be logged in to: {fault.detail}; check the files of --login"
        return f"cannot be read ({fault.detail}); {_ADVICE}"


CLUSTER = "/api/v1/cluster"
SNAPSHOT = "/api/v1/snapshot"
HISTORY = "/api/v1/history"
# How often to ask whether there is anything new. The answer is short if there is not.
QUICKEST_SECONDS, SLOWEST_SECONDS = 0.5, 2.0
REST = 2.0  # times as long as reading took: a large cluster must not keep the machine busy


class HttpTarget:
    """The first answer shows whether it is an agent or a cluster.

    A server that stops answering leaves the last cluster, and a part of it that says why.
    """

    player = None

    def __init__(self, client: DocumentClient, settings: InsightSettings) -> None:
        self._client = client
        self._settings = settings
        self._etag = ""
        self._asked_at = 0.0
        self._path = CLUSTER
        self._pause = SLOWEST_SECONDS
        try:
            with waiting(lambda: f"asking {client.url}"):
                self._good = self.cluster = self._first()
        except BaseException:
            client.close()
            raise

    @property
    def is_one_node(self) -> bool:
        return self._path == SNAPSHOT

    def changed(self, seen: Cluster, seconds: float) -> Cluster:
        """Return the newest cluster once it is another than `seen`, or `seen` after so many seconds."""
        until = time.monotonic() + seconds
        while self.cluster is seen and time.monotonic() < until:
            due = self._asked_at + self._pause
            time.sleep(max(0.0, min(due, until) - time.monotonic()))
            if time.monotonic() >= due:
                self._ask()
        return self.cluster

    def full(self, node: str) -> Snapshot:
        """Return the node's snapshot with everything in it, where the cluster's is slim."""
        unknown = f"nothing is known of the GPUs of node {node}; see"
        if self._path == CLUSTER:
            with waiting(lambda: f"asking for node {node}"):
                path = f"{SNAPSHOT}?{urlencode({'node': node})}"
                return self._concluded(self._client.document(path, f"{unknown} `podgpu top nodes`"))
        found = next((known.snapshot for known in self.cluster.nodes if known.name == node), None)
        if found is None:
            raise UserError(f"{unknown} `podgpu top`")
        return found

    def past(self, at: float) -> Cluster:
        # Another thread may be waiting for an answer of the other client.
        client = self._client.twin()
        try:
            keeps_none = f"{self._client.url} keeps no history; use the same version of podgpu"
            return self._decoded(client.document(f"{HISTORY}?{urlencode({'at': at})}", keeps_none))
        finally:
            client.close()

    def close(self) -> None:
        self._client.close()

    def _first(self) -> Cluster:
        answer, body = self._client.get(self._path)
        if answer.status == 404:
            self._path = SNAPSHOT
            answer, body = self._client.get(self._path)
        if body is None or answer.status == 404:
            raise UserError(f"{self._client.url} {_NOT_PODGPU}")
        return self._read(body, answer.etag)

    def _ask(self) -> None:
        try:
            answer, body = self._client.get(self._path, self._etag)
            if answer.status == 404:
                raise UserError(f"{self._client.url} {_NOT_PODGPU}")
            if body is not None:
                self._good = self._read(body, answer.etag)
            self.cluster = self._good
        except UserError as error:
            silent = PartStatus(name=VIEW, up=False, fault=Fault(reason="unreachable", detail=str(error)))
            if silent not in self.cluster.parts:
                self.cluster = ensured(replace(self._good, parts=(*self._good.parts, silent)), self._settings)
        self._asked_at = time.monotonic()

    def _read(self, body: bytes, etag: str) -> Cluster:
        begun = time.monotonic()
        cluster, pause = self._decoded(body), SLOWEST_SECONDS
        if self._path == SNAPSHOT:
            pause = min(max(cluster.interval_seconds / 2, QUICKEST_SECONDS), SLOWEST_SECONDS)
        self._asked_at = time.monotonic()
        self._pause = max(pause, REST * (self._asked_at - begun))
        self._etag = etag
        return cluster

    def _decoded(self, body: bytes) -> Cluster:
        if self._path == SNAPSHOT:
            return ensured(of_one(self._concluded(body)), self._settings)
        found = cluster_json.decode(body)
        return found if found.insight else ensured(found, self._settings)

    def _concluded(self, body: bytes) -> Snapshot:
        """Older agents send no insight."""
        snapshot = json.decode(body)
        return snapshot if snapshot.insight else conclude(snapshot, self._settings, has_books=not snapshot.stored)
