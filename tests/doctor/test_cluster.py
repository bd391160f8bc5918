"""The checks of a whole cluster tell its problems, those of all its nodes included."""

from msgspec.structs import replace

from podgpu.doctor import Status, examine_cluster
from podgpu.insight import reconclude
from podgpu.model import Cluster, ClusterNode, Fault, PartStatus
from tests.doctor.sound_node import NOW, SETTINGS, SOUND, WHOLE, with_down, with_readings

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
    assert (status, words) == (Status.FAIL, "gpu-node-2 gives no numbers: unreachable.")


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
