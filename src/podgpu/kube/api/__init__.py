"""The API server as the parts see it. The client that talks to it is in `server`: it is loaded where there is one."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct, field

if TYPE_CHECKING:
    from podgpu.net.client import HttpAnswer

OBJECT_BYTES = 2 << 20
PAGE_BYTES = 16 << 20
# etcd keeps 1.5 MiB of an object. In JSON each of its characters may take six, and a tenant chooses its characters.
POD_BYTES = 16 << 20
# What a decoder raises for malformed bytes, hostile nesting included.
MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
DETAIL_LENGTH = 300

REASONS = {
    "unreachable": "no connection, no answer in time, or a server error",
    "unauthorized": "no usable token, or the token was refused",
    "forbidden": "the service account lacks the right",
    "throttled": "too many requests",
    "gone": "the version to go on from is no longer kept",
    "stalled": "an open watch fell silent",
    "garbage": "an answer that makes no sense",
    "tls": "the server's certificate is not trusted",
    "too_large": "an answer beyond the size limit",
    "too_many": "more objects than a node or a cluster has",
}
_BY_STATUS = {401: "unauthorized", 403: "forbidden", 410: "gone", 429: "throttled"}

T = TypeVar("T")


class ApiFault(Exception):
    """Why the API server gave nothing. `reason` is in REASONS; `status` is the HTTP status, or 0 without an answer."""

    def __init__(self, reason: str, detail: str = "", *, status: int = 0, retry_after: float = 0.0) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail[:DETAIL_LENGTH]
        self.status = status
        self.retry_after = retry_after


class ApiStatus(msgspec.Struct):
    """The API server's own error object."""

    code: int = 0
    message: str = ""
    kind: str = ""

    def fault(self, retry_after: float = 0.0) -> ApiFault:
        reason = _BY_STATUS.get(self.code) or ("unreachable" if self.code >= 500 else "garbage")
        return ApiFault(reason, self.message, status=self.code, retry_after=retry_after)


class Api(Protocol):
    async def get(
        self,
        path: str,
        kind: type[T],
        query: Mapping[str, str] | None = None,
        *,
        limit: int = OBJECT_BYTES,
        metadata_only: bool = False,
    ) -> T:
        """GET one object, or as much of it as its metadata. Raises ApiFault."""

    async def post(self, path: str, kind: type[T], sent: object) -> T:
        """POST an object, and return what the server made of it. Raises ApiFault."""

    async def fetch(self, path: str, headers: Mapping[str, str], *, limit: int) -> "HttpAnswer":
        """GET through the API server's proxy. Raises ApiFault if that fails; whatever the pod answers is returned."""

    def stream(
        self, path: str, query: Mapping[str, str], *, silence: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes | None]]:
        """Stream an answer line by line; a line that is too long is None. Silence for that long is a stall."""

    async def close(self) -> None: ...


class ListMetadata(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class ListPage(Struct, Generic[T]):
    metadata: ListMetadata
    items: list[T] | None = None


async def list_pages(
    api: Api,
    path: str,
    kind: type[ListPage[T]],
    query: Mapping[str, str],
    *,
    size: int,
    most: int,
    freshness: Mapping[str, str] | None = None,
) -> AsyncIterator[ListPage[T]]:
    """Yield the pages of a list, of `size` items each. A list of more than `most` pages is refused.

    `freshness` says how old the list may be. Only the first request may carry it.
    """
    position = freshness or {}
    for _ in range(most):
        page = await api.get(path, kind, {**query, "limit": str(size), **position}, limit=PAGE_BYTES)
        yield page
        if not page.metadata.continue_:
            return
        position = {"continue": page.metadata.continue_}
    raise ApiFault("too_large", f"{path}: more than {most} pages of {size}")
