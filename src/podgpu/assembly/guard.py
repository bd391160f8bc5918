"""Who may read the pages of this agent."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from podgpu import log
from podgpu.assembly import machine
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.kube import reviews
from podgpu.kube.api import Api, ApiFault
from podgpu.kube.reviews import User
from podgpu.serve.guard.guard import Guard
from podgpu.serve.guard.tokens import Unavailable

T = TypeVar("T")
PATIENCE_SECONDS = 5.0  # less than a scrape waits


def open_guard(config: Config) -> Guard:
    """Read the web configuration file, and find the API server if tokens are to be checked. Raises UserError."""
    guard = Guard(config.web_config_file, _judge(config), config.web_allowed_hosts)
    if guard.asks_for_secrets and guard.context is None:
        log.warning("passwords and tokens travel unencrypted; set tls_server_config in --web.config.file")
    return guard


def _judge(config: Config) -> "ApiJudge | None":
    if config.web_kube_auth == "off":
        return None
    api = machine.open_api_server(config)
    if api is None:
        raise UserError(
            "--web.kube-auth=on needs an API server, and there is no service account here; give --kube.api a URL"
        )
    return ApiJudge(api, audiences=config.web_kube_audiences)


class ApiJudge:
    """Asks the API server about tokens. Without an answer nobody gets in."""

    def __init__(self, api: Api, patience: float = PATIENCE_SECONDS, audiences: Sequence[str] = ()) -> None:
        self._api = api
        self._patience = patience
        self._audiences = audiences

    async def holder(self, token: str) -> User | None:
        return await self._asked(reviews.holder(self._api, token, self._audiences), token)

    async def may(self, holder: object, token: str, verb: str, path: str) -> bool:
        return isinstance(holder, User) and await self._asked(
            reviews.may(self._api, holder, verb, path), token
        )

    async def close(self) -> None:
        await self._api.close()

    async def _asked(self, asking: Awaitable[T], token: str) -> T:
        try:
            async with asyncio.timeout(self._patience):
                return await asking
        except TimeoutError:
            fault = ApiFault("unreachable", "no answer in time")
        except ApiFault as error:
            fault = error
        detail = "" if token in fault.detail else fault.detail
        log.warning("a token cannot be checked", reason=fault.reason, status=fault.status, detail=detail)
        raise Unavailable
