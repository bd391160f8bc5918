"""A process gets a name only where the pod's own words bear it out."""

from msgspec.structs import replace

from podgpu.agent.owners import ContainerNames
from podgpu.model import ContainerRef, Holder, Owner, Pod, PodContainer

UID = "11111111-2222-3333-4444-555555555555"
HASH = "0123456789abcdef0123456789abcdef"
ID, OTHER = "a" * 64, "b" * 64


def pod(*containers: PodContainer, name: str = "chat", uid: str = UID, static_hash: str = "") -> Pod:
    return Pod(namespace="ns", name=name, uid=uid, static_hash=static_hash, containers=containers)


def holder(uid: str | None = UID, container_id: str | None = ID, kind: str = "pod") -> Holder:
    return Holder(pid=7, kind=kind, owner=Owner(pod_uid=uid, container_id=container_id))


def named(pods: list[Pod], whose: Holder) -> ContainerRef | None:
    return ContainerNames(pods).named(whose).container


MAIN, SIDE = PodContainer(name="main", container_id=ID), PodContainer(name="side", container_id=OTHER)


def test_a_container_is_found_by_its_id() -> None:
    assert named([pod(SIDE, MAIN)], holder()) == ContainerRef("ns", "chat", "main", UID)


def test_an_id_that_a_pod_which_has_ended_does_not_know_names_nobody() -> None:
    found = ContainerNames([replace(pod(SIDE), phase="Failed")]).named(holder())
    assert (found.container, found.reason) == (None, "not_in_pod")


def test_a_process_of_the_pod_alone_names_no_container_that_has_an_id() -> None:
    assert named([pod(MAIN)], holder(container_id=None)) == ContainerRef("ns", "chat", "", UID)


def test_without_ids_the_only_container_is_meant_and_of_two_neither() -> None:
    main, side = PodContainer(name="main"), PodContainer(name="side")
    assert named([pod(main)], holder()) == ContainerRef("ns", "chat", "main", UID)
    assert named([pod(main, side)], holder()) == ContainerRef("ns", "chat", "", UID)


def test_two_pods_of_one_name_are_told_apart_by_uid() -> None:
    again = "99999999-2222-3333-4444-555555555555"
    pods = [pod(MAIN), pod(PodContainer(name="main", container_id=OTHER), uid=again)]
    assert named(pods, holder()) == ContainerRef("ns", "chat", "main", UID)
    assert named(pods, holder(again, OTHER)) == ContainerRef("ns", "chat", "main", again)


def test_a_pod_nobody_listed_and_a_host_process_stay_as_they_are() -> None:
    for whose in (holder("22222222-2222-3333-4444-555555555555"), holder(None, kind="host")):
        assert ContainerNames([pod(MAIN)]).named(whose) == whose


def test_a_static_pod_is_found_by_its_hash() -> None:
    static = pod(MAIN, name="etcd-node", static_hash=HASH)
    assert named([static], holder(HASH)) == ContainerRef("ns", "etcd-node", "main", UID)


def test_a_hash_that_two_pods_claim_names_neither() -> None:
    """Anybody who may make pods may write a static pod's hash on one."""
    static = pod(MAIN, name="etcd-node", static_hash=HASH)
    thief = pod(PodContainer(name="main"), name="aaa", uid="thief", static_hash=HASH)
    assert named([thief, static], holder(HASH)) is None
    assert named([static, thief], holder(HASH)) is None


def test_a_hash_never_takes_another_pods_uid() -> None:
    thief = pod(PodContainer(name="main"), name="aaa", uid="thief", static_hash=UID)
    for pods in ([thief, pod(MAIN)], [pod(MAIN), thief]):
        assert named(pods, holder()) == ContainerRef("ns", "chat", "main", UID)


def test_an_id_that_the_pod_does_not_know_yet_is_its_only_containers() -> None:
    """It has started again, and the API server is away or behind."""
    init = PodContainer(name="fetch", container_id="c" * 64, is_init=True)
    assert named([pod(init, SIDE)], holder()) == ContainerRef("ns", "chat", "side", UID)


def test_of_several_containers_only_a_list_tells_which_has_started_again() -> None:
    other = PodContainer(name="main", container_id="d" * 64)
    behind = pod(SIDE, other)
    found = ContainerNames([behind]).named(holder())
    assert (found.container, found.reason) == (ContainerRef("ns", "chat", "", UID), "not_in_pod")
    ahead = [pod(MAIN)]
    assert ContainerNames([behind], [ahead]).named(holder()).container == ContainerRef("ns", "chat", "main", UID)


def test_a_sidecar_that_runs_may_have_started_again_too() -> None:
    sidecar = PodContainer(name="proxy", container_id="c" * 64, is_init=True, running=True)
    assert named([pod(sidecar, SIDE)], holder()) == ContainerRef("ns", "chat", "", UID)


def test_a_pod_that_only_a_worse_list_has_is_named_by_it() -> None:
    assert ContainerNames([], [[pod(MAIN)]]).named(holder()).container == ContainerRef("ns", "chat", "main", UID)
