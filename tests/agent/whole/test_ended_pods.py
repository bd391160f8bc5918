"""Pods come and go while the kubelet does not list what they have: no claim outlives its pod, and none is inherited."""

import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from grpclib.const import Status

from podgpu.agent.loop import Agent
from podgpu.host.proc_stat import TICKS
from podgpu.kube.api import ApiServer
from podgpu.kube.kubelet import podresources
from podgpu.kube.object_watch import PodWatch
from podgpu.model import ContainerRef, Snapshot
from podgpu.views.native import families
from podgpu.views.why import why
from tests.agent.stage import agent_over, check_balance, claims, snapshot_when, write_proc
from tests.fakeapi.recorded import NODE
from tests.fakeapi.server import FakeApi
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import given
from tests.fakenvml.fake_node import FakeNode, FakeProcess, h200
from tests.patience import PATIENCE

LIST = "/v1.PodResourcesLister/List"
A, B, NEW = (f"{number * 8}-2222-4333-8444-555555555555" for number in "abc")
PID = 4242


def pod(name: str, uid: str, version: int) -> dict[str, Any]:
    """A pod as the API server has it, whose one container runs."""
    status = {"name": "main", "containerID": f"containerd://{uid[0] * 64}", "state": {"running": {}}}
    return {
        "metadata": {"namespace": "team", "name": name, "uid": uid, "resourceVersion": str(version)},
        "spec": {"nodeName": NODE, "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def cgroup(uid: str) -> str:
    return f"0::/kubepods/pod{uid}/{uid[0] * 64}\n"


def listed(**pods: int) -> Reply:
    """A kubelet's answer: each pod by its name, with the number of its card."""
    rows = [
        given(h200(card).uuid.encode(), pod=name.encode(), namespace=b"team", container=b"main")
        for name, card in pods.items()
    ]
    return Reply(b"".join(rows))


class Stage(NamedTuple):
    agent: Agent
    kubelet: FakeKubelet
    server: FakeApi


@asynccontextmanager
async def stage(library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """Two pods with a card each. The process on the first card is that of whoever comes next."""
    card = h200(0)
    card.processes = [FakeProcess(PID, 1 << 30, sm=90)]
    (folder / "proc").mkdir()
    booted_at = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    (folder / "proc" / "stat").write_text(f"btime {booted_at}\n")
    with kubelet_root() as root:
        async with FakeKubelet(root) as kubelet, FakeApi(pods=[pod("a", A, 1), pod("stays", B, 2)], version=5) as fake:
            kubelet.replies[LIST] = listed(a=0, stays=1)
            api = ApiServer(fake.url, connect_seconds=PATIENCE, answer_seconds=PATIENCE)
            async with agent_over(
                library,
                folder,
                FakeNode([card, h200(1)]),
                monkeypatch,
                kubelet=kubelet,
                pod_sources=[PodWatch(api, NODE)],
                api=api,
            ) as agent:
                write_proc(folder / "proc", PID, cgroup(A))
                await snapshot_when(
                    agent, "a and its process", lambda found: holders(found) == {"a", "stays"} and runs(found, A)
                )
                yield Stage(agent, kubelet, fake)


def holders(snapshot: Snapshot) -> set[str]:
    """The names of pods with a claim, whatever UID it has."""
    return {claim.container.pod for claim in claims(snapshot)}


def runs(snapshot: Snapshot, uid: str) -> bool:
    tenants = [tenant for card in snapshot.cards for tenant in card.tenants]
    return any(tenant.running and tenant.container.pod_uid == uid for tenant in tenants)


def replace_process(folder: Path, uid: str) -> None:
    """The PID is used again by a process of another pod, which starts now."""
    shutil.rmtree(folder / "proc" / str(PID))
    write_proc(folder / "proc", PID, cgroup(uid), start=str(ceil(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS)))


async def exhausted(kubelet: FakeKubelet) -> None:
    kubelet.replies[LIST] = Reply(status=Status.RESOURCE_EXHAUSTED)


async def hangs(kubelet: FakeKubelet) -> None:
    kubelet.replies[LIST] = Reply(hangs=True)


async def is_gone(kubelet: FakeKubelet) -> None:
    await kubelet.stop()


FAILURES = [exhausted, hangs, is_gone]


def named_by_gauges(snapshot: Snapshot) -> set[str]:
    """The pods that a gauge of a container names."""
    return {
        value
        for family in families(snapshot, {})
        if family.name.startswith("podgpu_container_") and not family.name.endswith("_total")
        for labels in family.samples
        for label in labels
        for name, value in zip(label.names, label.values, strict=True)
        if name == "pod"
    }


@pytest.mark.parametrize("fails", FAILURES)
async def test_a_deleted_pod_holds_nothing_while_the_kubelet_fails_and_the_next_one_is_named(
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: Callable[[FakeKubelet], Any],
) -> None:
    async with stage(library, tmp_path, monkeypatch) as (agent, kubelet, server):
        await fails(kubelet)
        replace_process(tmp_path, NEW)
        server.event("DELETED", pod("a", A, 6))
        server.event("ADDED", pod("b", NEW, 7))
        after = await snapshot_when(agent, "b runs", lambda found: runs(found, NEW))
        assert holders(after) == {"stays"}, "a pod that the watch still has keeps its card, and no other"
        assert named_by_gauges(after) == {"b", "stays"}
        assert after.insight is not None
        assert [problem.text for problem in after.insight.problems if problem.kind == "not_given"] == []
        check_balance(after)


@pytest.mark.parametrize("fails", FAILURES)
async def test_a_pod_of_the_same_name_does_not_inherit_a_card(
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: Callable[[FakeKubelet], Any],
) -> None:
    """As with a StatefulSet, whose next pod may be given another card, or none yet."""
    async with stage(library, tmp_path, monkeypatch) as (agent, kubelet, server):
        await fails(kubelet)
        server.event("DELETED", pod("a", A, 6))
        server.event("ADDED", pod("a", NEW, 7))
        replace_process(tmp_path, NEW)
        after = await snapshot_when(agent, "the new a runs", lambda found: runs(found, NEW))
        assert holders(after) == {"stays"}
        assert holders(await agent.changed(after)) == {"stays"}


async def test_a_pod_that_ended_with_the_kubelet_away_is_not_awaited(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubelet that has just started may not list all its pods. Those that the watch has not are not among them."""
    monkeypatch.setattr(podresources, "SETTLING_SECONDS", PATIENCE)
    async with stage(library, tmp_path, monkeypatch) as (agent, kubelet, server):
        await kubelet.stop()
        server.event("DELETED", pod("a", A, 6))
        await snapshot_when(agent, "a is gone", lambda found: holders(found) == {"stays"})
        kubelet.replies[LIST] = listed()
        await kubelet.start()
        back = await snapshot_when(
            agent,
            "the kubelet is back",
            lambda found: any(part.up for part in found.parts if part.name == "podresources"),
        )
        assert holders(back) == {"stays"}


async def test_what_a_watch_has_ended_stays_ended_when_the_watch_fails_too(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(library, tmp_path, monkeypatch) as (agent, kubelet, server):
        await kubelet.stop()
        server.event("DELETED", pod("a", A, 6))
        await snapshot_when(agent, "a is gone", lambda found: holders(found) == {"stays"})
        await server.stop()
        after = await snapshot_when(
            agent,
            "both are away",
            lambda found: not any(part.up for part in found.parts if part.name == "apiserver"),
        )
        assert holders(after) == {"stays"}


async def test_a_pod_whose_uid_comes_late_is_not_listed_once_more_as_ended(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after each start of the agent: the kubelet lists names before a list of pods has their UIDs."""
    with kubelet_root() as root:
        async with FakeKubelet(root) as kubelet, FakeApi(pods=[pod("a", A, 1)], version=5, delay=PATIENCE) as fake:
            kubelet.replies[LIST] = listed(a=0)
            api = ApiServer(fake.url, connect_seconds=PATIENCE, answer_seconds=PATIENCE)
            async with agent_over(
                library,
                tmp_path,
                FakeNode([h200(0)]),
                monkeypatch,
                kubelet=kubelet,
                pod_sources=[PodWatch(api, NODE)],
                api=api,
            ) as agent:
                before = await snapshot_when(
                    agent, "energy by name alone", lambda seen: any(booked_mj(seen, uid="") for _ in claims(seen))
                )
                fake.delay = 0.0
                after = await snapshot_when(agent, "the UID", lambda seen: A in {each.pod_uid for each in held(seen)})
                assert [card.ended for card in after.cards] == [()]
                assert booked_mj(after, uid=A) >= booked_mj(before, uid="") > 0
                text = why(after, "team", "a", 100)
                assert text is not None
                assert "no longer there" not in text
                check_balance(after)


def held(snapshot: Snapshot) -> list[ContainerRef]:
    return [claim.container for claim in claims(snapshot)]


def booked_mj(snapshot: Snapshot, uid: str) -> int:
    tenants = [tenant for card in snapshot.cards for tenant in card.tenants]
    return sum(tenant.booking.energy_mj for tenant in tenants if tenant.container.pod_uid == uid)
