"""Fetches documents of agents through the API server's pod proxy: from a laptop, no pod can be reached directly."""

import asyncio

from podgpu.cluster.agents.client import MOST_BYTES, Fetched, check_status, fetched
from podgpu.cluster.reader import ReadFault
from podgpu.kube.api import Api, ApiFault

# Reasons of the API server, in words of a node's. The others are its trouble with the pod.
_REASONS = {"unauthorized": "forbidden", "forbidden": "forbidden", "tls": "tls", "too_large": "too_large"}
_RIGHT = '{apiGroups: [""], resources: [pods/proxy], verbs: [get]}'


class ProxyClient:
    def __init__(self, api: Api, *, timeout: float) -> None:
        self._api = api
        self._timeout = timeout

    async def get(self, url: str, etag: str = "") -> Fetched:
        """`url` is a path of the API server. Raises ReadFault."""
        path, _, query = url.partition("?")
        pairs = dict(pair.split("=", 1) for pair in query.split("&") if "=" in pair)
        headers = {"Accept-Encoding": "gzip", **({"If-None-Match": etag} if etag else {})}
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._api.fetch(path, pairs, headers, limit=MOST_BYTES)
        except TimeoutError:
            raise ReadFault(
                "timeout", f"no answer within {self._timeout:g} s through the API server"
            ) from None
        except ApiFault as fault:
            raise _fault(fault) from None
        check_status(answer.status)
        if answer.status == 304:
            return Fetched(answer.etag, None)
        return fetched(answer.etag, answer.body, answer.encoding, MOST_BYTES)

    def forget(self, url: str) -> None:
        """Connections are not those of a single pod."""

    async def close(self) -> None:
        await self._api.close()


def _fault(fault: ApiFault) -> ReadFault:
    reason = _REASONS.get(fault.reason, "unreachable")
    needs = (
        f"; add this rule to a ClusterRole of the account: {_RIGHT}" if fault.reason == "forbidden" else ""
    )
    return ReadFault(reason, f"the API server says: {fault.detail or fault.reason}{needs}")
