"""Fetches from pods through the API server's proxy: from a laptop, no pod can be reached directly.

All URLs are paths of the API server.
"""

import asyncio

from podgpu.cluster.agent_reader import MOST_BYTES, FetchedDocument, conditional, document_of
from podgpu.cluster.node_state import ReadFault
from podgpu.kube.api import ApiFault, ApiServer
from podgpu.sources.dcgm.page import PageFault, page_of

# Reasons of the API server, in words of a node's. The others are its trouble with the pod.
_OF_NODE = {"unauthorized": "forbidden", "forbidden": "forbidden", "tls": "tls", "too_large": "too_large"}
_OF_PAGE = {"too_large": "page_too_large", "garbage": "page_garbage", "forbidden": "page_refused"}
_RIGHT = '{apiGroups: [""], resources: [pods/proxy], verbs: [get]}'


class ProxyClient:
    """Fetches documents of agents."""

    def __init__(self, api: ApiServer, *, timeout: float) -> None:
        self._api = api
        self._timeout = timeout

    async def get(self, url: str, etag: str = "") -> FetchedDocument:
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._api.fetch(url, conditional(etag), limit=MOST_BYTES)
        except TimeoutError:
            detail = f"no answer within {self._timeout:g} s through the API server"
            raise ReadFault("timeout", detail) from None
        except ApiFault as fault:
            needs = f"; add this rule to a ClusterRole of the account: {_RIGHT}"
            detail = f"the API server says: {fault.detail or fault.reason}"
            raise ReadFault(
                _OF_NODE.get(fault.reason, "unreachable"),
                detail + needs if fault.reason == "forbidden" else detail,
            ) from None
        return document_of(answer)

    def forget(self, url: str) -> None:
        """Connections are not those of a single pod."""

    async def close(self) -> None:
        await self._api.close()


class ProxyPageClient:
    """Fetches pages of dcgm-exporters. All share the API server, which is closed elsewhere."""

    def __init__(self, api: ApiServer, *, timeout: float, max_bytes: int) -> None:
        self._api = api
        self._timeout = timeout
        self._max_bytes = max_bytes

    async def get(self, url: str, *, together: int = 1) -> bytes:
        """Raises PageFault."""
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._api.fetch(url, {}, limit=self._max_bytes // together)
        except TimeoutError:
            raise PageFault("page_late", f"no page within {self._timeout:g} s") from None
        except ApiFault as fault:
            reason = _OF_PAGE.get(fault.reason, "page_unreachable")
            raise PageFault(reason, f"the API server says: {fault.detail or fault.reason}") from None
        return page_of(answer, "it")

    async def close(self) -> None:
        """Nothing of its own is open."""
