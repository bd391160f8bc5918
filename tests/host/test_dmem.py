"""The kernel's books of GPU memory, read from made-up trees of cgroups."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.host import cgroup
from podgpu.host.dmem import Dmem, vidmem

GIB = 1 << 30
FIRST, SECOND = "00000000:3B:00.0", "00000000:86:00.0"
POD_UID, CONTAINER_ID = "11111111-aaaa-4000-8000-000000000001", "c" * 64
SLICE = "kubepods.slice/kubepods-pod11111111_aaaa_4000_8000_000000000001.slice"
CONTAINER = f"{SLICE}/cri-containerd-{CONTAINER_ID}.scope"
DOCKER = f"system.slice/docker-{'d' * 64}.scope"


def region(number: int, card: str = "00000000:3b:00.0") -> str:
    return f"nvidia/{card}/vidmem {number}\n"


def charge(root: Path, cgroup: str, text: str) -> None:
    """Give a cgroup its file, and those above it a file that counts something too, as the kernel's does."""
    folder = root / cgroup
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dmem.current").write_text(text)
    for above in list(folder.parents)[: len(Path(cgroup).parts) - 1]:
        if not (above / "dmem.current").exists():
            (above / "dmem.current").write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "dmem.capacity").write_text(region(80 * GIB) + "drm/0000:03:00.0/vram0 8514437120\n")
    (tmp_path / "dmem.current").write_text(region(30 * GIB))
    return tmp_path


@pytest.mark.parametrize("name", ["00000000:3b:00.0", "0000:3B:00.0", "0000:3b:00"])
def test_a_region_is_known_by_its_pci_address_however_it_is_written(name: str) -> None:
    assert vidmem(region(5, name)) == {FIRST: 5}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "drm/0000:3b:00.0/vram0 5\n",
        "nvidia/00000000:3b:00.0/gpu0 5\n",
        "nvidia/00000000:3b:00.0/vidmem max\n",
        "nvidia/00000000:3b:00.0/vidmem -5\n",
        "nvidia/00000000:3b:00.0/vidmem 5 6\n",
        "nvidia/00000000:3b:00.0/vidmem \N{ARABIC-INDIC DIGIT FIVE}\n",
        f"nvidia/00000000:3b:00.0/vidmem {10**18 * 9}\n",
        "nvidia/3b:00.0/vidmem 5\n",
    ],
)
def test_any_other_line_is_no_figure(text: str) -> None:
    assert vidmem(text) == {}


def test_two_figures_for_one_card_are_none() -> None:
    assert vidmem(region(5) + region(7, "0000:3b:00.0") + region(3, "0000:86:00.0")) == {SECOND: 3}


@given(st.text(st.sampled_from("nvidia/0:3b.vm max19\n\x85\u2028\ud800"), max_size=200) | st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert all(0 <= number <= 1 << 60 for number in vidmem(text + region(1)).values())


def test_containers_are_found_with_their_pods(tree: Path) -> None:
    charge(tree, CONTAINER, region(12 * GIB) + region(0, "00000000:86:00.0"))
    charge(tree, DOCKER, region(3 * GIB))
    charge(tree, "user.slice", region(GIB))
    found = Dmem(tree).charged(())
    assert found is not None
    docker, pod = sorted(found, key=lambda charged: charged.holder.kind)
    assert pod.cards == {FIRST: 12 * GIB, SECOND: 0}
    assert pod.holder.owner is not None
    assert (pod.holder.kind, pod.holder.owner.pod_uid, pod.holder.owner.container_id) == ("pod", POD_UID, CONTAINER_ID)
    assert docker.cards == {FIRST: 3 * GIB}
    assert (docker.holder.kind, docker.holder.container) == ("container", None)


def test_what_a_container_makes_below_itself_is_its_own(tree: Path) -> None:
    """It may name a cgroup after any pod."""
    forged = f"{CONTAINER}/kubepods.slice/kubepods-pod22222222_aaaa_4000_8000_000000000001.slice/{'e' * 64}"
    charge(tree, forged, region(2 * GIB))
    charge(tree, CONTAINER, region(12 * GIB))
    (charged,) = Dmem(tree).charged([f"0::/{forged}"]) or ()
    assert charged.holder.owner is not None
    assert (charged.holder.owner.pod_uid, charged.cards) == (POD_UID, {FIRST: 12 * GIB})


def test_a_container_with_processes_and_no_charge_has_0_only_if_the_kernel_says_so(tree: Path) -> None:
    line = f"0::/{CONTAINER}/inner"
    (tree / CONTAINER).mkdir(parents=True)
    assert Dmem(tree).charged([line]) == ()
    charge(tree, CONTAINER, region(0))
    (charged,) = Dmem(tree).charged([line]) or ()
    assert charged.cards == {FIRST: 0}


@pytest.mark.parametrize("line", ["0::/", "0::/../../x", "", "5:memory:/a", f"0::/{SLICE}", "0::/user.slice/a"])
def test_a_line_that_leads_to_no_container_is_left_out(tree: Path, line: str) -> None:
    assert Dmem(tree).charged([line]) == ()


def test_a_branch_without_charges_is_not_walked(tree: Path) -> None:
    charge(tree, CONTAINER, region(GIB))
    (tree / "kubepods.slice/dmem.current").write_text(region(0))
    assert Dmem(tree).charged(()) == ()


def test_a_machine_without_such_books_has_none(tmp_path: Path) -> None:
    assert Dmem(tmp_path).charged(()) is None
    (tmp_path / "dmem.capacity").write_text("drm/0000:03:00.0/vram0 8514437120\n")
    charge(tmp_path, CONTAINER, "drm/0000:03:00.0/vram0 5\n")
    assert Dmem(tmp_path).charged(()) is None


def test_a_tree_that_a_user_made_endless_is_left_in_time(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podgpu.host.dmem._MOST_CGROUPS", 20)
    for number in range(50):
        charge(tree, f"user.slice/{number}", region(1))
    assert Dmem(tree).charged(()) == ()


def test_a_tenants_deep_cgroups_are_not_looked_at(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    charge(tree, CONTAINER, region(GIB))
    asked: list[str] = []
    real = cgroup.classify

    def classify(text: str) -> cgroup.CgroupMatch:
        asked.append(text)
        return real(text)

    monkeypatch.setattr(cgroup, "classify", classify)
    inside = [f"0::/{CONTAINER}/{'/'.join('x' for _ in range(200))}/{number}" for number in range(500)]
    outside = [f"0::/user.slice/{number}/{'/'.join('x' for _ in range(200))}" for number in range(100)]
    found = Dmem(tree).charged([*inside, *outside])
    assert found is not None and [charged.cards for charged in found] == [{FIRST: GIB}]
    # Those inside share the levels above their container. Each of the others has a few of its own.
    assert len(asked) <= 20 + 100 * 16
