"""Cgroups named after a pod by somebody who is not the kubelet."""

import pytest

from podgpu.host import cgroup
from tests.host.cgroup.test_cgroup import CGROUPFS, ID, OTHER_ID, POD, SYSTEMD, VICTIM

SPOOFS = (
    f"kubepods/besteffort/pod{VICTIM}/{OTHER_ID}",
    f"pod{VICTIM}/{OTHER_ID}",
    f"kubepods.slice/kubepods-pod{VICTIM.replace('-', '_')}.slice/cri-containerd-{OTHER_ID}.scope",
    f"kubepods-pod{VICTIM.replace('-', '_')}.slice:cri-containerd:{OTHER_ID}",
    f"docker/{OTHER_ID}/kubepods/pod{VICTIM}/{OTHER_ID}",
    f"x\u20280::/kubepods/pod{VICTIM}/{OTHER_ID}",
    f"x\r0::/kubepods/pod{VICTIM}/{OTHER_ID}",
)


@pytest.mark.parametrize("spoof", SPOOFS)
@pytest.mark.parametrize("path", [SYSTEMD, CGROUPFS, f"/docker/{OTHER_ID}/kubelet{CGROUPFS}", f"/../..{CGROUPFS}"])
def test_a_container_cannot_pass_for_another_pod_by_naming_cgroups_below_its_own(path: str, spoof: str) -> None:
    owner = cgroup.classify(f"0::{path}/{spoof}\n", roots=cgroup.roots_above(f"0::{path}\n")).owner
    assert owner is not None
    assert (owner.pod_uid, owner.container_id) == (POD, ID)


# Cgroups that their owner, who is not root, may divide further: containers, jobs, and services with `Delegate=yes`.
DELEGATED = (
    "/lxc/web",
    "/lxc.payload.web",
    "/machine.slice/machine-web.scope/payload",
    "/ecs/409b8b89ccd746bdb9b5e03418406d96/409b8b89ccd746bdb9b5e03418406d96-3057940393",
    "/garden/web",
    "/default/web",
    f"/docker/{OTHER_ID}",
    f"/docker/{OTHER_ID}/kubelet",
    f"/system.slice/docker-{OTHER_ID}.scope/kubelet.slice",
    f"/machine.slice/libpod-{OTHER_ID}.scope/container",
    "/nomad.slice/share.slice/1234.web.scope",
    "/htcondor/condor_home_slot1",
    "/pbs_jobs.service/jobid/12.server",
    "/system.slice/web.service",
    "/system.slice/kubelet.service.d",
    "/user.slice",
    "/user.slice/user-1000.slice/user@1000.service/containerd.service",
)


@pytest.mark.parametrize("place", DELEGATED)
@pytest.mark.parametrize("spoof", [SYSTEMD, CGROUPFS, SYSTEMD.removeprefix("/kubepods.slice")])
@pytest.mark.parametrize("reader", ["", CGROUPFS, f"/kubelet{CGROUPFS}"], ids=["host", "pod", "pod below"])
def test_a_pod_below_another_owner_is_that_owners(place: str, spoof: str, reader: str) -> None:
    match = cgroup.classify(f"0::{place}{spoof}\n", roots=cgroup.roots_above(f"0::{reader}\n"))
    assert match.kind == cgroup.classify(f"0::{place}\n").kind != "pod"
    relative = cgroup.classify(f"0::/../../../..{place}{spoof}\n", private=True)
    assert relative.kind != "pod"


@pytest.mark.parametrize("spoof", SPOOFS[:4])
@pytest.mark.parametrize(
    "place",
    [
        "/user.slice/user-1000.slice/user@1000.service",
        "/../../../../user.slice/user-1000.slice/user@1000.service",
        f"/system.slice/cri-containerd-{ID}.scope",
        f"/system.slice/crio-{ID}.scope",
        f"/{ID}",
        f"/../cri-containerd-{ID}.scope",
        f"/../docker-{ID}.scope",
        "/kubepods/besteffort/podnot-a-uid/x",
        "/kubepods/besteffort/evil",
        "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podnot_a_uid.slice",
    ],
)
def test_a_pod_is_not_believed_where_others_may_name_cgroups(place: str, spoof: str) -> None:
    assert cgroup.classify(f"0::{place}/{spoof}\n").kind != "pod"
