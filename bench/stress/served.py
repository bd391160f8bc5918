"""The servers that `make stress` abuses: a node's, one with logins, and a cluster's whose store and agents hang."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import TypedDict

import bcrypt

from podgpu.assembly.server import open_cluster_pages
from podgpu.catalog import CATALOG
from podgpu.catalog.row import Scope
from podgpu.config import Config
from podgpu.feed import Feed
from podgpu.model import Booking, Claim, Cluster, ContainerRef, Device, Gpu, Reading, Snapshot, Tenant
from podgpu.serve.cluster.server import ClusterServer
from podgpu.serve.guard import checks, guard
from podgpu.serve.guard.guard import Guard
from podgpu.serve.pages import register_pages
from podgpu.serve.server import HttpServer, NodeServer
from tests.cluster import nodes
from tests.tree import card

GPUS, PODS, NODES = 8, 250, 50
USER, PASSWORD, TOKEN = "scraper", "right", "known"
REVIEW_SECONDS = 0.04  # of a slow API server


class Caps(TypedDict):
    max_requests: int
    max_connections: int
    max_streams: int


CAPS = Caps(max_requests=40, max_connections=256, max_streams=500)


class Changing:
    """A node with a new snapshot every second."""

    ready = True

    def __init__(self) -> None:
        self._current = _snapshot(time.time())

    @property
    def snapshot(self) -> Snapshot:
        if (now := time.time()) - self._current.taken_at >= 1:
            self._current = _snapshot(now)
        return self._current

    async def changed(self, seen: Snapshot) -> Snapshot:
        await asyncio.Event().wait()
        return seen

    async def release(self, seconds: float) -> bool:
        return seconds > 0


class OneToken:
    """Reviews tokens slowly, and knows one."""

    async def authenticate(self, token: str) -> object | None:
        await asyncio.sleep(REVIEW_SECONDS)
        return token if token == TOKEN else None

    async def authorize(self, user: object, token: str, verb: str, path: str) -> bool:
        await asyncio.sleep(REVIEW_SECONDS)
        return user == token and verb == "get" and path == "/metrics"

    async def close(self) -> None:
        """Nothing is open."""


class Hanging(Feed[Cluster]):
    """A cluster whose agents and whose store do not answer when they are asked for more."""

    ready = True
    interval = 15.0
    seconds_behind = 0.0

    @property
    def cluster(self) -> Cluster:
        return self.newest

    async def full(self, name: str) -> Snapshot:
        await asyncio.Event().wait()
        raise AssertionError(name)

    async def of(self, namespace: str, pod: str, seconds: int) -> Mapping[str, Sequence[tuple[float, float]]]:
        await asyncio.Event().wait()
        raise AssertionError(namespace, pod, seconds)


def node() -> HttpServer:
    return NodeServer(Changing(), series_limit=20_000, registry=register_pages(Config().of), **CAPS)


def guarded() -> HttpServer:
    """Each login is checked anew: what was right is not remembered."""
    guard.RIGHT_SECONDS = checks.ALLOWED_SECONDS = 0.0
    path = Path(gettempdir()) / "podgpu-stress.yml"
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(8)).decode()
    path.write_text(f"basic_auth_users: {{{USER}: {hashed}}}\n")
    return NodeServer(
        Changing(),
        series_limit=20_000,
        registry=register_pages(Config().of),
        guard=Guard(path, OneToken()),
        **CAPS,
    )


def cluster() -> HttpServer:
    known = tuple(
        nodes.fresh(f"gpu-{number}", nodes.card(f"GPU-{number}", nodes.tenant(f"ml/pod-{number}")))
        for number in range(NODES)
    )
    feed = Hanging(Cluster(taken_at=time.time(), version="0", name="stress", nodes=known))
    return ClusterServer(feed, open_cluster_pages(Config()), history=feed, **CAPS)


def _snapshot(at: float) -> Snapshot:
    rows = [row for row in CATALOG if row.scope is Scope.GPU and not row.label_names]
    cards = []
    for number in range(GPUS):
        gpu = Gpu(uuid=f"GPU-{number:08x}-0000-4000-8000-000000000000", index=number, model="NVIDIA H200")
        refs = [ContainerRef("team", f"pod-{n}", "main", f"uid-{n}") for n in range(number, PODS, GPUS)]
        booking = Booking(method="measured", memory_bytes=1 << 30, sm_ratio=0.01, allocated_ratio=0.03)
        tenants = [Tenant(container=ref, booking=booking, claims=(Claim(gpu=gpu.uuid, container=ref),)) for ref in refs]
        readings = tuple(Reading(row.name, at % 1000) for row in rows)
        cards.append(card(Device(gpu=gpu, readings=readings), tenants=tenants))
    return Snapshot(node="stress", taken_at=at, interval_seconds=1.0, version="0", cards=tuple(cards))
