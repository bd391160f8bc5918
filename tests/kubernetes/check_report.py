"""The CronJob that makes bills, as the API server keeps it, and a Job of it that runs."""

import json
from typing import Any

import pytest

from tests.deploy import chart
from tests.kubernetes import kubectl
from tests.kubernetes.gpus import DRIVER, wait_for
from tests.kubernetes.kubectl import NAMESPACE, Object

CLAIM, NAME, JOB = "bills", "podgpu-report", "bill-by-hand"
VALUES: Object = {
    **DRIVER,
    "report": {
        "schedule": "0 3 1 1 *",
        "store": "http://127.0.0.1:9",  # nobody is there
        "coverage": 0.99,
        "prices": {"currency": "EUR", "gpu_hour": {"*": 3.5}},
        "volume": {"existingClaim": CLAIM},
    },
}
pytestmark = pytest.mark.usefixtures("node", "namespace")


def make_claim() -> None:
    """A volume on the node itself, which needs no provisioner."""
    size = {"storage": "10Mi"}
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": CLAIM},
            "spec": {
                "capacity": size,
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "claimRef": {"name": CLAIM, "namespace": NAMESPACE},
                "hostPath": {"path": "/tmp/bills", "type": "DirectoryOrCreate"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM, "namespace": NAMESPACE},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "volumeName": CLAIM,
                "resources": {"requests": size},
            },
        },
    )


def differences(wanted: Any, kept: Any, path: str = "") -> list[str]:
    """Where the API server keeps something else than the chart says. It adds defaults, which are no difference."""
    if isinstance(wanted, dict) and isinstance(kept, dict):
        return [line for key in wanted for line in differences(wanted[key], kept.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(kept, list) and len(wanted) == len(kept):
        pairs = enumerate(zip(wanted, kept, strict=True))
        return [line for at, pair in pairs for line in differences(*pair, f"{path}[{at}]")]
    return [] if wanted == kept else [f"{path}: {wanted!r}, kept as {kept!r}"]


def ended_pod() -> Object | None:
    pods = kubectl.get("pods", f"--namespace={NAMESPACE}", f"--selector=batch.kubernetes.io/job-name={JOB}")
    states = ((pod, pod["status"].get("containerStatuses", [])) for pod in pods)
    return next((pod for pod, found in states if found and "terminated" in found[0]["state"]), None)


def test_the_api_server_keeps_what_the_chart_says_and_a_job_of_it_fails_visibly() -> None:
    make_claim()
    kubectl.install(VALUES)
    (kept,) = kubectl.get("cronjobs", f"--namespace={NAMESPACE}")
    wanted = chart.only(chart.parse(chart.text(VALUES)), "CronJob")
    assert kept["metadata"]["name"] == NAME
    assert differences(wanted["spec"], kept["spec"]) == []

    kubectl.kubectl("create", "job", JOB, f"--from=cronjob/{NAME}", f"--namespace={NAMESPACE}")
    wait_for(lambda: ended_pod() is not None, 150.0)
    pod = ended_pod()
    assert pod is not None
    (status,) = pod["status"]["containerStatuses"]
    log = kubectl.kubectl("logs", pod["metadata"]["name"], f"--namespace={NAMESPACE}")
    assert (status["state"]["terminated"]["exitCode"], "store_unreachable" in log) == (2, True), log

    made = json.loads(kubectl.kubectl("get", "job", JOB, f"--namespace={NAMESPACE}", "--output=json"))
    assert differences(kept["spec"]["jobTemplate"]["spec"], made["spec"]) == []
    kubectl.kubectl("delete", "job", JOB, f"--namespace={NAMESPACE}", "--wait")
    kubectl.kubectl("delete", "persistentvolume", CLAIM, "--wait=false")
