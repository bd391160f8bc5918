"""A list of the API server, page by page."""

from collections.abc import AsyncIterator, Mapping
from typing import Generic, TypeVar

from msgspec import Struct, field

from podgpu.kube.api import Api, ApiFault

PAGE_BYTES = 16 << 20

T = TypeVar("T")


class ListMetadata(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class Page(Struct, Generic[T]):
    metadata: ListMetadata
    items: list[T] | None = None


async def pages(
    api: Api,
    path: str,
    kind: type[Page[T]],
    query: Mapping[str, str],
    *,
    size: int,
    most: int,
    freshness: Mapping[str, str] | None = None,
) -> AsyncIterator[Page[T]]:
    """Give pages of `size` items. A list of more than `most` pages is refused.

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
