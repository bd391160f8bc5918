"""Who holds a GPU and does not use it."""

import pytest
from msgspec.structs import replace

from podgpu.insight import InsightSettings, reconclude
from podgpu.insight.idle import PlaceKey, candidates, idle_pods, with_last_use
from podgpu.insight.selection import PodSelection
from podgpu.model import (
    Booking,
    Card,
    Claim,
    Cluster,
    ClusterNode,
    ContainerRef,
    Gpu,
    Instance,
    MigInstance,
    PriceChange,
    Prices,
    Snapshot,
    Tenant,
    Workload,
)

NOW = 1_800_000_000.0
HOUR = 3600.0
SETTINGS = InsightSettings(idle_after=600.0)
PRICED = InsightSettings(idle_after=600.0, prices=Prices(currency="EUR", gpu_hour={"NVIDIA H200": 4.0}))


def tenant(
    pod: str,
    *,
    gpu: str = "GPU-0",
    mig: str = "",
    share: float = 1.0,
    held: float | None = 10 * HOUR,
    used: float | None = None,
    processes: int | None = 0,
) -> Tenant:
    """`held` and `used` are how long ago that was."""
    ref = ContainerRef("ml", pod, "main", f"uid-{pod}")
    return Tenant(
        container=ref,
        mig=mig,
        workload=Workload(kind="Job", name=pod.rpartition("-")[0]),
        held_since=None if held is None else NOW - held,
        claims=(Claim(gpu=gpu, container=ref, mig=mig),),
        idle=None if processes is None else processes == 0,
        booking=Booking(
            allocated_ratio=share,
            processes=processes,
            sm_ratio=0.0 if processes is not None else None,
            last_active_at=None if used is None else NOW - used,
        ),
    )


def cluster(
    *cards: tuple[str, list[Tenant]],
    state: str = "fresh",
    model: str = "NVIDIA H200",
    settings: InsightSettings = SETTINGS,
) -> Cluster:
    made = tuple(
        Card(
            gpu=Gpu(uuid=f"GPU-{number}", index=number, model=model),
            instances=(
                Instance(mig=MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0, profile="1g.18gb")),
            ),
            tenants=tuple(tenants),
        )
        for number, (_, tenants) in enumerate(cards)
    )
    snapshot = Snapshot(node="alpha", taken_at=NOW, interval_seconds=5, version="1", cards=made)
    node = ClusterNode(name="alpha", state=state, snapshot=snapshot)
    return reconclude(Cluster(taken_at=NOW, version="1", nodes=(node,)), settings)


def test_who_never_used_it_is_idle_since_the_pod_started() -> None:
    [row] = idle_pods(cluster(("0", [tenant("train-0", share=0.5)]), settings=PRICED)).rows
    assert (row.namespace, row.pod, row.workload_kind, row.workload_name) == ("ml", "train-0", "Job", "train")
    assert (row.node, row.gpus, row.held_gpus) == ("alpha", ("0",), 0.5)
    assert (row.idle_since, row.idle_seconds, row.ever_used) == (NOW - 10 * HOUR, 10 * HOUR, False)
    assert (row.cost_per_hour, row.cost) == (2.0, 20.0)


def test_of_a_pod_that_is_older_than_the_watch_it_is_said_since_when_that_goes() -> None:
    found = cluster(("0", [tenant("old-0"), tenant("new-0", held=0.25 * HOUR)]))
    (node,) = found.nodes
    assert node.snapshot is not None
    watched = replace(node.snapshot, watched_since=NOW - 0.5 * HOUR)
    found = reconclude(replace(found, nodes=(replace(node, snapshot=watched),)), SETTINGS)
    rows = {row.pod: row for row in idle_pods(found).rows}
    assert (rows["old-0"].ever_used, rows["old-0"].watched_since) == (False, NOW - 0.5 * HOUR)
    assert (rows["new-0"].ever_used, rows["new-0"].watched_since) == (False, None)


def test_who_has_a_process_and_lets_it_rest_is_idle_since_its_last_use() -> None:
    [row] = idle_pods(cluster(("0", [tenant("train-0", used=2 * HOUR, processes=1)]))).rows
    assert (row.idle_seconds, row.ever_used, row.processes) == (2 * HOUR, True, 1)
    assert row.cost is None


@pytest.mark.parametrize("seconds", [0.0, 599.0])
def test_a_short_pause_is_nothing_to_speak_of(seconds: float) -> None:
    assert idle_pods(cluster(("0", [tenant("train-0", used=seconds, processes=1)]))).rows == ()


def test_a_pod_that_has_just_started_is_given_time() -> None:
    assert idle_pods(cluster(("0", [tenant("train-0", held=300)]))).rows == ()


def test_gpus_come_in_the_order_of_their_numbers() -> None:
    found = cluster(*((str(number), [tenant("train-0", gpu=f"GPU-{number}")]) for number in range(11)))
    [row] = idle_pods(found).rows
    assert row.gpus == tuple(map(str, range(11)))


def test_all_gpus_of_a_pod_are_one_row() -> None:
    found = cluster(
        ("0", [tenant("train-0", used=3 * HOUR)]),
        ("1", [tenant("train-0", gpu="GPU-1", mig="MIG-1", share=0.125, used=2 * HOUR)]),
        ("2", [tenant("train-0", gpu="GPU-2", used=1.0)]),
        settings=PRICED,
    )
    [row] = idle_pods(found).rows
    assert row.gpus == ("0", "1/1g.18gb")
    assert row.held_gpus == 1.125
    assert row.idle_seconds == 2 * HOUR  # for so long all of them
    assert row.cost == 3 * 4.0 + 2 * 0.5


def test_a_store_remembers_what_the_agent_forgot() -> None:
    found = cluster(("0", [tenant("train-0"), tenant("web-0")]))
    keys = {pod: PlaceKey("alpha", "GPU-0", "", "ml", pod, "main") for pod in ("train-0", "web-0")}
    assert candidates(found) == dict.fromkeys(keys.values(), NOW - 10 * HOUR)
    # One was busy a minute before the agent started anew. The other's name was used by a pod that is long gone.
    last_use = {keys["train-0"]: NOW - 60, keys["web-0"]: NOW - 20 * HOUR}
    [row] = idle_pods(with_last_use(found, last_use, SETTINGS)).rows
    assert (row.pod, row.idle_seconds, row.ever_used) == ("web-0", 10 * HOUR, False)


def test_what_nobody_knows_is_counted_and_not_accused() -> None:
    found = idle_pods(cluster(("0", [tenant("train-0", processes=None)])))
    assert (found.rows, found.unknown) == ((), 1)


def test_an_old_snapshot_says_nothing_about_now() -> None:
    found = idle_pods(cluster(("0", [tenant("train-0")]), state="stale"))
    assert (found.rows, found.unread) == ((), ("alpha",))


def test_a_model_without_a_price_is_named_and_costs_nothing_known() -> None:
    found = idle_pods(cluster(("0", [tenant("train-0")]), model="NVIDIA L4", settings=PRICED))
    assert found.unpriced == ("NVIDIA L4",)
    assert found.rows[0].cost is None


def test_what_costs_most_comes_first() -> None:
    found = cluster(
        ("0", [tenant("a-0", share=0.25), tenant("b-0", share=0.5), tenant("c-0", used=HOUR)]),
        settings=PRICED,
    )
    assert [row.pod for row in idle_pods(found).rows] == ["b-0", "a-0", "c-0"]


def test_only_the_namespace_that_is_asked_for() -> None:
    found = cluster(("0", [tenant("train-0")]))
    assert idle_pods(found, chosen=PodSelection("other")).rows == ()
    assert len(idle_pods(found, chosen=PodSelection("ml")).rows) == 1


def test_what_happened_before_the_agent_watched_is_not_known() -> None:
    found = cluster(("0", [tenant("train-0")]))
    (node,) = found.nodes
    assert node.snapshot
    just_started = replace(node.snapshot, watched_since=NOW - 60, insight=None)
    found = reconclude(replace(found, nodes=(replace(node, snapshot=just_started),)), SETTINGS)
    assert (idle_pods(found).rows, idle_pods(found).unknown) == ((), 1)
    watched = replace(node.snapshot, watched_since=NOW - 2 * HOUR, insight=None)
    [row] = idle_pods(reconclude(replace(found, nodes=(replace(node, snapshot=watched),)), SETTINGS)).rows
    assert row.idle_seconds == 2 * HOUR


@pytest.mark.parametrize(("since", "cost"), [(NOW - 1, 8.0), (NOW + 1, 4.0)])
def test_it_costs_what_it_costs_when_the_snapshot_was_taken(since: float, cost: float) -> None:
    change = PriceChange(since=since, gpu_hour={"NVIDIA H200": 8.0})
    prices = Prices(currency="EUR", gpu_hour={"NVIDIA H200": 4.0}, changes=(change,))
    settings = InsightSettings(idle_after=600.0, prices=prices)
    found = cluster(("GPU-0", [tenant("train-0")]), settings=settings)
    assert [row.cost_per_hour for row in idle_pods(found).rows] == [cost]
    assert found.insight and found.insight.prices == {"NVIDIA H200": cost}
