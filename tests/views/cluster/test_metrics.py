"""What the series of a cluster add up to, worked out by hand."""

from msgspec.structs import replace

from podgpu.model import Cluster, ClusterNode, Fault, Instance, MigInstance, PartStatus, PendingPod
from podgpu.views.cluster.metrics import of_cluster, of_node
from podgpu.views.series import Family
from tests.cluster.nodes import GIB, card, fresh, tenant
from tests.views.dialects.rig import complaints

Values = dict[str, dict[str, float]]


def values(families: list[Family]) -> Values:
    """Series by family, each by its label values without the node and the model."""
    return {
        family.name.removeprefix("podgpu_cluster_"): {
            "/".join(value for name, value in labels.pairs().items() if name not in ("node", "model")): number
            for (labels,), number in family.samples.items()
        }
        for family in families
    }


def test_shares_use_and_what_is_left_add_up_to_the_cards() -> None:
    shared = card("GPU-1", tenant("ml/a", 0.5), tenant("ml/b", 0.25, idle=True))
    found = values(of_node(fresh("n", shared, card("GPU-2"), card("GPU-3", tenant("web/c")))))
    assert found["gpus"] == {"": 3.0}
    assert found["allocated_gpus"] == {"ml/nvidia.com/gpu": 0.75, "web/nvidia.com/gpu": 1.0}
    assert found["idle_gpus"] == {"ml/nvidia.com/gpu": 0.25, "web/nvidia.com/gpu": 0.0}
    assert found["free_gpus"] == {"": 1.25}
    assert found["fragmented_gpus"] == {"": 0.25}
    assert found["busy_gpus"] == {"": 1.5}
    assert found["used_gpus"] == {"ml": 0.5, "web": 0.5}
    assert found["used_memory_bytes"] == {"ml": 39.0 * GIB, "web": 39.0 * GIB, "": 3.0 * GIB}
    assert found["memory_used_bytes"] == {"": 120.0 * GIB}


def test_shares_add_up_exactly() -> None:
    sevenths = card("GPU-1", tenant("ml/a", 0.142857), tenant("ml/b", 0.571428))
    tenths = card("GPU-2", *(tenant(f"web/{name}", 0.1) for name in "abc"))
    thirds = card("GPU-3", *(tenant(f"lab/{name}", 1 / 3) for name in "abc"))
    found = values(of_node(fresh("n", sevenths, tenths, thirds)))
    assert found["allocated_gpus"] == {
        "ml/nvidia.com/gpu": 0.714285, "web/nvidia.com/gpu": 0.3, "lab/nvidia.com/gpu": 1.0,
    }  # fmt: skip
    assert found["free_gpus"] == found["fragmented_gpus"] == {"": 0.985715}


def test_promtool_finds_nothing_to_say() -> None:
    node = fresh("n", card("GPU-1", tenant("ml/a")), allocatable={"nvidia.com/gpu": "8"})
    pending = (PendingPod(namespace="ml", name="a", asks={"nvidia.com/gpu": "2"}),)
    cluster = Cluster(taken_at=1.0, version="1", nodes=(node,), pending=pending)
    assert not complaints([*of_cluster(cluster), *of_node(node)])


def test_a_card_that_cannot_be_read_is_there_but_not_free() -> None:
    broken = card("GPU-1", fault=Fault(reason="lost"), readings=(), balance=None, rest=())
    found = values(of_node(fresh("n", broken, card("GPU-2"))))
    assert (found["gpus"], found["faulty_gpus"], found["free_gpus"]) == ({"": 2.0}, {"": 1.0}, {"": 1.0})
    assert found["busy_gpus"] == {"": 0.5}


def test_a_share_of_unknown_size_makes_what_is_left_unknown() -> None:
    instance = Instance(mig=MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0))
    unknown = tenant("ml/a", None, mig="MIG-1")
    found = values(of_node(fresh("n", card("GPU-1", unknown, instances=(instance,)))))
    assert "allocated_gpus" not in found and "free_gpus" not in found and "fragmented_gpus" not in found


def test_without_books_a_share_is_that_of_the_claim_or_of_the_instance() -> None:
    mig = MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0, multiprocessors=33)
    on_instance = tenant("ml/a", None, mig="MIG-1", idle=None)
    whole = tenant("ml/b", None, idle=None)
    cards = (card("GPU-1", on_instance, instances=(Instance(mig=mig),)), card("GPU-2", whole))
    found = values(of_node(fresh("n", *cards, state="allocation")))
    assert found["allocated_gpus"] == {"ml/nvidia.com/gpu": 1.25}
    assert "idle_gpus" not in found


def test_use_that_is_not_known_is_absent() -> None:
    blind = tenant("ml/a", idle=None)
    blind = replace(blind, booking=replace(blind.booking, sm_ratio=None, memory_bytes=None))
    found = values(of_node(fresh("n", card("GPU-1", blind, tenant("web/b")))))
    assert found["used_gpus"] == {"web": 0.5}


def test_a_node_that_failed_has_its_reason_and_what_it_offers() -> None:
    node = ClusterNode(name="n", state="failed", reason="timeout", allocatable={"nvidia.com/gpu": "8"})
    assert values(of_node(node)) == {
        "node_info": {"failed//timeout": 1.0},
        "allocatable": {"nvidia.com/gpu": 8.0},
    }


def test_the_cluster_counts_its_nodes_and_who_waits() -> None:
    waiting = (
        PendingPod(namespace="ml", name="a", asks={"nvidia.com/gpu": "2"}),
        PendingPod(namespace="ml", name="b", asks={"nvidia.com/gpu": "1", "aliyun.com/gpu-mem": "?"}),
    )
    parts = (PartStatus(name="agents", up=True), PartStatus(name="nodes", up=False))
    cluster = Cluster(taken_at=1.0, version="1", nodes=(fresh("a"), fresh("b")), pending=waiting, parts=parts)
    found = values(of_cluster(cluster))
    assert found["nodes"] == {"fresh": 2.0, "stale": 0.0, "allocation": 0.0, "failed": 0.0}
    assert found["pending_pods"] == {"ml/nvidia.com/gpu": 2.0, "ml/aliyun.com/gpu-mem": 1.0}
    assert found["pending_requests"] == {"ml/nvidia.com/gpu": 3.0}
    assert found["source_up"] == {"agents": 1.0, "nodes": 0.0}
