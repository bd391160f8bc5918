"""The checks of a whole cluster tell its problems, those of all its nodes included."""

import pytest
from msgspec.structs import replace

from podgpu.doctor import Status, examine_cluster
from podgpu.insight import reconclude
from podgpu.model import Cluster, ClusterNode, Fault, PartStatus
from tests.doctor.sound_node import NOW, SETTINGS, SOUND, TENANT, WHOLE, with_down, with_readings

FRESH = ClusterNode(name="gpu-node-1", state="fresh", origin="agent", snapshot=SOUND)


def judged(*nodes: ClusterNode, parts: tuple[PartStatus, ...] = ()) -> dict[str, tuple[Status, str]]:
    cluster = reconclude(Cluster(taken_at=NOW, version="1", nodes=nodes, parts=parts), SETTINGS)
    return {finding.id: (finding.status, finding.detail) for finding in examine_cluster(cluster)}


def test_a_sound_cluster_passes() -> None:
    assert {status for status, _ in judged(FRESH).values()} == {Status.PASS}


def test_a_check_of_the_cluster_that_breaks_fails_by_itself_and_the_others_go_on() -> None:
    nothing_concluded = Cluster(taken_at=NOW, version="1", nodes=(FRESH,))
    found = {finding.id: (finding.status, finding.detail) for finding in examine_cluster(nothing_concluded)}
    assert found["cluster.gpus"][0] is Status.FAIL
    assert found["cluster.gpus"][1].startswith("this check broke, which is a bug in podgpu: ValueError")
    assert found["cluster.agents"] == (Status.PASS, "every node's GPUs are read")


def test_a_node_that_gives_no_numbers_fails() -> None:
    silent = ClusterNode(name="gpu-node-2", state="failed", reason="unreachable", detail="Check it.")
    status, words = judged(FRESH, silent)["cluster.nodes"]
    assert (status, words) == (Status.FAIL, "gpu-node-2 is dark: unreachable. It has never given numbers.")


SILENT = ClusterNode(name="gpu-node-2", state="failed", reason="unreachable", detail="Check it.")
ALLOCATED = ClusterNode(name="gpu-node-3", state="allocation", origin="api", snapshot=replace(SOUND, cards=()))
OLD = replace(FRESH, state="stale", reason="stale", detail="Check it.")


@pytest.mark.parametrize("nodes", [(), (SILENT,), (ALLOCATED,), (OLD,), (SILENT, ALLOCATED, OLD)])
def test_nothing_passes_where_nothing_was_seen(nodes: tuple[ClusterNode, ...]) -> None:
    found = judged(*nodes)
    # An old snapshot still tells the version of its agent, and that the parts worked which it used.
    told_by_old = {"cluster.versions", "cluster.parts"} if OLD in nodes else set()
    assert {name for name, (status, _) in found.items() if status is Status.PASS} <= told_by_old


def test_who_holds_what_is_not_known_where_no_agent_answers() -> None:
    assert judged(SILENT)["cluster.holders"] == (Status.SKIP, "not known: no node's GPUs were read")


def test_a_node_that_was_not_read_is_named_by_each_check_that_needs_it() -> None:
    found = judged(FRESH, SILENT)
    for name in ("cluster.agents", "cluster.gpus", "cluster.holders", "cluster.demo"):
        assert found[name] == (Status.WARN, "not known of 1 node: gpu-node-2"), name


def test_a_pod_whose_use_is_not_known_is_not_said_to_use_what_it_holds() -> None:
    unknown = replace(TENANT, idle=None, booking=replace(TENANT.booking, sm_ratio=None))
    snapshot = replace(SOUND, cards=(replace(WHOLE, tenants=(unknown,)),))
    found = judged(replace(FRESH, snapshot=snapshot))
    assert found["cluster.holders"] == (Status.SKIP, "the GPU use of 1 pod is not known")


def test_parts_of_the_reader_and_of_agents_are_told() -> None:
    store = PartStatus(name="store", up=False, fault=Fault(reason="store_late", detail="no answer in 30 s"))
    sick = replace(FRESH, snapshot=with_down("podresources", "no_socket"))
    status, words = judged(sick, parts=(store,))["cluster.parts"]
    assert status is Status.FAIL
    assert words == "store: store_late: no answer in 30 s. gpu-node-1: podresources: no_socket."


def test_of_many_cards_alike_one_is_named_and_the_others_are_counted() -> None:
    cards = tuple(
        replace(
            with_readings(WHOLE, xid_last_code=79.0),
            gpu=replace(WHOLE.gpu, index=number, uuid=f"GPU-{number}"),
        )
        for number in range(4)
    )
    status, words = judged(replace(FRESH, snapshot=replace(SOUND, cards=cards)))["cluster.gpus"]
    assert status is Status.WARN
    assert words == "gpu-node-1: GPU 0 raised XID 79 (GPU has fallen off the bus). And 3 more like it."


def test_a_node_is_named_although_its_name_is_part_of_the_text() -> None:
    sick = replace(SOUND, node="bus", cards=(with_readings(WHOLE, xid_last_code=79.0),))
    _, words = judged(replace(FRESH, name="bus", snapshot=sick))["cluster.gpus"]
    assert words == "bus: GPU 0 raised XID 79 (GPU has fallen off the bus)."


def test_who_holds_a_card_and_does_not_use_it_is_a_warning() -> None:
    idle = replace(WHOLE.tenants[0], idle=True, processes=(), held_since=NOW - 7200)
    idle = replace(idle, booking=replace(idle.booking, sm_ratio=None, processes=0))
    status, words = judged(replace(FRESH, snapshot=replace(SOUND, cards=(replace(WHOLE, tenants=(idle,)),))))[
        "cluster.holders"
    ]
    assert status is Status.WARN
    assert words.startswith("gpu-node-1: ml/llama-0 holds 1 GPU on GPU 0 and has not used it for 2 h")
