"""Nobody is said to use what it was not given, unless that is proven."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podgpu.agent.loop import Agent
from podgpu.kube.api import ApiServer
from podgpu.kube.object_watch import PodWatch
from podgpu.model import Snapshot
from podgpu.views.native import families
from podgpu.views.why import why
from tests.agent.stage import agent_over, check_balance, snapshot_when, write_proc
from tests.fakeapi.recorded import NODE
from tests.fakeapi.server import FakeApi
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import given
from tests.fakenvml.fake_node import FakeGpu, FakeNode, FakeProcess, h200
from tests.patience import PATIENCE

LIST = "/v1.PodResourcesLister/List"
UID, OTHER = "11111111-2222-4333-8444-555555555555", "22222222-2222-4333-8444-555555555555"
WIDTH = 100
ACCUSES = "Look for a privileged container"


def status(name: str, number: int) -> dict[str, Any]:
    return {"name": name, "containerID": f"containerd://{number:064x}", "state": {"running": {}}}


def pod(name: str, uid: str, *containers: str, ephemeral: str = "") -> dict[str, Any]:
    """A pod as the API server has it. Its containers have the ids 1, 2 and so on; an ephemeral one has 9."""
    statuses = [status(container, number) for number, container in enumerate(containers, 1)]
    return {
        "metadata": {"namespace": "team", "name": name, "uid": uid, "resourceVersion": "1"},
        "spec": {
            "nodeName": NODE,
            "containers": [{"name": container} for container in containers],
            "ephemeralContainers": [{"name": ephemeral}] * bool(ephemeral),
        },
        "status": {
            "phase": "Running",
            "containerStatuses": statuses,
            "ephemeralContainerStatuses": [status(ephemeral, 9)] * bool(ephemeral),
        },
    }


def cgroup(uid: str, number: int) -> str:
    return f"0::/kubepods/pod{uid}/{number:064x}\n"


def card(number: int, *pids: int) -> FakeGpu:
    gpu = h200(number)
    gpu.processes = [FakeProcess(pid, 1 << 30, sm=20) for pid in pids]
    return gpu


def row(device_id: str, name: str, container: str = "main") -> bytes:
    return given(device_id.encode(), namespace=b"team", pod=name.encode(), container=container.encode())


@asynccontextmanager
async def node_of(
    library: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    cards: list[FakeGpu],
    pods: list[dict[str, Any]],
    rows: list[bytes],
    processes: dict[int, str],
) -> AsyncIterator[Agent]:
    for pid, line in processes.items():
        write_proc(folder / "proc", pid, line)
    with kubelet_root() as root:
        async with FakeKubelet(root) as kubelet, FakeApi(pods=pods, version=5) as fake:
            kubelet.replies[LIST] = Reply(b"".join(rows))
            api = ApiServer(fake.url, connect_seconds=PATIENCE, answer_seconds=PATIENCE)
            async with agent_over(
                library,
                folder,
                FakeNode(cards),
                monkeypatch,
                kubelet=kubelet,
                pod_sources=[PodWatch(api, NODE)],
                api=api,
            ) as agent:
                yield agent


def accused(snapshot: Snapshot) -> list[str]:
    assert snapshot.insight is not None
    return [problem.text for problem in snapshot.insight.problems if problem.kind == "not_given"]


def alerted(snapshot: Snapshot) -> int:
    """How many series the alert about use without a claim would be raised for."""
    return sum(len(family.samples) for family in families(snapshot, {}) if family.name == "podgpu_container_not_given")


def running(snapshot: Snapshot, *pids: int) -> bool:
    """Whether the pods of these processes are known, and the kubelet has answered."""
    known = {
        process.pid
        for card in snapshot.cards
        for tenant in card.tenants
        for process in tenant.running
        if tenant.idle is False
    }
    return known >= set(pids) and any(part.up for part in snapshot.parts if part.name == "podresources")


async def test_a_pod_whose_device_is_not_understood_is_not_accused(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node_of(
        library,
        tmp_path,
        monkeypatch,
        cards=[card(0, 100), card(1)],
        pods=[pod("odd", UID, "main")],
        rows=[row("slice-of-something", "odd")],
        processes={100: cgroup(UID, 1)},
    ) as agent:
        found = await snapshot_when(agent, "its process", lambda seen: running(seen, 100))
        assert [allocation.device_id for allocation in found.unclaimed] == ["slice-of-something"]
        assert (accused(found), alerted(found)) == ([], 0)
        text = why(found, "team", "odd", WIDTH)
        assert text is not None
        assert ACCUSES not in text
        check_balance(found)


async def test_nor_while_a_card_does_not_answer_that_its_device_may_be(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the device is not listed as unknown: it may be understood when the card is back."""
    cards = [card(0, 100), card(1)]
    node = FakeNode(cards)
    async with node_of(
        library,
        tmp_path,
        monkeypatch,
        cards=cards,
        pods=[pod("odd", UID, "main")],
        rows=[row("slice-of-something", "odd")],
        processes={100: cgroup(UID, 1)},
    ) as agent:
        await snapshot_when(agent, "its process", lambda seen: running(seen, 100))
        del cards[1]
        node.write(tmp_path / "script")
        found = await snapshot_when(
            agent, "a card is gone", lambda seen: running(seen, 100) and any(card.fault for card in seen.cards)
        )
        assert (accused(found), alerted(found)) == ([], 0)


async def test_a_helper_and_a_debug_container_of_the_pod_that_holds_the_card_are_not_accused(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node_of(
        library,
        tmp_path,
        monkeypatch,
        cards=[card(0, 100, 101, 109), card(1)],
        pods=[pod("train", UID, "main", "helper", ephemeral="debug")],
        rows=[row(h200(0).uuid, "train")],
        processes={pid: cgroup(UID, number) for pid, number in ((100, 1), (101, 2), (109, 9))},
    ) as agent:
        found = await snapshot_when(agent, "three processes", lambda seen: running(seen, 100, 101, 109))
        assert (accused(found), alerted(found)) == ([], 0)
        text = why(found, "team", "train", WIDTH)
        assert text is not None
        assert ACCUSES not in text
        assert text.count("allocated to its pod") == 2


async def test_a_pod_that_was_given_another_card_or_none_is_named_with_its_container(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node_of(
        library,
        tmp_path,
        monkeypatch,
        cards=[card(0, 100, 200), card(1)],
        pods=[pod("elsewhere", UID, "main", "helper"), pod("none", OTHER, "only")],
        rows=[row(h200(1).uuid, "elsewhere")],
        processes={100: cgroup(UID, 2), 200: cgroup(OTHER, 1)},
    ) as agent:
        found = await snapshot_when(agent, "both", lambda seen: running(seen, 100, 200))
        assert accused(found) == [
            "Container helper of team/elsewhere uses GPU 0, which is not allocated to the pod.",
            "Container only of team/none uses GPU 0, which is not allocated to the pod.",
        ]
        assert alerted(found) == 2


async def test_a_process_in_a_container_that_no_list_has_yet_is_booked_to_its_pod(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node_of(
        library,
        tmp_path,
        monkeypatch,
        cards=[card(0, 100), card(1)],
        pods=[pod("train", UID, "main", "helper")],
        rows=[row(h200(0).uuid, "train")],
        processes={100: cgroup(UID, 7)},
    ) as agent:
        found = await snapshot_when(
            agent,
            "its energy",
            lambda seen: running(seen, 100) and any(tenant.booking.energy_mj for tenant in seen.cards[0].tenants),
        )
        booked = {tenant.container.container: tenant for tenant in found.cards[0].tenants}
        assert booked.keys() == {"", "main"}
        assert booked[""].container.pod_uid == UID
        assert booked[""].booking.memory_bytes == 1 << 30
        assert booked["main"].idle is None, "the process may be that of the container which holds the card"
        assert [rest.memory_bytes for rest in found.cards[0].rest if rest.reason == "unknown"] == [None]
        assert accused(found) == []
        text = why(found, "team", "train", WIDTH)
        assert text is not None
        assert "so it is booked to the pod" in text
        check_balance(found)
