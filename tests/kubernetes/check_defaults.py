"""The chart as docs/install.md has it installed: what the agent sees, and what is left of it at the end."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.kubernetes import gpus, kubectl
from tests.kubernetes.gpus import CLAIMED, DRIVER, EXCLUSIVE, SHARED, wait_for
from tests.kubernetes.kubectl import Object, page
from tests.kubernetes.samples import Samples

SOURCES = ("nvml", "podresources", "apiserver", "resource-claims", "procfs")
ALL_UP = {(source,): 1.0 for source in SOURCES}


@pytest.fixture(scope="module")
def agent(memory: dict[str, int]) -> Iterator[Object]:
    kubectl.make_namespace(kubectl.NAMESPACE, "privileged")
    kubectl.install(DRIVER)
    yield kubectl.roll_out()
    kubectl.uninstall()
    wait_for(lambda: kubectl.remains() == [])
    kubectl.kubectl("delete", "namespace", kubectl.NAMESPACE)


def chat() -> str:
    (pod,) = kubectl.get("pods", "--namespace=team-a")
    return str(pod["metadata"]["name"])


def samples(agent: Object) -> Samples:
    return Samples.read(page(agent, "/metrics"))


def holders(agent: Object) -> set[str]:
    return {pod for (pod,) in samples(agent).by("podgpu_container_allocated_ratio", "pod")}


def test_the_probes_pass_and_nothing_restarts(agent: Object) -> None:
    (status,) = agent["status"]["containerStatuses"]
    assert status["ready"] is True and status["restartCount"] == 0
    events = kubectl.get("events", f"--namespace={kubectl.NAMESPACE}")
    assert [each["message"] for each in events if each["reason"] in ("Unhealthy", "BackOff", "Failed")] == []


def test_every_source_answers(agent: Object) -> None:
    wait_for(lambda: samples(agent).by("podgpu_source_up", "source") == ALL_UP)
    assert samples(agent).by("podgpu_up", "node") == {("gpu-node-1",): 1.0}


def test_the_kubelets_allocations_become_shares_of_pods(agent: Object) -> None:
    held = samples(agent).by("podgpu_container_allocated_ratio", "uuid", "namespace", "pod", "container")
    assert held == {
        (EXCLUSIVE, "team-a", chat(), "main"): 1.0,
        (SHARED, "team-b", "batch", "main"): 0.25,
        (SHARED, "team-b", "idle", "main"): 0.25,
        (CLAIMED, "team-c", "train", "main"): 1.0,
    }


def test_processes_are_booked_to_their_own_pods(agent: Object, memory: dict[str, int]) -> None:
    wait_for(lambda: len(samples(agent).by("podgpu_container_memory_used_bytes", "pod")) == 4)
    used = samples(agent).by("podgpu_container_memory_used_bytes", "pod")
    assert used == {(pod,): float(bytes_) for pod, bytes_ in memory.items()}


def test_the_workload_is_the_deployment(agent: Object) -> None:
    workloads = samples(agent).by("podgpu_pod_info", "pod", "workload_kind", "workload_name")
    assert set(workloads) == {
        (chat(), "Deployment", "chat"),
        ("batch", "Pod", "batch"),
        ("idle", "Pod", "idle"),
        ("train", "Pod", "train"),
    }


def test_the_doctor_fails_no_check(agent: Object) -> None:
    doctor = ["podgpu", "doctor", "--config.file=/etc/podgpu/podgpu.yml", "--output=json"]
    said = json.loads(kubectl.kubectl("exec", "daemonset/podgpu", "--namespace=podgpu", "--", *doctor))
    assert [each for each in said["checks"] if each["status"] == "FAIL"] == []


def test_the_container_runs_as_the_docs_say(agent: Object) -> None:
    status = kubectl.kubectl(
        "exec", "daemonset/podgpu", "--namespace=podgpu", "--", "/usr/bin/python3", "-c",
        "print(open('/proc/self/status').read())",
    )  # fmt: skip
    fields = dict(re.findall(r"^(\w+):\s*(.*)$", status, re.MULTILINE))
    assert fields["Uid"].split() == ["0"] * 4
    assert {fields[each] for each in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"


def test_an_upgrade_without_a_change_restarts_nobody(agent: Object) -> None:
    kubectl.install(DRIVER)
    assert kubectl.roll_out()["metadata"]["name"] == agent["metadata"]["name"]


def test_a_pod_that_ends_is_no_longer_a_holder(agent: Object, node: object) -> None:
    kubectl.kubectl("delete", "pod", "idle", "--namespace=team-b")
    wait_for(lambda: holders(agent) == {chat(), "batch", "train"})
    gpus.make_tenants()
    wait_for(lambda: holders(agent) == {chat(), "batch", "idle", "train"})
