"""Who is said to use what it was not given."""

from msgspec.structs import replace

from podgpu.insight import InsightSettings, conclude
from podgpu.insight.problems import folded
from podgpu.model import (
    Card,
    ContainerRef,
    Gpu,
    Holder,
    PartStatus,
    Pod,
    PodContainer,
    Problem,
    Process,
    Snapshot,
    Tenant,
)

REF = ContainerRef("ml", "sly-0", "main", "uid-1")
KUBELET = PartStatus(name="podresources", up=True)


def kinds(tenant: Tenant, *, kubelet: PartStatus = KUBELET, pods: tuple[Pod, ...] = ()) -> list[str]:
    card = Card(gpu=Gpu(uuid="GPU-0", index=0), tenants=(tenant,))
    snapshot = Snapshot(
        node="n",
        taken_at=1000.0,
        interval_seconds=5.0,
        version="1",
        cards=(card,),
        parts=(kubelet,),
        pods=pods,
    )
    found = conclude(snapshot, InsightSettings(idle_after=600.0)).insight
    assert found is not None
    return [problem.kind for problem in found.problems if problem.kind == "not_given"]


def user(holder: Holder | None = None) -> Tenant:
    return Tenant(container=REF, processes=(Process(pid=1, kinds=("compute",), holder=holder),))


def test_who_has_a_process_and_no_claim_was_not_given_the_card() -> None:
    assert kinds(user()) == ["not_given"]


def test_without_the_kubelets_list_nobody_is_blamed() -> None:
    assert kinds(user(), kubelet=replace(KUBELET, up=False)) == []


def test_whose_processes_have_ended_uses_nothing() -> None:
    assert kinds(Tenant(container=REF, processes=(Process(pid=1),))) == []


def test_an_mps_server_works_for_others() -> None:
    assert kinds(user(Holder(pid=1, kind="pod", serves=True))) == []


def test_the_kubelet_does_not_list_what_an_init_container_is_given() -> None:
    pod = Pod(namespace="ml", name="sly-0", uid="uid-1", containers=(PodContainer(name="main", is_init=True),))
    assert kinds(user(), pods=(pod,)) == []


def test_kinds_that_a_newer_agent_has_are_not_taken_for_one() -> None:
    newer = [Problem(kind=kind, severity="warning", title="New", text=f"{kind}.") for kind in ("a", "b", "b", "b")]
    assert [(problem.kind, problem.more) for problem in folded(newer)] == [("a", 0), ("b", 2)]
