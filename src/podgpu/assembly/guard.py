"""Who may read the pages of this agent."""

import asyncio

from podgpu import log
from podgpu.assembly import machine
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.kube import reviews
from podgpu.kube.api import Api, ApiFault
from podgpu.serve.guard.guard import Guard
from podgpu.serve.guard.tokens import Unavailable, Verdict

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
    return ApiJudge(api)


class ApiJudge:
    """Asks the API server about tokens. Without an answer nobody gets in."""

    def __init__(self, api: Api, patience: float = PATIENCE_SECONDS) -> None:
        self._api = api
        self._patience = patience

    async def __call__(self, token: str, verb: str, path: str) -> Verdict:
        try:
            async with asyncio.timeout(self._patience):
                return await self._verdict(token, verb, path)
        except TimeoutError:
            fault = ApiFault("unreachable", "no answer in time")
        except ApiFault as error:
            fault = error
        detail = "" if token in fault.detail else fault.detail
        log.warning("a token cannot be checked", reason=fault.reason, status=fault.status, detail=detail)
        raise Unavailable

    async def close(self) -> None:
        await self._api.close()

    async def _verdict(self, token: str, verb: str, path: str) -> Verdict:
        user = await reviews.holder(self._api, token)
        if user is None:
            return Verdict.UNKNOWN
        return Verdict.ALLOWED if await reviews.may(self._api, user, verb, path) else Verdict.FORBIDDEN
