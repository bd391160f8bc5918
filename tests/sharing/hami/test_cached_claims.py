"""A container's own file claims its cards where no note is seen, and never at the expense of another."""

from collections.abc import Sequence

import pytest
from hypothesis import given as chosen
from hypothesis import strategies as st

from podgpu.model import (
    Allocation,
    Claim,
    Device,
    Gpu,
    Instance,
    MigInstance,
    Pod,
    PodContainer,
    Reading,
    VirtualGpu,
)
from podgpu.sharing import hami
from podgpu.sharing.hami.annotation import DEVICES_ALLOCATED
from podgpu.sharing.inventory import Inventory

ONE, TWO, CUT = (f"GPU-00000000-0000-4000-8000-00000000000{n}" for n in range(3))
FOREIGN = "GPU-ffffffff-0000-4000-8000-00000000000f"
GIB = 1 << 30
DEVICES = (
    Device(gpu=Gpu(uuid=ONE, index=0), readings=(Reading("memory_total_bytes", 80.0 * GIB),)),
    Device(gpu=Gpu(uuid=TWO, index=1)),
    Device(
        gpu=Gpu(uuid=CUT, index=2),
        instances=(Instance(mig=MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0)),),
    ),
)


def pod(name: str, note: str | None = None, phase: str = "") -> Pod:
    """Without a phase it is known from the kubelet's log folders: a name and a UID."""
    annotations = {} if note is None else {DEVICES_ALLOCATED: note}
    containers = (PodContainer(name="c"),)
    return Pod(
        namespace="ns",
        name=name,
        uid=f"uid-{name}",
        phase=phase,
        annotations=annotations,
        containers=containers,
    )


def held(name: str, count: int = 1, container: str = "c") -> list[Allocation]:
    return [
        Allocation(namespace="ns", pod=name, container=container, resource="nvidia.com/gpu", device_id=f"{TWO}-{n}")
        for n in range(count)
    ]


def vgpu(
    name: str, gpu: str = ONE, memory: int | None = 20 * GIB, cores: float | None = None, container: str = "c"
) -> VirtualGpu:
    return VirtualGpu(
        pod_uid=f"uid-{name}",
        container=container,
        gpu=gpu,
        memory_limit_bytes=memory,
        core_limit_ratio=cores,
    )


def seen(
    vgpus: Sequence[VirtualGpu],
    allocations: Sequence[Allocation] | None = None,
    pods: Sequence[Pod] | None = None,
) -> Inventory:
    given = held("p") if allocations is None else allocations
    return Inventory(DEVICES, given, (), [pod("p")] if pods is None else pods, vgpus=vgpus)


def found(
    vgpus: Sequence[VirtualGpu],
    allocations: Sequence[Allocation] | None = None,
    pods: Sequence[Pod] | None = None,
) -> list[Claim]:
    return list(hami.claims(seen(vgpus, allocations, pods)))


def shares(claims: Sequence[Claim]) -> dict[str, float]:
    return {claim.container.pod: claim.share for claim in claims}


def test_a_file_gives_card_share_and_limits() -> None:
    node = seen([vgpu("p", cores=0.3)])
    (claim,) = hami.claims(node)
    assert (claim.gpu, claim.share, claim.memory_limit_bytes, claim.core_limit_ratio) == (
        ONE,
        0.3,
        20 * GIB,
        0.3,
    )
    assert (claim.container.pod, claim.container.container, claim.container.pod_uid) == ("p", "c", "uid-p")
    assert (claim.system, claim.source, claim.device_id) == ("hami", "cache", "uid-p_c/0")
    assert all(hami.explains(each, node) for each in node.allocations)
    assert claim.index == 0


@pytest.mark.parametrize("cores", [None, 1.0])
def test_without_a_limit_of_the_cores_the_share_is_that_of_the_memory(cores: float | None) -> None:
    """The library writes all of them where none was set."""
    (claim,) = found([vgpu("p", cores=cores)])
    assert (claim.share, claim.core_limit_ratio) == (0.25, None)


def test_more_memory_than_there_is_is_the_whole_card() -> None:
    assert shares(found([vgpu("p", memory=1 << 44)])) == {"p": 1.0}


def test_a_file_without_limits_has_no_share() -> None:
    (claim,) = found([vgpu("p", memory=None)])
    assert (claim.share, claim.memory_limit_bytes) == (0.0, None)


def test_where_there_is_a_note_it_wins() -> None:
    noted = pod("p", f"{TWO},NVIDIA,1024,40:;", "Running")
    (claim,) = found([vgpu("p", cores=0.9)], pods=[noted])
    assert (claim.gpu, claim.share, claim.source) == (TWO, 0.4, "annotation")


@pytest.mark.parametrize("note", ["nonsense", None])
def test_a_note_that_is_not_borne_out_or_was_removed_is_not_replaced_by_a_file(note: str | None) -> None:
    assert found([vgpu("p")], pods=[pod("p", note, "Running")]) == []


@pytest.mark.parametrize(
    ("allocations", "pods"),
    [
        ([], [pod("p")]),
        (held("p", container="other") + held("p", container="third"), [pod("p")]),
        (held("q"), [pod("p"), pod("q")]),
        (held("p"), []),
        (held("p"), [pod("p", phase="Failed")]),
    ],
)
def test_a_file_counts_only_for_a_container_with_an_id_of_a_known_pod(
    allocations: list[Allocation], pods: list[Pod]
) -> None:
    assert found([vgpu("p")], allocations, pods) == []


def test_a_file_in_a_folder_of_another_name_is_of_the_only_container_with_ids() -> None:
    """HAMi 2.10 names it after a container that comes before, if that one has no GPU."""
    (claim,) = found([vgpu("p", container="sidecar")], held("p", container="main"))
    assert (claim.container.container, claim.gpu) == ("main", ONE)


def test_files_of_several_containers_count_if_each_of_them_has_one() -> None:
    given = held("p", container="a") + held("p", container="b")
    files = [vgpu("p", memory=10 * GIB, container="a"), vgpu("p", memory=20 * GIB, container="b")]
    assert {claim.container.container for claim in found(files, given)} == {"a", "b"}
    assert found(files[:1], given) == []
    assert found([files[0], vgpu("p", container="sidecar")], given) == []


def test_a_whole_card_bears_out_nothing() -> None:
    whole = Allocation(namespace="ns", pod="p", container="c", resource="nvidia.com/gpu", device_id=TWO)
    assert found([vgpu("p")], [whole]) == []


def test_a_file_of_more_cards_than_ids_is_not_believed() -> None:
    assert found([vgpu("p", ONE), vgpu("p", TWO)], held("p", 1)) == []
    assert [claim.gpu for claim in found([vgpu("p", ONE), vgpu("p", TWO)], held("p", 2))] == [ONE, TWO]


@pytest.mark.parametrize("gpu", [FOREIGN, CUT])
def test_a_card_that_is_not_here_or_cut_into_instances_is_not_claimed(gpu: str) -> None:
    assert found([vgpu("p", gpu)]) == []


@pytest.mark.parametrize("device_id", [ONE, f"{ONE}::0"])
def test_a_card_that_another_system_gave_out_is_not_claimed(device_id: str) -> None:
    other = Allocation(namespace="ns", pod="q", container="c", resource="nvidia.com/gpu", device_id=device_id)
    assert found([vgpu("p")], [*held("p"), other], [pod("p"), pod("q")]) == []


def test_a_file_takes_only_what_notes_leave() -> None:
    noted = pod("noted", f"{ONE},NVIDIA,1024,70:;", "Running")
    claims = found([vgpu("greedy", cores=0.99)], [*held("noted"), *held("greedy")], [noted, pod("greedy")])
    assert shares(claims) == pytest.approx({"noted": 0.7, "greedy": 0.3})


def test_files_that_fit_have_what_they_say() -> None:
    files = [vgpu("a", cores=0.7), vgpu("b", cores=0.2), vgpu("c", cores=0.1)]
    given = [allocation for name in "abc" for allocation in held(name)]
    assert shares(found(files, given, [pod(name) for name in "abc"])) == {"a": 0.7, "b": 0.2, "c": 0.1}


def test_a_greedy_file_leaves_others_what_they_have_up_to_an_equal_part() -> None:
    files = [vgpu("greedy", cores=0.99), vgpu("small", cores=0.2)]
    given = [*held("greedy"), *held("small")]
    assert shares(found(files, given, [pod("greedy"), pod("small")])) == {"greedy": 0.5, "small": 0.2}


@chosen(
    st.lists(
        st.builds(
            vgpu,
            name=st.sampled_from("abc"),
            gpu=st.sampled_from([ONE, TWO, CUT, FOREIGN]),
            memory=st.none() | st.integers(1, 1 << 44),
            cores=st.none() | st.integers(1, 100).map(lambda percent: percent / 100),
            container=st.sampled_from(["c", "d"]),
        ),
        max_size=6,
    ),
    st.integers(0, 100),
)
def test_no_file_changes_what_a_note_says(files: list[VirtualGpu], percent: int) -> None:
    noted = pod("noted", f"{ONE},NVIDIA,1024,{percent}:;", "Running")
    given = [allocation for name in ("noted", *"abc") for allocation in held(name, 2 if name == "a" else 1)]
    pods = [noted, *map(pod, "abc")]
    alone = list(hami.claims(seen([], given, pods)))
    claims = list(hami.claims(seen(files, given, pods)))
    assert claims[: len(alone)] == alone
    for card in (ONE, TWO):
        assert sum(claim.share for claim in claims if claim.gpu == card) <= 1.0 + 1e-5
    ids = {name: 2 if name == "a" else 1 for name in "abc"}
    assert all(sum(claim.container.pod == name for claim in claims) <= count for name, count in ids.items())
