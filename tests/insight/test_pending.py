"""What pods wait for, and what is free beside it."""

from msgspec.structs import replace

from podgpu.insight import reconclude
from podgpu.insight.pending import NOT_READ, NOT_SAID, pending_pods
from podgpu.model import Cluster, ClusterNode, Instance, MigInstance, PendingPod, Workload
from tests.cluster.nodes import card, fresh, tenant
from tests.tree import SETTINGS

NOW = 1_700_000_000.0
SAID = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
WAITS = PendingPod(
    namespace="ml",
    name="next-0",
    since=NOW - 5400,
    asks={"nvidia.com/gpu": "2"},
    reason=SAID,
    workload=Workload(kind="Job", name="next"),
)
TAKEN = fresh("gpu-a", card("GPU-a", tenant("ml/train")), card("GPU-b"))
FREE = fresh("gpu-b", card("GPU-c"), card("GPU-d"))


def cluster(*nodes: ClusterNode, pending: tuple[PendingPod, ...] = (WAITS,)) -> Cluster:
    return reconclude(Cluster(taken_at=NOW, version="1.0", nodes=nodes, pending=pending), SETTINGS)


def test_a_pod_says_what_it_asks_for_since_when_and_what_the_scheduler_says() -> None:
    (row,) = pending_pods(cluster(TAKEN)).rows
    assert (row.namespace, row.name, row.workload_kind, row.workload_name) == ("ml", "next-0", "Job", "next")
    assert (row.asks, row.waiting_seconds, row.reason) == ("2 nvidia.com/gpu", 5400.0, SAID)


def test_free_gpus_are_told_of_one_node_too_since_a_pod_is_on_one() -> None:
    (row,) = pending_pods(cluster(TAKEN, FREE)).rows
    assert row.free == "3 whole GPUs are free, at most 2 on one node."
    (row,) = pending_pods(cluster(fresh("gpu-a", card("GPU-a", tenant("ml/train"))))).rows
    assert row.free == "No whole GPU is free."


def test_slices_are_counted_by_their_profile() -> None:
    mig = MigInstance(uuid="MIG-1", profile="1g.18gb", gpu_instance_id=1, compute_instance_id=0, multiprocessors=16)
    sliced = card("GPU-a", instances=(Instance(mig=mig),))
    asks = tuple(replace(WAITS, asks={f"nvidia.com/mig-{profile}": "1"}) for profile in ("1g.18gb", "3g.71gb"))
    first, second = pending_pods(cluster(fresh("gpu-a", sliced), pending=asks)).rows
    assert first.free == "1 slice of 1g.18gb is free, at most 1 on one node."
    assert second.free == "No slice of 3g.71gb is free."


def test_what_cannot_be_had_or_is_not_known_is_not_called_free() -> None:
    cordoned, dark = replace(FREE, cordoned=True), replace(TAKEN, state="stale", reason="timeout", dark=True)
    (row,) = pending_pods(cluster(cordoned, dark)).rows
    wanted = "No whole GPU is free. 2 GPUs more on cordoned nodes. Of 2 GPUs on dark nodes it is not known."
    assert row.free == wanted
    sliced = replace(WAITS, asks={"nvidia.com/mig-1g.18gb": "1"})
    (row,) = pending_pods(cluster(cordoned, dark, pending=(sliced,))).rows
    assert row.free == wanted.replace("whole GPU", "slice of 1g.18gb")


def test_what_nobody_said_is_said_so() -> None:
    silent = PendingPod(namespace="ml", name="next-1", claims=("gpu-claim",))
    lost = ClusterNode(name="gpu-a", state="failed", reason="timeout", dark=True)
    found = pending_pods(cluster(lost, pending=(silent,)))
    (row,) = found.rows
    assert (row.asks, row.reason, row.since, row.waiting_seconds) == ("claim gpu-claim", NOT_SAID, None, None)
    assert row.free == found.free == NOT_READ


def test_of_another_resource_only_all_that_is_free_can_be_told() -> None:
    (row,) = pending_pods(cluster(FREE, pending=(replace(WAITS, asks={"nvidia.com/gpumem": "4000"}),))).rows
    assert row.free == "Free: 2 GPUs in all, 2 whole."


def test_nobody_waits() -> None:
    assert pending_pods(cluster(FREE, pending=())).rows == ()
