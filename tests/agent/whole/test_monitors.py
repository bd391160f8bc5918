"""Who has admin access to a card looks at it, and holds nothing. As long as that is not known, nothing is said."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podgpu.agent.loop import Agent
from podgpu.kube.api import ApiServer
from podgpu.kube.object_watch import PodWatch, WatchTiming
from podgpu.kube.resource_claims import ResourceClaims
from podgpu.model import Claim, Snapshot
from podgpu.views.table import table
from podgpu.views.why import why
from tests.agent.stage import agent_over, check_balance, claims, snapshot_when, write_proc
from tests.agent.whole.test_accusations import ACCUSES, UID, WIDTH, accused, alerted, cgroup, status
from tests.fakeapi.recorded import NODE
from tests.fakeapi.server import FakeApi, Plan, Seen
from tests.fakekubelet.kubelet import FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import given_dynamically
from tests.fakenvml.fake_node import FakeNode, FakeProcess, h200
from tests.patience import PATIENCE

LIST = "/v1.PodResourcesLister/List"
ROOT = "/apis/resource.k8s.io/v1"
DRIVER = "gpu.nvidia.com"
WATCHER = "33333333-2222-4333-8444-555555555555"
HOLDER_PID, WATCHER_PID = 100, 300
# Each with the cards that its claim has; the second has admin access to them.
USERS = {"train": (UID, 0), "watcher": (WATCHER, 0, 1)}
TIMING = WatchTiming(first_pause=0.05, longest_pause=0.1, forbidden_pause=0.1, relist=0.2)


def pod(name: str) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "team", "name": name, "uid": USERS[name][0], "resourceVersion": "1"},
        "spec": {
            "nodeName": NODE,
            "containers": [{"name": "main", "resources": {"claims": [{"name": "own"}]}}],
            "resourceClaims": [{"name": "own", "resourceClaimName": name}],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [status("main", 1)],
            "resourceClaimStatuses": [{"name": "own", "resourceClaimName": name}],
        },
    }


def claim(name: str) -> dict[str, Any]:
    uid, *cards = USERS[name]
    admin = {"adminAccess": True} if name == "watcher" else {}
    results = [{"request": "gpu", "driver": DRIVER, "pool": NODE, "device": f"gpu-{card}", **admin} for card in cards]
    return {
        "metadata": {"namespace": "team", "name": name, "uid": uid, "resourceVersion": "1"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": uid}],
        },
    }


def row(name: str) -> bytes:
    _, *cards = USERS[name]
    devices = [(DRIVER.encode(), NODE.encode(), f"gpu-{card}".encode()) for card in cards]
    return given_dynamically(*devices, claim=name.encode(), pod=name.encode(), namespace=b"team", container=b"main")


def is_claim(seen: Seen) -> bool:
    return "/resourceclaims/" in seen.path


@asynccontextmanager
async def node(
    library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, pids: dict[int, str]
) -> AsyncIterator[tuple[Agent, Plan]]:
    """A card that one pod holds and another looks at, as on the next card. Claims can be read after `allow`."""
    cards = [h200(0), h200(1)]
    cards[0].processes = [FakeProcess(pid, 1 << 30, sm=40) for pid in pids]
    for pid, uid in pids.items():
        write_proc(folder / "proc", pid, cgroup(uid, 1))
    objects = {f"{ROOT}/namespaces/team/resourceclaims/{name}": claim(name) for name in USERS}
    slices = {f"{ROOT}/resourceslices": {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}}
    with kubelet_root() as root:
        async with (
            FakeKubelet(root) as kubelet,
            FakeApi(pods=[pod(name) for name in USERS], version=5, objects=objects | slices) as fake,
        ):
            refused = fake.refuse(403, times=1 << 30, wanted=is_claim)
            kubelet.replies[LIST] = Reply(b"".join(map(row, USERS)))
            api = ApiServer(fake.url, connect_seconds=PATIENCE, answer_seconds=PATIENCE)
            async with agent_over(
                library,
                folder,
                FakeNode(cards),
                monkeypatch,
                kubelet=kubelet,
                pod_sources=[PodWatch(api, NODE)],
                api=api,
                dynamics=ResourceClaims(api, NODE, timing=TIMING),
            ) as agent:
                yield agent, refused


def allow(refused: Plan) -> None:
    refused.times = 0


def is_up(part: str) -> Callable[[Snapshot], bool]:
    return lambda snapshot: any(status.up for status in snapshot.parts if status.name == part)


def doubts(snapshot: Snapshot) -> str:
    return " ".join(doubt for status in snapshot.sharing for doubt in status.doubts)


def held(snapshot: Snapshot) -> list[tuple[str, float]]:
    found: list[Claim] = claims(snapshot)
    return [(claim.container.pod, claim.share) for claim in found]


def tenants(snapshot: Snapshot) -> set[str]:
    return {tenant.container.pod for card in snapshot.cards for tenant in (*card.tenants, *card.ended)}


async def test_while_claims_cannot_be_read_no_share_is_known_of_a_device_that_may_only_be_looked_at(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node(library, tmp_path, monkeypatch, pids={HOLDER_PID: UID}) as (agent, refused):
        seen: list[Snapshot] = []

        def is_denied(snapshot: Snapshot) -> bool:
            seen.append(snapshot)
            faults = [part.fault for part in snapshot.parts if part.name == "resource-claims"]
            is_named = any(tenant.running and tenant.container.pod_uid for tenant in snapshot.cards[0].tenants)
            return is_named and any(fault is not None and fault.reason == "forbidden" for fault in faults)

        denied = await snapshot_when(
            agent, "claims are forbidden", lambda found: bool(found.cards) and is_denied(found)
        )
        assert {share for snapshot in seen for _, share in held(snapshot)} == {0.0}, "unknown from the first cycle on"
        allocated = [tenant.booking.allocated_ratio for card in denied.cards for tenant in card.tenants]
        assert set(allocated) == {None}
        assert "2 containers" in doubts(denied)
        assert "admin access" in doubts(denied)
        assert (accused(denied), alerted(denied)) == ([], 0)
        check_balance(denied)

        allow(refused)
        known = await snapshot_when(agent, "claims are read", lambda found: held(found) == [("train", 1.0)])
        assert doubts(known) == ""
        assert "watcher" not in tenants(known), "it was never booked"


async def test_who_has_admin_access_is_shown_as_a_monitor(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = {HOLDER_PID: UID, WATCHER_PID: WATCHER}
    async with node(library, tmp_path, monkeypatch, pids=pids) as (agent, refused):
        allow(refused)
        found = await snapshot_when(
            agent, "claims are read", lambda seen: held(seen) == [("train", 1.0)] and "watcher" in tenants(seen)
        )
        monitors = [
            (card.gpu.index, who.role, who.container and who.container.pod)
            for card in found.cards
            for who in card.excused
        ]
        assert monitors == [(0, "monitor", "watcher"), (1, "monitor", "watcher")]
        assert (accused(found), alerted(found)) == ([], 0)
        text = why(found, "team", "watcher", WIDTH)
        assert text is not None
        assert ACCUSES not in text
        assert "admin access" in text
        assert "monitor team/watcher/main on GPU 1" in table(found, WIDTH, colour=False)
        check_balance(found)
