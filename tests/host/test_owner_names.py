"""Titles of processes outside Kubernetes, from what the kernel and the machine's files say."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.host.owner_names import OwnerNames
from podgpu.host.procfs import Procfs
from podgpu.model import Holder, Owner
from tests.agent.stage import write_proc
from tests.host.machine import place_docker, place_podman, write_docker, write_podman, write_users

WEB, HIDDEN, NOTEBOOK, PLACED = "1" * 64, "2" * 64, "3" * 64, "4" * 64
UID = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    write_docker(root, WEB, "/web")
    write_podman(root, {"id": NOTEBOOK, "names": ["notebook"]})
    write_docker(root, PLACED, "/placed")
    place_docker(root, PLACED, "/lab")
    place_docker(root, WEB, "")
    place_podman(root, NOTEBOOK, f"/system.slice/notebook.service/libpod-payload-{NOTEBOOK}")
    write_users(root, root=0, alice=1000)
    return root


def holder(machine: Path, cgroup: str, user: int = 0) -> Holder:
    """Whose a process in that cgroup is, by a real reader of /proc."""
    proc = machine.parent / "proc"
    write_proc(proc, 7, f"{cgroup}\n")
    found = Procfs(proc).holders([7])[7]
    return Holder(pid=7, kind=found.kind, owner=found.owner, cgroup=found.cgroup, user=user)


@pytest.mark.parametrize(
    ("cgroup", "user", "title"),
    [
        (f"0::/system.slice/docker-{WEB}.scope", 0, "docker/web"),
        (f"0::/system.slice/docker-{WEB}.scope/user.slice/user-1000.slice/x", 1000, "docker/web"),
        (f"0::/user.slice/user-1001.slice/docker-{WEB}.scope", 0, "docker/web"),
        (f"9:memory:/docker/{WEB}", 1000, "docker/web"),
        (f"0::/system.slice/docker-{HIDDEN}.scope", 0, "docker/222222222222"),
        (f"0::/docker/{WEB}/docker/{HIDDEN}", 0, "docker/web"),
        (f"0::/machine.slice/libpod-{NOTEBOOK}.scope/container", 0, "podman/notebook"),
        (f"0::/system.slice/notebook.service/libpod-payload-{NOTEBOOK}", 0, "podman/notebook"),
        (f"0::/libpod_parent/libpod-{NOTEBOOK}", 0, "podman/notebook"),
        (f"9:memory:/lab/{PLACED}", 0, "docker/placed"),
        (f"0::/../../system.slice/docker-{WEB}.scope", 0, "docker/web"),
        (f"0::/{WEB}", 0, "container/111111111111"),
        (f"0::/ecstasks.slice/ecstasks-{'b' * 32}.slice/docker-{WEB}.scope", 0, "docker/web"),
        (f"0::/machine.slice/libpod-{HIDDEN}.scope", 0, "podman/222222222222"),
        (f"0::/default/{WEB}", 0, "container/111111111111"),
        (f"0::/system.slice/nerdctl-{WEB}.scope", 0, "container/111111111111"),
        ("9:cpu:/ecs/task/" + "b" * 32 + "-2918", 0, "container/" + "b" * 32 + "-2918"),
        ("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", 1000, "slurm/4711"),
        ("9:memory:/slurm/uid_1000/job_4711/step_0/task_0", 1000, "slurm/4711"),
        ("0::/user.slice/user-1000.slice/session-4.scope", 1000, "user/alice"),
        ("0::/system.slice/nvidia-persistenced.service", 0, "user/root"),
        ("0::/user.slice/user-1001.slice/session-5.scope", 1001, "user/1001"),
        ("0::/", 1000, "user/alice"),
    ],
)
def test_whoever_is_outside_has_a_title(machine: Path, cgroup: str, user: int, title: str) -> None:
    assert OwnerNames(machine).title(holder(machine, cgroup, user)) == title


SESSION = "0::/user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    ("cgroup", "title"),
    [
        (f"{SESSION}/user.slice/libpod-{NOTEBOOK}.scope/container", "podman/alice/333333333333"),
        (f"{SESSION}/docker-{WEB}.scope", "docker/alice/111111111111"),
        (f"{SESSION}/user-0.slice/docker/{WEB}", "docker/alice/111111111111"),
        (f"{SESSION}/slurmstepd.scope/job_1/step_0", "user/alice"),
        (f"{SESSION}/{HIDDEN}", "container/alice/222222222222"),
    ],
)
def test_a_user_cannot_pass_for_another_by_naming_cgroups_in_his_session(
    machine: Path, cgroup: str, title: str
) -> None:
    assert OwnerNames(machine).title(holder(machine, cgroup, 1000)) == title


@pytest.mark.parametrize(
    "place",
    [
        f"/system.slice/web.service/docker-{WEB}.scope",
        f"/system.slice/web.service/system.slice/docker-{WEB}.scope",
        f"/system.slice/web.service/docker/{WEB}",
        f"/system.slice/web.service/lab/{PLACED}",
        f"/system.slice/web.service/libpod-payload-{NOTEBOOK}",
        f"/system.slice/notebook.service/deeper/libpod-payload-{NOTEBOOK}",
        f"/system.slice/notebook.service/libpod-{NOTEBOOK}.scope",
        f"/system.slice/web.service/user.slice/user-1001.slice/user@1001.service/docker-{WEB}.scope",
        f"/system.slice/web.service/{WEB}",
        f"/alice/docker-{WEB}.scope",
        f"/alice/docker/{WEB}",
    ],
)
def test_a_service_cannot_pass_for_a_container_by_naming_cgroups_below_its_own(machine: Path, place: str) -> None:
    assert OwnerNames(machine).title(holder(machine, f"0::{place}", 1000)) == "user/alice"


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"linux": null}', b'{"linux": {"cgroupsPath": "a:b:c"}}'])
def test_a_runtime_that_says_nothing_useful_vouches_for_nobody(machine: Path, text: bytes) -> None:
    for file in (
        place_podman(machine, NOTEBOOK, ""),
        place_docker(machine, PLACED, ""),
    ):
        file.write_bytes(text)
    for place in (f"/system.slice/notebook.service/libpod-payload-{NOTEBOOK}", f"/lab/{PLACED}"):
        shutil.rmtree(machine.parent / "proc", ignore_errors=True)
        assert OwnerNames(machine).title(holder(machine, f"0::{place}", 1000)) == "user/alice"


def test_a_container_of_a_pod_stays_the_pods(machine: Path) -> None:
    found = holder(machine, f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/docker-{WEB}.scope")
    assert (found.kind, found.owner) == (
        "pod",
        Owner(pod_uid=UID, container_id=WEB, runtime="docker", qos="guaranteed"),
    )


def test_a_process_nobody_can_tell_the_user_of_has_no_title(tmp_path: Path) -> None:
    assert OwnerNames(tmp_path).title(Holder(pid=7, kind="host")) == ""


@given(
    st.text(),
    st.text(),
    st.sampled_from(["docker", "podman", "nerdctl", None]),
    st.sampled_from(["host", "container"]),
)
def test_any_holder_is_survived(container_id: str, cgroup: str, runtime: str | None, kind: str) -> None:
    owner = Owner(container_id=container_id, runtime=runtime)
    holder = Holder(pid=7, kind=kind, owner=owner, cgroup=cgroup, user=0)
    assert OwnerNames(Path("/nowhere")).title(holder).startswith(("docker/", "podman/", "container/", "user/0"))
