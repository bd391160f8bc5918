import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from podgpu.kube import workloads as workloads_module
from podgpu.kube.api import ApiServer
from podgpu.kube.pod_object import decode_pod, to_pod
from podgpu.kube.workloads import KNOWN_SECONDS, MOST_REQUESTS, UNKNOWN_SECONDS, Workloads
from podgpu.model import OwnerReference, Pod
from tests.fakeapi.recorded import listed, owners
from tests.fakeapi.server import FakeApi
from tests.patience import PATIENCE

UNKNOWN = "not known yet"
RAY = "/apis/ray.io/v1"
RAY_RESOURCES = {
    "kind": "APIResourceList",
    "resources": [
        {"name": "rayclusters/status", "kind": "RayCluster", "namespaced": True},
        {"name": "rayclusters", "kind": "RayCluster", "namespaced": True},
        {"name": "rayfleets", "kind": "RayFleet", "namespaced": False},
    ],
}


SPREAD, STEPS = 300.0, 50


@dataclass
class Clock:
    """The machine's, or ahead of it."""

    ahead: float = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(workloads_module, "time", clock)
    return clock


class StillClock:
    """Goes when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> StillClock:
    clock = StillClock()
    monkeypatch.setattr(workloads_module, "time", clock)
    return clock


@asynccontextmanager
async def resolving(fake: FakeApi, **options: Any) -> AsyncIterator[Workloads]:
    api = ApiServer(fake.url, answer_seconds=PATIENCE)
    workloads = Workloads(api, **{"deadline": PATIENCE} | options)
    try:
        yield workloads
    finally:
        await workloads.close()
        await api.close()


def recorded_pods(cluster: str = "kubernetes-1.36.4") -> list[Pod]:
    return [to_pod(decode_pod(json.dumps(item).encode())) for item in listed(cluster)["items"]]


def owned(name: str, kind: str, owner: str, uid: str, version: str = "apps/v1", **labels: str) -> Pod:
    reference = OwnerReference(kind=kind, name=owner, uid=uid, api_version=version)
    return Pod(namespace="ns", name=name, uid=f"uid-of-{name}", owner=reference, labels=labels)


def made(uid: str, *above: tuple[str, str, str, str]) -> dict[str, Any]:
    """An object with that UID whose controllers are (apiVersion, kind, name, uid)."""
    names = ("apiVersion", "kind", "name", "uid")
    references = [{**dict(zip(names, each, strict=True)), "controller": True} for each in above]
    return {"metadata": {"uid": uid, "ownerReferences": references}}


async def shown(workloads: Workloads, *pods: Pod) -> list[str]:
    found = await workloads.resolve(pods)
    known = (found.get(pod.uid) for pod in pods)
    return [f"{workload.kind}/{workload.name}" if workload else UNKNOWN for workload in known]


RECORDED = {
    "chat-584ddf76fc-6lg2w": "Deployment/chat",
    "chat-584ddf76fc-chpsw": "Deployment/chat",
    "rank-0": "StatefulSet/rank",
    "finetune-mjcqc": "Job/finetune",
    "nightly-manual-22spb": "CronJob/nightly",
    "probe-b8xdx": "DaemonSet/probe",
    "share-1": "Pod/share-1",
}


async def test_the_recorded_pods_lead_to_their_topmost_owners() -> None:
    pods = recorded_pods()
    async with FakeApi(objects=owners()) as fake, resolving(fake) as workloads:
        found = await shown(workloads, *pods)
        assert dict(zip((pod.name for pod in pods), found, strict=True)) == RECORDED


async def test_without_an_api_the_template_hash_leads_to_the_deployment() -> None:
    pods = recorded_pods()
    found = await shown(Workloads(None), *pods)
    assert dict(zip((pod.name for pod in pods), found, strict=True)) == RECORDED | {
        "nightly-manual-22spb": "Job/nightly-manual"
    }


async def test_a_static_pod_and_a_bare_one_are_their_own_workload() -> None:
    pods = [pod for pod in recorded_pods("kubernetes-1.36.4-dra") if pod.name in ("static-probe-gpu-node-1", "dra-own")]
    async with FakeApi() as fake, resolving(fake) as workloads:
        assert await shown(workloads, *pods) == ["Pod/static-probe-gpu-node-1", "Pod/dra-own"]
        assert fake.requests == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"pod-template-hash": "abc"}, "Deployment/web"),
        ({"rollouts-pod-template-hash": "abc"}, "Rollout/web"),
        ({"pod-template-hash": "bc"}, "ReplicaSet/web-abc"),
        ({"pod-template-hash": "web-abc"}, "ReplicaSet/web-abc"),
        ({}, "ReplicaSet/web-abc"),
    ],
)
async def test_a_stem_is_taken_only_where_the_hash_fits(labels: dict[str, str], expected: str) -> None:
    assert await shown(Workloads(None), owned("p", "ReplicaSet", "web-abc", "u", **labels)) == [expected]


async def test_a_replica_set_known_to_stand_alone_is_the_workload() -> None:
    pod = owned("p", "ReplicaSet", "web-abc", "u", **{"pod-template-hash": "abc"})
    objects = {"/apis/apps/v1/namespaces/ns/replicasets/web-abc": made("u")}
    async with FakeApi(objects=objects) as fake, resolving(fake) as workloads:
        assert await shown(workloads, pod) == ["ReplicaSet/web-abc"]


async def test_custom_controllers_are_found_by_discovery() -> None:
    objects = {
        RAY: RAY_RESOURCES,
        f"{RAY}/namespaces/ns/rayclusters/small": made("u1", ("ray.io/v1", "RayFleet", "fleet", "u2")),
        f"{RAY}/rayfleets/fleet": made("u2"),
    }
    pods = [owned(f"p{n}", "RayCluster", "small", "u1", "ray.io/v1") for n in range(5)]
    async with FakeApi(objects=objects) as fake, resolving(fake) as workloads:
        assert await shown(workloads, *pods) == ["RayFleet/fleet"] * 5
        assert sorted(seen.path for seen in fake.requests) == sorted(objects)


async def test_an_owner_is_asked_for_once_and_again_when_it_has_aged(clock: Clock) -> None:
    pods = recorded_pods()
    async with FakeApi(objects=owners()) as fake, resolving(fake) as workloads:
        await workloads.resolve(pods)
        asked = len(fake.requests)
        await workloads.resolve(pods)
        assert len(fake.requests) == asked
        clock.ahead += KNOWN_SECONDS
        fake.objects.clear()
        # Who owned a UID is still true when the owner can no longer be read.
        assert await shown(workloads, *pods) == [RECORDED[pod.name] for pod in pods]
        assert len(fake.requests) > asked


async def test_what_is_not_there_is_not_asked_for_again_at_once(clock: Clock) -> None:
    pod = owned("p", "Job", "j", "u", "batch/v1")
    async with FakeApi() as fake, resolving(fake) as workloads:
        assert await shown(workloads, pod) == ["Job/j"]
        assert await shown(workloads, pod) == ["Job/j"]
        assert len(fake.requests) == 1
        clock.ahead += UNKNOWN_SECONDS
        fake.objects["/apis/batch/v1/namespaces/ns/jobs/j"] = made("u", ("batch/v1", "CronJob", "c", "u2"))
        assert await shown(workloads, pod) == ["CronJob/c"]


async def test_another_object_of_the_same_name_is_not_the_owner() -> None:
    path = "/apis/batch/v1/namespaces/ns/jobs/j"
    objects = {path: made("another", ("batch/v1", "CronJob", "wrong", "u2"))}
    async with FakeApi(objects=objects) as fake, resolving(fake) as workloads:
        assert await shown(workloads, owned("p", "Job", "j", "u", "batch/v1")) == ["Job/j"]


async def test_a_circle_of_owners_is_cut() -> None:
    path = "/apis/apps/v1/namespaces/ns/statefulsets/"
    circle = zip("abcd", "bcda", strict=True)
    objects = {path + low: made(f"u{low}", ("apps/v1", "StatefulSet", up, f"u{up}")) for low, up in circle}
    async with FakeApi(objects=objects) as fake, resolving(fake) as workloads:
        assert await shown(workloads, owned("p", "StatefulSet", "a", "ua")) == ["StatefulSet/d"]
        assert len(fake.requests) == 4


async def test_the_way_up_has_an_end() -> None:
    path = "/apis/apps/v1/namespaces/ns/statefulsets/s"
    objects = {f"{path}{n}": made(f"u{n}", ("apps/v1", "StatefulSet", f"s{n + 1}", f"u{n + 1}")) for n in range(20)}
    async with FakeApi(objects=objects) as fake, resolving(fake) as workloads:
        assert await shown(workloads, owned("p", "StatefulSet", "s0", "u0")) == ["StatefulSet/s5"]


async def test_a_slow_server_does_not_hold_up_the_caller() -> None:
    pods = recorded_pods()
    async with (
        FakeApi(objects=owners(), delay=PATIENCE) as fake,
        resolving(fake, deadline=0.05) as workloads,
    ):
        found = await shown(workloads, *pods)
        # Only the label of a Deployment names it before there is an answer.
        assert set(found) == {"Deployment/chat", "Pod/share-1", UNKNOWN}
        fake.delay = 0.0
        async with asyncio.timeout(PATIENCE):
            while "CronJob/nightly" not in await shown(workloads, *pods):
                pass


async def test_a_dead_server_is_left_alone_for_a_while() -> None:
    fake = FakeApi(objects=owners())
    async with fake:
        fake.refuse(503, times=10_000)
        async with resolving(fake) as workloads:
            for _ in range(3):
                await workloads.resolve(recorded_pods())
            assert len(fake.requests) <= 4


async def test_a_server_that_is_back_is_asked_for_what_came_up_meanwhile(clock: Clock) -> None:
    early, late = owned("p", "Job", "i", "u1", "batch/v1"), owned("q", "Job", "j", "u2", "batch/v1")
    objects = {"/apis/batch/v1/namespaces/ns/jobs/j": made("u2", ("batch/v1", "CronJob", "c", "u3"))}
    async with FakeApi(objects=objects) as fake, resolving(fake) as workloads:
        fake.refuse(503)
        await workloads.resolve([early])
        clock.ahead += UNKNOWN_SECONDS / 2
        assert await shown(workloads, early, late) == [UNKNOWN, UNKNOWN]
        assert len(fake.requests) == 1
        clock.ahead += UNKNOWN_SECONDS / 2
        assert await shown(workloads, late) == ["CronJob/c"]


async def test_a_missing_right_costs_no_more_than_that_kind() -> None:
    async with FakeApi(objects=owners()) as fake, resolving(fake) as workloads:
        fake.refuse(403, times=100, wanted=lambda seen: "replicasets" in seen.path)
        pods = recorded_pods()
        found = await shown(workloads, *pods)
        assert dict(zip((pod.name for pod in pods), found, strict=True)) == RECORDED


async def test_one_call_starts_few_requests() -> None:
    pods = [owned(f"p{n}", "Job", f"j{n}", f"u{n}", "batch/v1") for n in range(100)]
    async with FakeApi() as fake, resolving(fake) as workloads:
        await workloads.resolve(pods)
        assert len(fake.requests) == MOST_REQUESTS


NIGHTLY = {
    "/apis/batch/v1/namespaces/ns/jobs/j": made("u", ("batch/v1", "CronJob", "c", "top")),
    "/apis/batch/v1/namespaces/ns/cronjobs/c": made("top"),
}


@asynccontextmanager
async def fleet_of(size: int, fake: FakeApi, **options: Any) -> AsyncIterator[list[Workloads]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(resolving(fake, **options)) for _ in range(size)]


async def test_agents_that_start_together_do_not_ask_together(still: StillClock) -> None:
    size, pod = 40, owned("p", "Job", "j", "u", "batch/v1")
    async with FakeApi(objects=dict(NIGHTLY)) as fake, fleet_of(size, fake, spread=SPREAD) as fleet:
        first = await asyncio.gather(*(shown(workloads, pod) for workloads in fleet))
        asked = [0, len(fake.requests)]
        while not all(workloads.knows_all([pod]) for workloads in fleet):
            still.now += SPREAD / STEPS
            await asyncio.gather(*(workloads.resolve([pod]) for workloads in fleet))
            asked.append(len(fake.requests))
        last = await asyncio.gather(*(shown(workloads, pod) for workloads in fleet))
    assert first.count([UNKNOWN]) > size / 2  # a Job of a CronJob is never shown as the workload
    assert ["Job/j"] not in first
    assert last == [["CronJob/c"]] * size
    assert len(fake.requests) == 2 * size  # the owner of an owner is asked for at once
    assert max(after - before for before, after in pairwise(asked)) < size


async def test_agents_do_not_come_back_together_after_a_failure(still: StillClock) -> None:
    size = 20
    pods = [owned(f"p{number}", "Job", f"j{number}", f"u{number}", "batch/v1") for number in range(size)]
    asked: defaultdict[str, list[float]] = defaultdict(list)
    async with FakeApi() as fake, fleet_of(size, fake, spread=SPREAD) as fleet:
        fake.refuse(503, times=10_000)
        while len(asked) < size or min(map(len, asked.values())) < 2:
            still.now += SPREAD / STEPS
            known = len(fake.requests)
            await asyncio.gather(*(workloads.resolve([pod]) for workloads, pod in zip(fleet, pods, strict=True)))
            for seen in fake.requests[known:]:
                asked[seen.path].append(still.now)
    pauses = [times[1] - times[0] for times in asked.values()]
    assert min(pauses) >= UNKNOWN_SECONDS
    assert max(pauses) - min(pauses) > SPREAD / 3


@pytest.mark.parametrize(
    ("name", "version", "kind"),
    [
        ("../../secrets", "apps/v1", "Job"),
        ("a/b", "batch/v1", "Job"),
        ("a", "../v1", "X"),
        ("a?x", "v1", "X"),
        ("", "", ""),
    ],
)
async def test_an_owner_with_a_strange_name_leads_nowhere(name: str, version: str, kind: str) -> None:
    async with FakeApi() as fake, resolving(fake) as workloads:
        assert await shown(workloads, owned("p", kind, name, "u", version)) == [f"{kind}/{name}"]
        assert fake.requests == []


async def test_the_first_label_present_gives_the_name() -> None:
    workloads = Workloads(None, name_labels=("team.example/job", "app"))
    both = owned("p", "Job", "j", "u", "batch/v1", **{"app": "x", "team.example/job": "train"})
    fallback = owned("q", "Job", "j", "u", "batch/v1", app="x")
    none = owned("r", "Job", "j", "u", "batch/v1", app="")
    assert await shown(workloads, both, fallback, none) == ["Job/train", "Job/x", "Job/j"]
