"""Files of a library are shown under the container that they are of, whatever their folder is called."""

import pytest

from podgpu.model import Allocation, Device, Gpu, Pod, PodContainer, VirtualGpu
from podgpu.sharing.inventory import Inventory

CARD = "GPU-00000000-0000-4000-8000-000000000000"


def files(spec: str, holders: str, folders: str, phase: str = "Running") -> dict[str, str]:
    """Folder -> container, each a letter. Those in `holders` have an id of the card. I and J are init containers, of
    which J asks for a card too, and e is ephemeral.
    """
    pod = Pod(
        namespace="ns",
        name="p",
        uid="uid",
        phase=phase,
        containers=tuple(
            PodContainer(
                name=name,
                is_init=name in "IJ",
                is_ephemeral=name == "e",
                limits={"nvidia.com/gpu": "1"} if name == "J" else {},
            )
            for name in spec
        ),
    )
    given = [
        Allocation(namespace="ns", pod="p", container=name, resource="nvidia.com/gpu", device_id=f"{CARD}-{number}")
        for number, name in enumerate(holders)
    ]
    network = Allocation(namespace="ns", pod="p", container="n", resource="x.com/nic", device_id="nic-0")
    written = [VirtualGpu(pod_uid="uid", container=name, gpu=CARD, index=number) for number, name in enumerate(folders)]
    node = Inventory([Device(gpu=Gpu(uuid=CARD, index=0))], [*given, network], (), [pod], vgpus=written)
    return {folders[vgpu.index]: vgpu.container for vgpu in node.vgpus}


@pytest.mark.parametrize(
    ("spec", "holders", "folders", "named"),
    [
        ("a", "a", "a", {"a": "a"}),
        ("ab", "ab", "ab", {"a": "a", "b": "b"}),
        ("ab", "ab", "b", {"b": "b"}),  # nobody without a GPU comes first: names are right
        ("xa", "a", "x", {"x": "a"}),  # the first of those with a GPU, so the first of the spec
        ("xa", "a", "a", {"a": "a"}),
        ("xab", "ab", "xa", {"x": "a", "a": "b"}),
        ("xab", "ab", "ab", {"a": "a", "b": "b"}),
        ("xab", "ab", "x", {"x": "a"}),
        ("xab", "ab", "b", {"b": "b"}),
        ("xab", "ab", "a", {}),  # its own, or that of the second
        ("xnab", "ab", "ab", {"a": "a", "b": "b"}),  # a network card is no GPU
        ("Iab", "ab", "Ia", {"I": "a", "a": "b"}),  # init containers come first
        ("Jab", "ab", "Ja", {}),  # its own and that of the first, or those of both
        ("Jab", "ab", "Jab", {"J": "J", "a": "a", "b": "b"}),
        ("xabe", "ab", "xa", {"x": "a", "a": "b"}),
        ("abc", "ab", "ac", {}),  # fits no version
    ],
)
def test_a_folder_may_have_the_name_of_another_container(
    spec: str, holders: str, folders: str, named: dict[str, str]
) -> None:
    assert files(spec, holders, folders) == named


@pytest.mark.parametrize(
    ("holders", "folders", "named"),
    [("a", "x", {"x": "a"}), ("ab", "ab", {"a": "a", "b": "b"}), ("ab", "xa", {}), ("ab", "a", {})],
)
def test_without_the_order_names_must_be_those_of_all_containers_with_a_gpu(
    holders: str, folders: str, named: dict[str, str]
) -> None:
    assert files("abx", holders, folders, phase="") == named


def test_where_nobody_was_given_a_card_the_name_is_believed() -> None:
    """Some systems hold the card in another pod's name."""
    assert files("ab", "", "b") == {"b": "b"}
