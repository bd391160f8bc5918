"""Opens what a server needs: its pages, the guard that says who may read them, and the history."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from podgpu import log
from podgpu.agent.playback import Playback
from podgpu.assembly.api_server import open_api_server
from podgpu.cluster.store.moment import StoreMoments
from podgpu.cluster.store.pod_history import LEAST_STEP, POINTS, StoreHistory
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.history.charts import Object
from podgpu.history.in_memory import InMemoryHistory
from podgpu.history.parted_state import PartedState
from podgpu.history.partitions import BY_CARD, BY_NODE, CardOrPods
from podgpu.history.recording import RecordingHistory
from podgpu.history.timeline import timeline
from podgpu.kube import reviews
from podgpu.kube.api import ApiFault, ApiServer
from podgpu.kube.reviews import User
from podgpu.model import Cluster, ClusterNode, Snapshot
from podgpu.serve.guard.checks import ReviewUnavailable
from podgpu.serve.guard.guard import Guard, TrustedProxies
from podgpu.serve.pages import PageRegistry, register_pages
from podgpu.views.series import SeriesFilter

if TYPE_CHECKING:
    from podgpu.serve.cluster.views import ClusterPageRegistry

T = TypeVar("T")
TIMEOUT_SECONDS = 5.0  # less than a scrape waits
NODE_BYTES, CLUSTER_BYTES = 4 << 20, 96 << 20
# Seconds between two moments. An agent may read faster, but this is enough; a cluster has many nodes.
NODE_STEP, CLUSTER_STEP = 5.0, 30.0
# A whole moment is kept after so many changes, so that no more need be read for one.
NODE_WHOLE, CLUSTER_WHOLE = 80, 30


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

    def __init__(self, api: ApiServer, timeout: float = TIMEOUT_SECONDS, audiences: Sequence[str] = ()) -> None:
        self._api = api
        self._timeout = timeout
        self._audiences = audiences

    async def authenticate(self, token: str) -> User | None:
        return await self._answered(reviews.token_user(self._api, token, self._audiences), token)

    async def authorize(self, user: object, token: str, verb: str, path: str) -> bool:
        return isinstance(user, User) and await self._answered(reviews.may_use(self._api, user, verb, path), token)

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
    from podgpu.serve.cluster.views import register_cluster_pages  # an agent does not need it

    return register_cluster_pages(config.of, config.series_limit, _choice(config))


def _choice(config: Config) -> SeriesFilter:
    return SeriesFilter(
        level=config.series_level,
        detail=config.series_detail == "on",
        allow=config.series_allow,
        deny=config.series_deny,
    )


def open_node_history(config: Config) -> InMemoryHistory[Snapshot, CardOrPods] | None:
    most = NODE_BYTES if config.history_size is None else config.history_size
    return InMemoryHistory(BY_CARD, step=NODE_STEP, whole_every=NODE_WHOLE, most_bytes=most) if most else None


def open_recorded_history(playback: Playback) -> RecordingHistory:
    """The history is all of the recording, also what has not been played yet."""
    return RecordingHistory(playback.player.times, playback.moment)


async def stored_timeline(history: StoreHistory, hours: int) -> Object:
    """Return a timeline of the last hours from a store."""
    seconds = 3600 * hours
    step = max(LEAST_STEP, seconds // POINTS)
    moments = await history.moments(seconds, step)
    now = time.time()
    return timeline(moments, now - seconds, now, step)


async def stored_moment(moments: StoreMoments, at: float) -> PartedState[Cluster, ClusterNode] | None:
    """Read a moment from a store, to be shown like one that is kept."""
    cluster = await moments.at(at)
    if cluster is None:
        return None
    return PartedState(at, lambda: (replace(cluster, nodes=()), iter(cluster.nodes)), BY_NODE.join)


def open_cluster_history(config: Config) -> InMemoryHistory[Cluster, ClusterNode] | None:
    most = CLUSTER_BYTES if config.history_size is None else config.history_size
    return InMemoryHistory(BY_NODE, step=CLUSTER_STEP, whole_every=CLUSTER_WHOLE, most_bytes=most) if most else None
