"""Opens what a server needs: its pages, and the guard that says who may read them."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, TypeVar

from podgpu import log
from podgpu.assembly.api_server import open_api_server
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.kube import reviews
from podgpu.kube.api import ApiFault, ApiServer
from podgpu.kube.reviews import User
from podgpu.serve.guard.guard import Guard
from podgpu.serve.guard.proxies import TrustedProxies
from podgpu.serve.guard.tokens import ReviewUnavailable
from podgpu.serve.page_registry import PageRegistry, register_pages
from podgpu.views.series import SeriesFilter

if TYPE_CHECKING:
    from podgpu.serve.cluster.page_registry import ClusterPageRegistry

T = TypeVar("T")
TIMEOUT_SECONDS = 5.0  # less than a scrape waits


def open_guard(config: Config) -> Guard:
    """Read the web configuration file, and find the API server if tokens are to be checked. Raises UserError."""
    proxies = TrustedProxies(config.web_trusted_proxy, config.web_user_header)
    guard = Guard(config.web_config_file, _token_reviewer(config), config.web_allowed_hosts, proxies)
    if guard.takes_secrets and guard.context is None:
        log.warning("passwords and tokens travel unencrypted; set tls_server_config in --web.config.file")
    return guard


def _token_reviewer(config: Config) -> "TokenReviewer | None":
    if config.web_kube_auth == "off":
        return None
    api = open_api_server(config)
    if api is None:
        raise UserError(
            "--web.kube-auth=on needs an API server, and there is no service account here; give --kube.api a URL"
        )
    return TokenReviewer(api, audiences=config.web_kube_audiences)


class TokenReviewer:
    """Asks the API server about tokens. Without an answer, access is denied."""

    def __init__(
        self, api: ApiServer, timeout: float = TIMEOUT_SECONDS, audiences: Sequence[str] = ()
    ) -> None:
        self._api = api
        self._timeout = timeout
        self._audiences = audiences

    async def authenticate(self, token: str) -> User | None:
        return await self._answered(reviews.holder(self._api, token, self._audiences), token)

    async def authorize(self, user: object, token: str, verb: str, path: str) -> bool:
        return isinstance(user, User) and await self._answered(
            reviews.may(self._api, user, verb, path), token
        )

    async def close(self) -> None:
        await self._api.close()

    async def _answered(self, answer: Awaitable[T], token: str) -> T:
        try:
            async with asyncio.timeout(self._timeout):
                return await answer
        except TimeoutError:
            fault = ApiFault("unreachable", "no answer in time")
        except ApiFault as error:
            fault = error
        detail = "" if token in fault.detail else fault.detail
        log.warning("a token cannot be checked", reason=fault.reason, status=fault.status, detail=detail)
        raise ReviewUnavailable


def open_pages(config: Config) -> PageRegistry:
    """List all pages and documents, set up according to the configuration."""
    return register_pages(config.of, _choice(config))


def open_cluster_pages(config: Config) -> "ClusterPageRegistry":
    from podgpu.serve.cluster.page_registry import register_cluster_pages  # an agent does not need it

    return register_cluster_pages(config.of, config.series_limit, _choice(config))


def _choice(config: Config) -> SeriesFilter:
    return SeriesFilter(
        level=config.series_level,
        detail=config.series_detail == "on",
        allow=config.series_allow,
        deny=config.series_deny,
    )
