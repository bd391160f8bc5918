"""A pod needs what the scheduler reserves for it."""

from hypothesis import given
from hypothesis import strategies as st

from podgpu.cluster import demand
from podgpu.model import PodContainer

GPU = "nvidia.com/gpu"
KINDS = st.sampled_from(["init", "sidecar"])
INIT = st.lists(st.tuples(KINDS, st.integers(0, 4)), max_size=5)
MAIN = st.lists(st.integers(0, 4), min_size=1, max_size=4)


def container(name: str, gpus: int, kind: str = "") -> PodContainer:
    limits = {GPU: str(gpus)} if gpus else {}
    return PodContainer(name=name, is_init=bool(kind), is_sidecar=kind == "sidecar" or None, limits=limits)


def most_at_once(init: list[tuple[str, int]], main: list[int]) -> int:
    """Play the life of the pod: what runs at each moment."""
    moments, sidecars = [], 0
    for kind, gpus in init:
        moments.append(sidecars + gpus)
        sidecars += gpus if kind == "sidecar" else 0
    return max([*moments, sidecars + sum(main)])


@given(INIT, MAIN)
def test_a_pod_needs_the_most_that_its_containers_have_at_the_same_time(
    init: list[tuple[str, int]], main: list[int]
) -> None:
    containers = [container(f"i{place}", gpus, kind) for place, (kind, gpus) in enumerate(init)]
    containers += [container(f"m{place}", gpus) for place, gpus in enumerate(main)]
    assert demand.of_pod(containers, GPU) == most_at_once(init, main)
    more = demand.beyond(containers, GPU)
    assert more is None or (demand.passes(more[0]) and more[1] > 0)
