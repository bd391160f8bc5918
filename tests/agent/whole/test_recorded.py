"""Recorded clusters, played again through the real library's ABI, real sockets and a real HTTP server."""

import json
from pathlib import Path
from typing import Any

import pytest

from podgpu.kube.api import ApiServer
from podgpu.kube.kubelet.pods_api import PodsApi
from podgpu.kube.object_watch import PodWatch
from podgpu.model import Booking, Holder, Snapshot
from tests.agent.stage import (
    RECORDED,
    agent_over,
    check_balance,
    claims,
    pod_resources,
    pods_api,
    snapshot_when,
    write_proc,
)
from tests.fakeapi.recorded import NODE, listed, owners, watch_lines
from tests.fakeapi.server import FakeApi
from tests.fakekubelet.kubelet import FakeKubelet, kubelet_root
from tests.fakenvml.fake_node import FakeGpu, FakeMig, FakeNode, FakeProcess, grows, h200
from tests.patience import PATIENCE


def gpu_map(snapshot: Snapshot) -> set[tuple[str, str, str, str]]:
    """(workload kind, workload, pod, device) of every claim."""
    found = set()
    for card in snapshot.cards:
        for tenant in card.tenants:
            assert tenant.workload and tenant.claims
            place = tenant.mig or card.gpu.uuid
            found.add((tenant.workload.kind, tenant.workload.name, tenant.container.pod, place))
    return found


def uuid(number: int) -> str:
    return f"GPU-7f3c9a1{number}-52d4-4b8e-9c60-1a2b3c4d5e6{number}"


def mig(number: int) -> str:
    return f"MIG-0a1b2c3d-1111-5111-8111-00000000000{number}"


def recorded_node() -> FakeNode:
    """The made-up GPUs of the recorded cluster, and one card for its MIG ids."""
    cards = [h200(number) for number in range(6)]
    for number, card in enumerate(cards[:5]):
        card.uuid = uuid(number)
    cards[5].mig_enabled = True
    cards[5].migs = [FakeMig(mig(n), index=n, gpu_instance=6 + n) for n in (1, 2, 3)]
    return FakeNode(cards)


async def test_the_recorded_cluster_before_and_after_its_watch(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pod on its GPU with its workload; after the watch, the map is that of its end."""
    pods = listed()
    with kubelet_root() as root:
        async with (
            FakeKubelet(root) as kubelet,
            FakeApi(pods=pods["items"], version=int(pods["metadata"]["resourceVersion"]), objects=owners()) as server,
        ):
            kubelet.replies = pod_resources("kubernetes-1.36.4")
            api = ApiServer(server.url)
            async with agent_over(
                library,
                tmp_path,
                recorded_node(),
                monkeypatch,
                kubelet=kubelet,
                pod_sources=[PodWatch(api, NODE)],
                api=api,
            ) as agent:
                before = await snapshot_when(
                    agent, "workloads", lambda snapshot: sum(pod.workload is not None for pod in snapshot.pods) == 6
                )
                assert gpu_map(before) == {
                    ("Deployment", "chat", "chat-584ddf76fc-6lg2w", uuid(3)),
                    ("Deployment", "chat", "chat-584ddf76fc-chpsw", uuid(3)),
                    ("StatefulSet", "rank", "rank-0", uuid(2)),
                    ("Job", "finetune", "finetune-mjcqc", uuid(0)),
                    ("CronJob", "nightly", "nightly-manual-22spb", mig(1)),
                    ("CronJob", "nightly", "nightly-manual-22spb", mig(2)),
                    ("Pod", "share-1", "share-1", uuid(4)),
                }
                shares = {claim.container.pod: claim.share for claim in claims(before)}
                assert shares["chat-584ddf76fc-6lg2w"] == 0.25
                assert shares["share-1"] == pytest.approx(4 / 11)
                assert before.unclaimed == ()

                for line in watch_lines():
                    server.send(line)
                end = _pods_after_the_watch()
                after = await snapshot_when(
                    agent,
                    "the end of the watch",
                    lambda snapshot: {(pod.name, pod.uid) for pod in snapshot.pods} <= end,
                )
                known = {pod.name: pod.uid for pod in after.pods}
                assert known["rank-0"] == dict(end)["rank-0"] != "7668c4a5-ebb6-4d64-81d8-6fbe1a7e7de3"
                assert len([name for name in known if name.startswith("chat")]) == 1
                check_balance(after)


def _pods_after_the_watch() -> set[tuple[str, str]]:
    """Applied by hand: the list, then each event in turn."""
    pods = {item["metadata"]["uid"]: item["metadata"]["name"] for item in listed()["items"]}
    for line in watch_lines():
        event = json.loads(line)
        metadata = event["object"]["metadata"]
        if event["type"] == "DELETED":
            pods.pop(metadata["uid"], None)
        elif event["type"] in ("ADDED", "MODIFIED"):
            pods[metadata["uid"]] = metadata["name"]
    return {(name, uid) for uid, name in pods.items()}


def recorded_card(recorded: Any) -> FakeGpu:
    """A card that goes on as the recorded one did: its memory, its power, each process's mean use."""
    samples = recorded["samples"]
    first, last = samples[0], samples[-1]
    rate = (last["energy_mj"] - first["energy_mj"]) / (last["t"] - first["t"])
    card = h200(0)
    card.uuid = recorded["uuid"]
    card.values |= {"memory_used": last["used"]}
    card.fields |= {83: grows(last["energy_mj"], rate)}
    for process in last["processes"]:
        use = [
            utilization["sm"]
            for sample in samples[1:]
            for utilization in sample["process_utilization"]
            if utilization["pid"] == process["pid"]
        ]
        mean = round(sum(use) / (len(samples) - 1))
        card.processes.append(FakeProcess(process["pid"], process["used"], sm=mean))
    return card


async def test_three_real_pods_and_a_host_process_on_a_real_card(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of each pod as recorded, the host's and nobody's part named, energy booked exactly."""
    recorded = json.loads((RECORDED / "h200-kubelet-1.36.4" / "nvml.json").read_text())
    last = recorded["samples"][-1]
    for pid, process in recorded["processes"].items():
        write_proc(tmp_path / "proc", int(pid), process["cgroup"], process["start"])
    with kubelet_root() as root:
        async with FakeKubelet(root) as kubelet:
            cluster = "h200-kubelet-1.36.4"
            kubelet.replies = pod_resources(cluster) | pods_api(cluster)
            async with agent_over(
                library,
                tmp_path,
                FakeNode([recorded_card(recorded)]),
                monkeypatch,
                kubelet=kubelet,
                pod_sources=[PodsApi(root, deadline=PATIENCE)],
            ) as agent:
                snapshot = await snapshot_when(agent, "energy", lambda snapshot: _energy(snapshot) > 2_000_000)
    (card,) = snapshot.cards
    booked = {tenant.container.pod.removesuffix("-h200-node"): tenant.booking for tenant in card.tenants}
    chat, batch, idle = (_of(booked, name) for name in ("chat", "batch", "idle"))
    assert (chat.memory_bytes, batch.memory_bytes, idle.memory_bytes) == (
        5_211_422_720,
        9_506_390_016,
        2_826_960_896,
    )
    rest = {unattributed.reason: unattributed for unattributed in card.rest}
    assert rest["host"].memory_bytes == 1_990_197_248
    assert rest["overhead"].memory_bytes == last["used"] - sum(process["used"] for process in last["processes"])
    assert (chat.allocated_ratio, batch.allocated_ratio, idle.allocated_ratio) == (0.25, 0.5, 0.25)
    assert chat.busy_us > batch.busy_us > idle.busy_us == 0
    assert {booking.method for booking in (chat, batch, idle)} == {"measured"}
    check_balance(snapshot)


def _energy(snapshot: Snapshot) -> int:
    return sum(card.balance.energy_mj for card in snapshot.cards if card.balance)


def _holders(snapshot: Snapshot) -> list[Holder]:
    return [process.holder for card in snapshot.cards for process in card.processes if process.holder]


def _of(booked: dict[str, Booking], name: str) -> Booking:
    (found,) = (booking for pod, booking in booked.items() if pod.startswith(name))
    return found


async def test_names_of_the_dra_cluster_and_its_static_pod(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every process of the recorded cluster gets its pod's name, the static pod's by the hash in its cgroup."""
    pids = _recorded_processes("kubernetes-1.36.4-dra", tmp_path / "proc")
    card = h200(0)
    card.processes = [FakeProcess(pid, 1 << 20) for pid in pids]
    with kubelet_root() as root:
        async with FakeKubelet(root) as kubelet:
            cluster = "kubernetes-1.36.4-dra"
            kubelet.replies = pod_resources(cluster) | pods_api(cluster)
            async with agent_over(
                library,
                tmp_path,
                FakeNode([card]),
                monkeypatch,
                kubelet=kubelet,
                pod_sources=[PodsApi(root, deadline=PATIENCE)],
            ) as agent:
                snapshot = await snapshot_when(
                    agent, "names", lambda snapshot: any(holder.container for holder in _holders(snapshot))
                )
    expected = {
        item["metadata"]["uid"]: (item["metadata"]["namespace"], item["metadata"]["name"])
        for item in listed("kubernetes-1.36.4-dra")["items"]
    }
    hashes = {
        item["metadata"]["annotations"]["kubernetes.io/config.hash"]: item["metadata"]["uid"]
        for item in listed("kubernetes-1.36.4-dra")["items"]
        if "kubernetes.io/config.hash" in item["metadata"].get("annotations", {})
    }
    assert len(_holders(snapshot)) == len(pids)
    named = [holder for holder in _holders(snapshot) if holder.container]
    assert {holder.owner.pod_uid for holder in named if holder.owner} & set(hashes), "no static pod was named"
    for holder in named:
        assert holder.owner and holder.container
        uid = hashes.get(holder.owner.pod_uid or "", holder.owner.pod_uid)
        assert (holder.container.namespace, holder.container.pod) == expected[uid or ""]
        assert holder.container.container
    check_balance(snapshot)


def _recorded_processes(cluster: str, proc: Path) -> list[int]:
    texts = (RECORDED / cluster / "proc-cgroup.txt").read_text().split("# pid ")
    found = []
    for text in texts[1:]:
        head, _, cgroup = text.partition("\n")
        pid = int(head.partition(":")[0])
        write_proc(proc, pid, cgroup)
        found.append(pid)
    return found
