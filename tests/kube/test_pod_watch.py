import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podgpu.kube.api import ApiFault, ApiServer, ListMetadata
from podgpu.kube.object_watch import PodWatch, WatchTiming
from podgpu.model.ports import PodSource
from podgpu.net.login import Login
from tests.fakeapi.recorded import NODE, changed, listed, pod, watch_lines
from tests.fakeapi.server import FakeApi, Seen, bookmark, error
from tests.patience import PATIENCE, LoopClock, until

A, B, C = (f"{n}4a42512-da73-45a0-91d1-4b3469bce212" for n in "abc")
SHARED = "GPU-7f3c9a13-52d4-4b8e-9c60-1a2b3c4d5e63"
FAST = {"first_pause": 0.02, "longest_pause": 0.05}


@asynccontextmanager
async def watching(fake: FakeApi, token_file: Path | None = None, **timing: float) -> AsyncIterator[PodWatch]:
    api = ApiServer(fake.url, Login(token_file=token_file), connect_seconds=PATIENCE, answer_seconds=PATIENCE)
    watch: PodWatch = PodWatch(api, NODE, timing=WatchTiming(**{**FAST, **timing}))
    source: PodSource = watch
    task = asyncio.create_task(source.run())
    try:
        yield watch
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await api.close()


def uids(watch: PodWatch) -> list[str]:
    return [each.uid for each in watch.pods() or ()]


def reason(watch: PodWatch) -> str:
    fault = watch.status().fault
    return fault.reason if fault else ""


def is_list(seen: Seen) -> bool:
    return not seen.is_watch


def recorded_fake(cluster: str = "kubernetes-1.36.4") -> FakeApi:
    found = listed(cluster)
    return FakeApi(pods=found["items"], version=int(found["metadata"]["resourceVersion"]))


def shown(watch: PodWatch) -> dict[str, tuple[Any, ...]]:
    """Name, owner and devices of every container, by UID."""
    return {
        each.uid: (
            f"{each.namespace}/{each.name}",
            f"{each.owner.kind}/{each.owner.name}" if each.owner else "",
            {container.name: [device for _, device in container.devices] for container in each.containers},
        )
        for each in watch.pods() or ()
    }


CHAT = "eeffc188-aff2-4611-b421-bbb35128be48"
STAYING = {
    CHAT: ("team-a/chat-584ddf76fc-chpsw", "ReplicaSet/chat-584ddf76fc", {"server": [f"{SHARED}::1"]}),
    "99e8e17d-662d-4af1-93ae-fc65fedf0ac4": (
        "team-b/finetune-mjcqc",
        "Job/finetune",
        {"tune": ["GPU-7f3c9a10-52d4-4b8e-9c60-1a2b3c4d5e60"]},
    ),
    "a929f714-e746-4631-ad63-3234b6484c75": (
        "team-b/nightly-manual-22spb",
        "Job/nightly-manual",
        {"tune": [f"MIG-0a1b2c3d-1111-5111-8111-00000000000{n}" for n in (1, 2)]},
    ),
    "c7fd3897-ecdf-4f85-a88e-5ad3c9ae54d7": ("team-b/probe-b8xdx", "DaemonSet/probe", {"probe": []}),
    "f711fe8d-bfe8-4a28-a84b-32564c1ce9c3": (
        "team-b/share-1",
        "",
        {"app": [f"GPU-7f3c9a14-52d4-4b8e-9c60-1a2b3c4d5e64-_-{n}" for n in (2, 6, 9, 10)]},
    ),
}
RANK = ("team-a/rank-0", "StatefulSet/rank", {"ps": ["GPU-7f3c9a12-52d4-4b8e-9c60-1a2b3c4d5e62"]})
LISTED = STAYING | {
    "04a42512-da73-45a0-91d1-4b3469bce212": (
        "team-a/chat-584ddf76fc-6lg2w",
        "ReplicaSet/chat-584ddf76fc",
        {"server": [f"{SHARED}::2"]},
    ),
    "7668c4a5-ebb6-4d64-81d8-6fbe1a7e7de3": RANK,
}
WATCHED = STAYING | {"44b55b4d-2283-4e62-a15c-86a2cd05fab7": RANK}


@pytest.mark.parametrize("piece", [1 << 20, 777])
async def test_the_recorded_cluster_is_followed_from_its_list_to_the_end_of_its_watch(piece: int) -> None:
    async with recorded_fake() as fake, watching(fake) as watch:
        fake.piece = piece
        await until(lambda: fake.open_watches)
        assert shown(watch) == LISTED
        for line in watch_lines():
            fake.send(line, int(json.loads(line)["object"]["metadata"]["resourceVersion"]))
        await until(lambda: shown(watch) == WATCHED)
        assert watch.status().up
        assert not watch.errors
        assert len(fake.lists) == len(fake.watches) == 1


async def test_claims_and_static_pods_are_read_from_the_recorded_dra_cluster() -> None:
    async with recorded_fake("kubernetes-1.36.4-dra") as fake, watching(fake) as watch:
        await until(watch.pods)
        by_name = {name.partition("/")[2]: devices for name, _, devices in shown(watch).values()}
        assert {name: found for name, found in by_name.items() if name.startswith("dra")} == {
            "dra-mig": {
                "left": ["gpu.nvidia.com/gpu-node-1/gpu-7-mig-1g18gb-19-0"],
                "right": ["gpu.nvidia.com/gpu-node-1/gpu-7-mig-1g18gb-19-1"],
            },
            "dra-own": {"a": ["gpu.nvidia.com/gpu-node-1/gpu-6"], "b": ["gpu.nvidia.com/gpu-node-1/gpu-6"]},
            "dra-shared-1": {"a": ["gpu.nvidia.com/gpu-node-1/gpu-5"]},
            "dra-shared-2": {"a": ["gpu.nvidia.com/gpu-node-1/gpu-5"]},
        }
        static = next(each for each in watch.pods() or () if each.namespace == "kube-system")
        assert static.static_hash.startswith("8cceda71") and static.uid.startswith("c71e651d")


async def test_it_asks_for_this_node_in_pages_and_for_bookmarks() -> None:
    pods = [pod(f"p{n}", f"{n:08}-da73-45a0-91d1-4b3469bce212") for n in range(1201)]
    async with FakeApi(pods=pods, version=7) as fake, watching(fake) as watch:
        await until(lambda: fake.open_watches)
        assert len(watch.pods() or ()) == 1201
        assert all(seen.query["fieldSelector"] == f"spec.nodeName={NODE}" for seen in fake.requests)
        assert [seen.query.get("continue") for seen in fake.lists] == [None, "500", "1000"]
        assert fake.lists[0].query["limit"] == "500"
        asked = fake.watches[0].query
        assert (asked["resourceVersion"], asked["allowWatchBookmarks"]) == ("7", "true")
        assert 261 <= int(asked["timeoutSeconds"]) <= 319


async def test_an_ended_watch_goes_on_where_the_bookmark_stood() -> None:
    async with FakeApi(pods=[pod("p", A)], version=5) as fake, watching(fake) as watch:
        await until(lambda: fake.open_watches)
        fake.send(bookmark(42), 42)
        fake.end_watches()
        await until(lambda: len(fake.watches) == 2 and fake.open_watches)
        assert fake.watches[1].query["resourceVersion"] == "42"
        assert len(fake.lists) == 1
        assert watch.status().up


async def test_a_watch_that_always_ends_at_once_is_not_asked_in_a_tight_loop() -> None:
    async with FakeApi(pods=[pod("p", A)]) as fake:
        fake.refuse(200, times=10_000, wanted=lambda seen: seen.is_watch)
        began = time.monotonic()
        async with watching(fake, first_pause=0.1, longest_pause=0.2):
            await until(lambda: len(fake.watches) >= 4)
            assert len(fake.watches) <= 2 + (time.monotonic() - began) / 0.05


@pytest.mark.parametrize("in_stream", [True, False])
async def test_gone_means_a_new_list_that_drops_what_vanished(in_stream: bool) -> None:
    async with FakeApi(pods=[pod("p", A), pod("q", B)], version=5) as fake, watching(fake) as watch:
        fake.gone_in_stream = in_stream
        await until(lambda: fake.open_watches)
        fake.pods, fake.version, fake.oldest = [pod("q", B), pod("r", C)], 100, 90
        fake.end_watches()
        await until(lambda: uids(watch) == [B, C])
        await until(lambda: fake.open_watches)
        assert watch.errors["gone"] == 1
        assert watch.status().up
        # What the server's cache told led here: the next list is asked of the store itself.
        assert [seen.query.get("resourceVersion") for seen in fake.lists] == ["0", None]


async def test_gone_within_a_running_watch_means_a_new_list() -> None:
    async with FakeApi(pods=[pod("p", A)], version=5) as fake, watching(fake) as watch:
        await until(lambda: fake.open_watches)
        fake.pods, fake.version = [], 50
        fake.send(error(410, "too old resource version"))
        await until(lambda: uids(watch) == [] and len(fake.watches) == 2 and watch.status().up)


async def test_gone_after_many_failures_costs_no_long_pause_the_first_time() -> None:
    watch = PodWatch(ApiServer("http://127.0.0.1:1"), NODE)
    for _ in range(8):
        assert watch._failed(ApiFault("unreachable")) <= 30.0
    assert watch._failed(ApiFault("gone", status=410)) <= 0.8
    assert watch._failed(ApiFault("gone", status=410)) >= 15.0


async def test_throttling_is_waited_out_as_long_as_the_server_says() -> None:
    clock = LoopClock()
    async with FakeApi(pods=[pod("p", A)]) as fake:
        fake.refuse(429, headers={"Retry-After": "250"})
        async with watching(fake) as watch:
            await until(lambda: reason(watch) == "throttled")
            clock.set_ahead(100)
            await asyncio.sleep(0.1)
            assert len(fake.lists) == 1
            clock.set_ahead(200)
            await until(watch.pods)
            assert len(fake.lists) == 2


async def test_a_silent_watch_is_noticed_and_replaced_by_a_new_list() -> None:
    async with FakeApi(pods=[pod("p", A)], version=5) as fake, watching(fake, silence=0.1) as watch:
        await until(lambda: fake.open_watches)
        fake.pods, fake.version = [pod("q", B)], 6  # the event that never came
        await until(lambda: uids(watch) == [B])
        assert watch.errors["stalled"] >= 1


async def test_a_list_now_and_then_finds_what_the_watch_did_not_tell() -> None:
    async with FakeApi(pods=[pod("p", A)], version=5) as fake, watching(fake, relist=0.3) as watch:
        await until(lambda: fake.open_watches)
        fake.pods, fake.version = [pod("q", B)], 6
        await until(lambda: uids(watch) == [B])
        assert not watch.errors


async def test_a_list_older_than_what_is_known_is_not_believed() -> None:
    async with FakeApi(pods=[pod("p", A)], version=50) as fake, watching(fake) as watch:
        await until(lambda: fake.open_watches)
        stale = {"metadata": {"resourceVersion": "40"}, "items": [pod("dead", C)]}
        fake.refuse(200, body=json.dumps(stale).encode(), wanted=lambda seen: "resourceVersion" in seen.query)
        fake.pods, fake.version = [pod("q", B)], 60
        fake.send(error(400, "list again"))
        await until(lambda: uids(watch) == [B])
        assert [seen.query.get("resourceVersion") for seen in fake.lists] == ["0", "0", None]


async def test_names_are_kept_and_age_while_the_server_is_away() -> None:
    async with FakeApi(pods=[pod("p", A)], version=5) as fake, watching(fake) as watch:
        await until(lambda: fake.open_watches)
        await fake.stop()
        await until(lambda: reason(watch) == "unreachable")
        before = watch.status()
        await asyncio.sleep(0.1)
        after = watch.status()
        assert not after.up and uids(watch) == [A]
        assert before.age_seconds is not None and after.age_seconds is not None
        assert after.age_seconds > before.age_seconds
        fake.event("DELETED", pod("p", A, 8))
        await fake.start()
        await until(lambda: watch.status().up and uids(watch) == [])
        assert len(fake.lists) == 1  # it went on where it was


async def test_a_server_that_is_away_at_the_start_is_found_later() -> None:
    fake = FakeApi(pods=[pod("p", A)])
    await fake.start()
    await fake.stop()
    async with watching(fake) as watch:
        assert watch.pods() is None
        assert watch.status().age_seconds is None
        await until(lambda: reason(watch) == "unreachable")
        await fake.start()
        await until(lambda: watch.status().up)
        assert uids(watch) == [A]
    await fake.stop()


async def test_a_token_that_rotates_is_followed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    async with FakeApi(pods=[pod("p", A)]) as fake, watching(fake, token) as watch:
        await until(lambda: fake.open_watches)
        fake.token = "new"
        fake.end_watches()
        await until(lambda: reason(watch) == "unauthorized")
        assert uids(watch) == [A]
        token.write_text("new")
        await until(lambda: watch.status().up and fake.open_watches)


async def test_a_right_that_is_missing_is_named_and_found_soon_once_it_is_granted() -> None:
    async with FakeApi(pods=[pod("p", A)]) as fake:
        fake.refuse(403, times=3, body=b'{"message": "pods is forbidden"}')
        async with watching(fake) as watch:
            await until(lambda: reason(watch) == "forbidden")
            fault = watch.status().fault
            assert fault and "pods is forbidden" in fault.detail
            await until(lambda: watch.status().up)


def test_a_right_that_stays_away_is_asked_for_ever_more_seldom() -> None:
    watch = PodWatch(ApiServer("http://127.0.0.1:1"), NODE)
    pauses = [watch._failed(ApiFault("forbidden", status=403)) for _ in range(12)]
    assert 0.4 <= pauses[0] <= 0.8
    assert 150.0 <= pauses[-1] <= 300.0


@pytest.mark.parametrize("body", [b"<html>no</html>", b"{}", b'{"metadata": {}, "items": []}', b'{"metadata": 1}'])
async def test_a_list_that_makes_no_sense_is_garbage(body: bytes) -> None:
    async with FakeApi(pods=[pod("p", A)]) as fake:
        fake.refuse(200, body=body)
        async with watching(fake, first_pause=0.2) as watch:
            await until(lambda: reason(watch) == "garbage")
            assert watch.pods() is None
            await until(lambda: watch.status().up)


async def test_one_malformed_pod_does_not_cost_the_others() -> None:
    pods = [pod("p", A), {"metadata": {"name": 7}}, changed(pod("q", B), uid="")]
    async with FakeApi(pods=pods) as fake, watching(fake) as watch:
        await until(watch.pods)
        assert uids(watch) == [A]
        assert watch.errors == {"garbage": 2}


class ShortWatches(ApiServer):
    """Sends a list that is too large at first, and ends every watch at once."""

    def __init__(self) -> None:
        self.sizes: list[str] = []

    async def get(self, path: str, kind: type[Any], query: Any = None, **_: Any) -> Any:
        self.sizes.append(query["limit"])
        if len(self.sizes) == 1:
            raise ApiFault("too_large")
        return kind(metadata=ListMetadata(resource_version="5"), items=[])

    @asynccontextmanager
    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[bytes | None]]:
        yield self._nothing()

    async def _nothing(self) -> AsyncIterator[bytes | None]:
        lines: tuple[bytes, ...] = ()
        for line in lines:
            yield line


async def test_pages_get_smaller_when_a_list_is_too_large_and_grow_again() -> None:
    api = ShortWatches()
    watch = PodWatch(api, NODE, timing=WatchTiming(first_pause=0.001, longest_pause=0.001, relist=0.0))
    task = asyncio.create_task(watch.run())
    await until(lambda: len(api.sizes) >= 7)
    task.cancel()
    assert api.sizes[:7] == ["500", "62", "124", "248", "496", "500", "500"]
