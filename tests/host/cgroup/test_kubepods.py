"""Where the cgroups of containers are, by the line of one process."""

import pytest

from podgpu.host.cgroup import classify, style_of

UID, OTHER = "2f7a9c1e-0b44-4f6e-9d0a-5b1c7e8f9a0b", "11111111-2222-3333-4444-555555555555"
ID, NEXT = "a" * 64, "b" * 64
SLICE = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
KIND = "/kubelet.slice/kubelet-kubepods.slice"
OTHER_POD = OTHER.replace("-", "_")

LINES = {
    "systemd and containerd": (
        f"0::/kubepods.slice/kubepods-burstable.slice/{SLICE}/cri-containerd-{ID}.scope",
        f"/kubepods.slice/kubepods-pod{OTHER_POD}.slice/cri-containerd-{NEXT}.scope",
        f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{OTHER_POD}.slice/cri-containerd-{NEXT}.scope",
    ),
    "systemd and CRI-O, with a cgroup of the container's own": (
        f"0::/kubepods.slice/kubepods-burstable.slice/{SLICE}/crio-{ID}.scope/container",
        f"/kubepods.slice/kubepods-pod{OTHER_POD}.slice/crio-{NEXT}.scope",
        f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{OTHER_POD}.slice/crio-{NEXT}.scope",
    ),
    "cgroupfs": (
        f"12:memory:/kubepods/burstable/pod{UID}/{ID}",
        f"/kubepods/pod{OTHER}/{NEXT}",
        f"/kubepods/besteffort/pod{OTHER}/{NEXT}",
    ),
    "cgroupfs, a guaranteed pod": (
        f"0::/kubepods/pod{UID}/{ID}",
        f"/kubepods/pod{OTHER}/{NEXT}",
        f"/kubepods/besteffort/pod{OTHER}/{NEXT}",
    ),
    "kind": (
        f"0::{KIND}/kubelet-kubepods-burstable.slice/kubelet-{SLICE}/cri-containerd-{ID}.scope",
        f"{KIND}/kubelet-kubepods-pod{OTHER_POD}.slice/cri-containerd-{NEXT}.scope",
        f"{KIND}/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod{OTHER_POD}.slice/cri-containerd-{NEXT}.scope",
    ),
    "systemd, from a private namespace": (
        f"0::/../../{SLICE}/cri-containerd-{ID}.scope",
        f"/kubepods.slice/kubepods-pod{OTHER_POD}.slice/cri-containerd-{NEXT}.scope",
        f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{OTHER_POD}.slice/cri-containerd-{NEXT}.scope",
    ),
    "cgroupfs, from a private namespace": (
        f"0::/../../pod{UID}/{ID}",
        f"/kubepods/pod{OTHER}/{NEXT}",
        f"/kubepods/besteffort/pod{OTHER}/{NEXT}",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_one_line_shows_the_paths_of_all(name: str) -> None:
    line, guaranteed, best_effort = LINES[name]
    style = style_of(line, classify(line).owner)
    assert style is not None
    assert style.path(OTHER, "guaranteed", NEXT) == guaranteed
    assert style.path(OTHER, "besteffort", NEXT) == best_effort


@pytest.mark.parametrize("name", [name for name in LINES if "private" not in name])
def test_a_container_s_own_path_is_that_of_its_processes(name: str) -> None:
    line, _, _ = LINES[name]
    owner = classify(line).owner
    assert owner is not None and owner.qos is not None
    style = style_of(line, owner)
    assert style is not None
    assert line.split(":", 2)[2].startswith(style.path(UID, owner.qos, ID))


@pytest.mark.parametrize(
    "line",
    [
        "0::/system.slice/video.service",
        f"0::/docker/{ID}",
        f"0::/system.slice/containerd.service/{SLICE}:cri-containerd:{ID}",
        f"0::/elsewhere/{SLICE}/cri-containerd-{ID}.scope",
    ],
)
def test_other_lines_show_nothing(line: str) -> None:
    assert style_of(line, classify(line).owner) is None


def test_an_unknown_quality_of_service_has_no_path() -> None:
    line = LINES["cgroupfs"][0]
    style = style_of(line, classify(line).owner)
    assert style is not None
    with pytest.raises(ValueError, match="best"):
        style.path(UID, "best", ID)
