"""Jobs of Slurm are known by their cgroups, where nobody but the system may name these."""

import pytest

from podgpu.host import cgroup
from podgpu.model import Owner

ID = "a" * 64
UID = "11111111-2222-3333-4444-555555555555"
JOB = Owner(container_id="123", runtime="slurm")


@pytest.mark.parametrize(
    "line",
    [
        "0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0",
        "0::/system.slice/slurmstepd.scope/job_123/step_extern/user/task_special",
        "0::/system.slice/slurmstepd.scope/job_123",
        "0::/system.slice/node-7_slurmstepd.scope/job_123/step_batch/slurm",
        "0::/batch.slice/batch-gpu.slice/slurmstepd.scope/job_123/step_0",
        "0::/slurmstepd.scope/job_123/step_0",
        "9:memory:/slurm/uid_1000/job_123/step_0/task_0",
        "9:memory:/slurm_node-7/uid_1000/job_123/step_batch",
        "0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0 (deleted)",
    ],
)
def test_a_process_of_a_job_is_the_hosts_and_the_jobs(line: str) -> None:
    verdict = cgroup.classify(f"{line}\n")
    assert (verdict.kind, verdict.owner, verdict.line) == ("host", JOB, line)


@pytest.mark.parametrize(
    "path",
    [
        "/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_123/step_0",
        "/user.slice/slurmstepd.scope/job_123",
        "/user.slice/user-1000.slice/slurm/uid_1000/job_123",
        "/system.slice/alice.service/slurmstepd.scope/job_123",
        "/system.slice/alice.service/slurm/uid_1000/job_123",
        "/home/slurm/uid_1000/job_123",
        "/../../system.slice/slurmstepd.scope/job_123",
        "/system.slice/slurmstepd.scope/system",
        "/system.slice/slurmd.service",
        "/slurm/uid_1000",
        "/slurm/uid_x/job_123",
        "/slurm/job_123",
        "/system.slice/slurmstepd.scope/job_",
        "/system.slice/slurmstepd.scope/job_123x",
        "/system.slice/slurmstepd.scope/job_12345678901",
        "/system.slice/slurmstepd.scope/job_\u0661\u0662",
        "/system.slice/slurmstepd.scope/x/job_123",
    ],
)
def test_a_path_that_somebody_else_could_have_made_is_no_job(path: str) -> None:
    verdict = cgroup.classify(f"0::{path}\n")
    assert (verdict.kind, verdict.owner) == ("host", None)


@pytest.mark.parametrize("above", [f"/docker/{ID}", f"/system.slice/docker-{ID}.scope"])
def test_a_job_inside_a_container_is_the_containers(above: str) -> None:
    verdict = cgroup.classify(f"0::{above}/system.slice/slurmstepd.scope/job_123\n")
    assert (verdict.kind, verdict.owner) == ("container", Owner(container_id=ID, runtime="docker"))


@pytest.mark.parametrize("below", [f"docker/{ID}", f"kubepods/pod{UID}/{ID}", f"libpod-{ID}.scope"])
def test_a_job_cannot_pass_for_a_container_or_a_pod(below: str) -> None:
    verdict = cgroup.classify(f"9:memory:/slurm/uid_1000/job_123/step_0/{below}\n")
    assert (verdict.kind, verdict.owner) == ("host", JOB)


def test_the_line_with_the_job_is_the_evidence_and_beats_a_session() -> None:
    session = f"1:name=systemd:/user.slice/user-1000.slice/user@1000.service/docker-{ID}.scope"
    job = "9:memory:/slurm/uid_1000/job_123/step_extern"
    verdict = cgroup.classify(f"{session}\n{job}\n0::/system.slice/slurmd.service\n")
    assert (verdict.owner, verdict.line) == (JOB, job)


def test_lines_that_name_two_jobs_prove_neither() -> None:
    verdict = cgroup.classify("9:memory:/slurm/uid_1/job_1/step_0\n8:freezer:/slurm/uid_1/job_2/step_0\n")
    assert (verdict.kind, verdict.owner) == ("host", None)


def test_a_pod_beats_a_job() -> None:
    verdict = cgroup.classify(f"9:memory:/slurm/uid_1/job_1/step_0\n0::/kubepods/pod{UID}/{ID}\n")
    assert verdict.kind == "pod"
