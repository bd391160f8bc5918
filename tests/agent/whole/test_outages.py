"""Kubernetes may go away; the numbers and their names stay, and say how old they are."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent
from podgpu.kube.api import ApiServer
from podgpu.kube.kubelet import podresources
from podgpu.kube.log_dirs import LogDirs
from podgpu.kube.object_watch import PodWatch
from podgpu.model import Device, Gpu, PartStatus, Report, Snapshot, Workload
from podgpu.views.native import families
from tests.agent.stage import StillPods, agent_over, check_balance, claims, pod_resources, snapshot_when
from tests.fakeapi.recorded import NODE, listed, owners
from tests.fakeapi.server import FakeApi
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import given
from tests.fakenvml.fake_node import FakeNode, h200
from tests.patience import PATIENCE
from tests.tree import SETTINGS

LIST = "/v1.PodResourcesLister/List"
OUTAGE_SECONDS = 3.0


def answer(**pods: str) -> Reply:
    """A kubelet's answer: each pod by its name, with its one GPU. Answers written one after another are one."""
    return Reply(b"".join(given(uuid.encode(), pod=name.encode()) for name, uuid in pods.items()))


Series = tuple[str | tuple[str, str], ...]


def has_power(snapshot: Snapshot) -> bool:
    """Whether there are two claims, and what the first container draws was measured."""
    tenants = [tenant for card in snapshot.cards for tenant in card.tenants]
    return len(tenants) == 2 and bool(tenants[0].booking.power_watts)


def workloads(snapshot: Snapshot) -> dict[str, Workload]:
    return {pod.uid: pod.workload for pod in snapshot.pods if pod.workload}


def part(snapshot: Snapshot, name: str) -> PartStatus:
    return next(status for status in snapshot.parts if status.name == name)


def container_series(snapshot: Snapshot) -> set[Series]:
    """Every container series of the page, by name and labels."""
    return {
        (family.name, *(pair for label in labels for pair in zip(label.names, label.values, strict=True)))
        for family in families(snapshot, {})
        if family.name.startswith("podgpu_container_")
        for labels in family.samples
    }


@asynccontextmanager
async def two_pods(
    library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, pods: dict[str, str]
) -> AsyncIterator[tuple[FakeKubelet, Agent]]:
    node = FakeNode([h200(number) for number in range(2)])
    with kubelet_root() as root:
        kubelet = FakeKubelet(root)
        kubelet.replies[LIST] = answer(**pods)
        await kubelet.start()
        try:
            async with agent_over(library, folder, node, monkeypatch, kubelet=kubelet, pod_sources=[]) as agent:
                yield kubelet, agent
        finally:
            await kubelet.stop()


PODS = {"train": h200(0).uuid, "serve": h200(1).uuid}


async def test_the_map_outlives_the_kubelet_and_is_fresh_when_it_is_back(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(podresources, "SETTLING_SECONDS", 2.0)
    async with two_pods(library, tmp_path, monkeypatch, PODS) as (kubelet, agent):
        before = await snapshot_when(agent, "two claims", has_power)
        await kubelet.stop()
        await snapshot_when(agent, "the kubelet is missed", lambda snapshot: not part(snapshot, "podresources").up)
        during = await snapshot_when(
            agent,
            "a long outage",
            lambda snapshot: (
                (part(snapshot, "podresources").age_seconds or 0) >= OUTAGE_SECONDS and has_power(snapshot)
            ),
        )
        assert claims(during) == claims(before)
        assert container_series(during) == container_series(before), "a series was renamed or lost"
        check_balance(during)

        kubelet.replies[LIST] = answer(serve=PODS["serve"])
        await kubelet.start()
        # It may not have heard of all its pods yet, so those it does not list keep their cards for a while.
        back = await snapshot_when(agent, "back again", lambda snapshot: part(snapshot, "podresources").up)
        assert {claim.container.pod for claim in claims(back)} >= {"serve"}
        await snapshot_when(agent, "one claim", lambda snapshot: len(claims(snapshot)) == 1)


async def test_a_deleted_pod_is_gone_at_the_next_cycle(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its gauges go at once; its counters stay, so that the last increase is scraped."""
    async with two_pods(library, tmp_path, monkeypatch, PODS) as (kubelet, agent):
        await snapshot_when(agent, "two claims", has_power)
        kubelet.replies[LIST] = answer(serve=PODS["serve"])
        after = await snapshot_when(agent, "one claim", lambda snapshot: len(claims(snapshot)) == 1)
        assert {name for name, *labels in container_series(after) if ("pod", "train") in labels} == {
            "podgpu_container_busy_seconds_total",
            "podgpu_container_energy_joules_total",
            "podgpu_container_busy_settled_seconds_total",
            "podgpu_container_unknown_use_seconds_total",
            "podgpu_container_busy_bound_seconds_total",
            "podgpu_container_energy_bound_joules_total",
            "podgpu_container_busy_likely_seconds_total",
            "podgpu_container_energy_likely_joules_total",
            "podgpu_container_allocated_seconds_total",
        }
        check_balance(after)


async def test_names_outlive_the_api_server(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pods = listed()
    card = h200(0)
    card.uuid = "GPU-7f3c9a12-52d4-4b8e-9c60-1a2b3c4d5e62"
    with kubelet_root() as root:
        async with FakeKubelet(root) as kubelet, contextlib.AsyncExitStack() as stack:
            kubelet.replies = pod_resources("kubernetes-1.36.4")
            version = int(pods["metadata"]["resourceVersion"])
            server = FakeApi(pods=pods["items"], version=version, objects=owners())
            await stack.enter_async_context(server)
            api = ApiServer(server.url)
            async with agent_over(
                library,
                tmp_path,
                FakeNode([card]),
                monkeypatch,
                kubelet=kubelet,
                pod_sources=[PodWatch(api, NODE)],
                api=api,
            ) as agent:
                before = await snapshot_when(agent, "rank-0 is named", workloads)
                await server.stop()
                await snapshot_when(
                    agent, "the API server is missed", lambda snapshot: not part(snapshot, "apiserver").up
                )
                during = await snapshot_when(
                    agent,
                    "a long outage",
                    lambda snapshot: (part(snapshot, "apiserver").age_seconds or 0) >= OUTAGE_SECONDS,
                )
                assert workloads(during) == workloads(before)
                assert [pod.uid for pod in during.pods] == [pod.uid for pod in before.pods]


async def test_an_agent_that_starts_without_the_api_server_does_not_take_a_pod_for_its_own_workload(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log folders name the pods meanwhile, and say nothing of their owners."""
    pods = listed()
    names = (item["metadata"] for item in pods["items"] if item["metadata"]["name"].startswith("chat-"))
    for name in names:
        (tmp_path / f"log/pods/{name['namespace']}_{name['name']}_{name['uid']}/server").mkdir(parents=True)
    card = h200(0)
    card.uuid = "GPU-7f3c9a13-52d4-4b8e-9c60-1a2b3c4d5e63"

    def named(snapshot: Snapshot) -> list[Workload | None]:
        """What the pods were made for that hold the card, once their UIDs are known."""
        tenants = [tenant for card in snapshot.cards for tenant in card.tenants if tenant.container.pod_uid]
        return [tenant.workload for tenant in tenants if tenant.container.pod.startswith("chat-")]

    with kubelet_root() as root:
        async with FakeKubelet(root) as kubelet:
            kubelet.replies = pod_resources("kubernetes-1.36.4")
            version = int(pods["metadata"]["resourceVersion"])
            server = FakeApi(pods=pods["items"], version=version, objects=owners())
            api = ApiServer(server.url)
            async with agent_over(
                library,
                tmp_path,
                FakeNode([card]),
                monkeypatch,
                kubelet=kubelet,
                pod_sources=[PodWatch(api, NODE), LogDirs(tmp_path / "log")],
                api=api,
            ) as agent:
                before = await snapshot_when(agent, "the pods are named", named)
                assert set(named(before)) == {None} and not workloads(before)
                async with server:
                    after = await snapshot_when(agent, "their owner is known", workloads)
                assert set(named(after)) == {Workload(kind="Deployment", name="chat")}


class OnceOnly:
    """A source that answers once, with an error it counted, and then never again."""

    name, demo = "nvml", False

    def __init__(self) -> None:
        self._asked = False

    async def read(self) -> Report:
        if self._asked:
            await asyncio.Event().wait()
        self._asked = True
        return Report(devices=(Device(gpu=Gpu(uuid="GPU-1", index=0)),), errors={"gpm_sample": 2})

    async def release(self, seconds: float) -> bool:
        return True

    async def close(self) -> None:
        return


async def test_a_reading_that_grew_too_old_loses_its_cards_and_keeps_its_counts() -> None:
    kubelet = StillPods(())
    attribution = Attribution(interval=0.05, pod_sources=[kubelet])
    agent = Agent(OnceOnly(), node="n", interval=0.05, settings=SETTINGS, attribution=attribution)
    await agent.cycle()
    assert agent.snapshot.cards
    snapshot = await asyncio.wait_for(agent.changed(agent.snapshot), PATIENCE)
    fault = part(snapshot, "nvml").fault
    assert (snapshot.cards, fault and fault.reason) == ((), "stale")
    assert part(snapshot, kubelet.name).up
    assert [(error.reason, error.count) for error in snapshot.errors] == [("gpm_sample", 2)]
    await agent.close()
