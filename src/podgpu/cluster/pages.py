"""Fetches pages of dcgm-exporters through the API server's pod proxy."""

import asyncio

from podgpu.kube.api import Api, ApiFault
from podgpu.sources.dcgm.page import PageFault, page_of

_REASONS = {"too_large": "page_too_large", "garbage": "page_garbage", "forbidden": "page_refused"}


class ProxyPages:
    """All exporters share the API server, which is closed elsewhere."""

    def __init__(self, api: Api, *, timeout: float, max_bytes: int) -> None:
        self._api = api
        self._timeout = timeout
        self._max_bytes = max_bytes

    async def get(self, url: str, *, together: int = 1) -> bytes:
        """`url` is a path of the API server. Raises PageFault."""
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._api.fetch(url, {}, {}, limit=self._max_bytes // together)
        except TimeoutError:
            raise PageFault("page_late", f"no page within {self._timeout:g} s") from None
        except ApiFault as fault:
            reason = _REASONS.get(fault.reason, "page_unreachable")
            raise PageFault(reason, f"the API server says: {fault.detail or fault.reason}") from None
        return page_of(answer, "it")

    async def close(self) -> None:
        """Nothing of its own is open."""
