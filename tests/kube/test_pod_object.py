import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from podgpu.kube.api import MALFORMED
from podgpu.kube.limits import ANNOTATION_BYTES, LABEL_BYTES, MOST_CONTAINERS
from podgpu.kube.pod_object import decode_pod, to_pod
from podgpu.model import ClaimUse, ExtendedUse, OwnerReference, Pod, PodContainer
from tests.fakeapi.recorded import changed, listed, pod

UID = "04a42512-da73-45a0-91d1-4b3469bce212"


def made(item: dict[str, Any]) -> Pod:
    return to_pod(decode_pod(json.dumps(item).encode()))


def recorded(cluster: str, name: str) -> Pod:
    return next(made(item) for item in listed(cluster)["items"] if item["metadata"]["name"] == name)


@pytest.mark.parametrize(
    ("written", "read"), [("kai-scheduler", "kai-scheduler"), ("default-scheduler", ""), ("x" * 100_000, "x" * 253)]
)
def test_the_scheduler_is_read_unless_it_is_the_usual_one(written: str, read: str) -> None:
    """Nobody may make his pod unreadable by the length of a name."""
    item = listed("kubernetes-1.36.4")["items"][0]
    item["spec"]["schedulerName"] = written
    assert made(item).scheduler == read


def test_a_recorded_pod_is_read_whole() -> None:
    assert recorded("kubernetes-1.36.4", "nightly-manual-22spb") == Pod(
        namespace="team-b",
        name="nightly-manual-22spb",
        uid="a929f714-e746-4631-ad63-3234b6484c75",
        phase="Running",
        started_at=datetime(2026, 11, 15, 3, 5, 22, tzinfo=UTC).timestamp(),
        qos="besteffort",
        labels={
            "batch.kubernetes.io/controller-uid": "5edee0c8-7bbb-42fa-b379-092e16953992",
            "batch.kubernetes.io/job-name": "nightly-manual",
            "controller-uid": "5edee0c8-7bbb-42fa-b379-092e16953992",
            "job-name": "nightly-manual",
        },
        owner=OwnerReference(
            kind="Job",
            name="nightly-manual",
            uid="5edee0c8-7bbb-42fa-b379-092e16953992",
            api_version="batch/v1",
        ),
        containers=(
            PodContainer(
                name="tune",
                container_id="729b298cd42a9d1fbc4152e6b36d729f257dc9e0cf34b4c4fcafc6296a52aafc",
                image="docker.io/library/bb:1",
                running=True,
                devices=(
                    ("nvidia.com/mig-1g.18gb", "MIG-0a1b2c3d-1111-5111-8111-000000000001"),
                    ("nvidia.com/mig-1g.18gb", "MIG-0a1b2c3d-1111-5111-8111-000000000002"),
                ),
                limits={"nvidia.com/mig-1g.18gb": "2"},
            ),
        ),
    )


def test_each_container_has_its_own_request_of_a_claim() -> None:
    found = recorded("kubernetes-1.36.4-dra", "dra-mig")
    assert {each.name: each.devices for each in found.containers} == {
        "left": (("claim:m/left", "gpu.nvidia.com/gpu-node-1/gpu-7-mig-1g18gb-19-0"),),
        "right": (("claim:m/right", "gpu.nvidia.com/gpu-node-1/gpu-7-mig-1g18gb-19-1"),),
    }


def test_a_static_pod_carries_the_hash_its_cgroup_goes_by() -> None:
    found = recorded("kubernetes-1.36.4-dra", "static-probe-gpu-node-1")
    assert found.uid == "c71e651d-e64d-428c-8b6f-4ee0fcd6de64"
    assert found.static_hash.startswith("8cceda71") and len(found.static_hash) == 32


def test_a_hash_without_the_mirror_mark_is_anybodys_word() -> None:
    item = pod("p", UID)
    item["metadata"]["annotations"] = {"kubernetes.io/config.hash": "8cceda71" * 4}
    assert made(item).static_hash == ""
    item["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "another"
    assert made(item).static_hash == ""


def test_only_annotations_that_somebody_reads_are_kept() -> None:
    item = pod("p", UID)
    item["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "note/cards": "0,1",
        "note/number": 7,
        "another": "x" * (1 << 20),
    }
    errors: Counter[str] = Counter()
    assert to_pod(decode_pod(json.dumps(item).encode()), ("note/",), errors).annotations == {
        "note/cards": "0,1",
        "note/number": "",
    }
    assert errors == {}


def test_a_note_that_is_too_large_is_counted_and_the_pod_stays() -> None:
    item = pod("p", UID)
    item["metadata"]["annotations"] = {
        "note/a": "x" * (ANNOTATION_BYTES - 6),
        "note/b": "x" * 7,
        "note/c": "x" * ANNOTATION_BYTES,
    }
    errors: Counter[str] = Counter()
    found = to_pod(decode_pod(json.dumps(item).encode()), ("note/",), errors)
    assert (found.uid, list(found.annotations)) == (UID, ["note/a"])
    assert errors == {"note_too_large": 2}


def test_containers_beyond_the_bound_are_counted() -> None:
    item = pod("p", UID)
    item["spec"]["containers"] = [{"name": f"c{n}"} for n in range(MOST_CONTAINERS)]
    item["spec"]["initContainers"] = [{"name": f"i{n}"} for n in range(7)]
    errors: Counter[str] = Counter()
    found = to_pod(decode_pod(json.dumps(item).encode()), (), errors)
    assert (len(found.containers), found.left_out) == (MOST_CONTAINERS, 7)
    assert errors == {"too_many_containers": 7}


def test_of_too_many_labels_those_that_count_are_kept() -> None:
    item = pod("p", UID)
    item["metadata"]["labels"] = {**{f"l{n}": "x" * 60 for n in range(LABEL_BYTES // 60)}, "group": "7"}
    found = to_pod(decode_pod(json.dumps(item).encode()), ("group",))
    assert found.labels["group"] == "7"
    assert sum(len(key) + len(value) for key, value in found.labels.items()) <= LABEL_BYTES


def test_an_init_container_that_is_always_restarted_is_a_sidecar() -> None:
    item = pod("p", UID)
    item["spec"]["initContainers"] = [
        {"name": "side", "restartPolicy": "Always"},
        {"name": "once"},
        {"name": "often", "restartPolicy": "OnFailure"},
    ]
    item["spec"]["containers"] = [{"name": "main", "restartPolicy": "Always"}]
    found = {container.name: container.is_sidecar for container in made(item).containers}
    assert found == {"side": True, "once": None, "often": None, "main": None}


def test_init_and_ephemeral_containers_count_and_a_finished_one_does_not_run() -> None:
    item = pod("p", UID)
    item["status"] |= {
        "initContainerStatuses": [{"name": "i", "containerID": "cri-o://aa", "state": {"terminated": {}}}],
        "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}],
        "ephemeralContainerStatuses": [{"name": "e", "containerID": "docker://bb", "state": {"running": {}}}],
    }
    assert made(item).containers == (
        PodContainer(name="i", container_id="aa", is_init=True),
        PodContainer(name="c"),
        PodContainer(name="e", container_id="bb", running=True, is_ephemeral=True),
    )


@pytest.mark.parametrize(
    ("change", "is_owner"),
    [
        ({}, True),
        ({"kind": "K", "name": "n"}, True),
        ({"kind": "K" * 63, "name": "n" * 253}, True),
        ({"kind": ""}, False),
        ({"kind": "K" * 64}, False),
        ({"name": ""}, False),
        ({"name": "n" * 254}, False),
        ({"uid": ""}, False),
        ({"controller": False}, False),
    ],
    ids=["complete", "shortest", "longest", "no kind", "long kind", "no name", "long name", "no uid", "no controller"],
)
def test_an_owner_has_a_kind_a_name_and_a_uid(change: dict[str, Any], is_owner: bool) -> None:
    owner = {"kind": "Job", "name": "train", "uid": "u", "controller": True} | change
    assert (made(changed(pod("p", UID), ownerReferences=[owner])).owner is not None) == is_owner


def test_only_the_controller_is_the_owner() -> None:
    item = pod("p", UID)
    item["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u1"},
        {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray", "uid": "u2", "controller": True},
    ]
    owner = made(item).owner
    assert owner and (owner.kind, owner.name, owner.api_version) == ("RayCluster", "ray", "ray.io/v1")
    item["metadata"]["ownerReferences"].pop()
    assert made(item).owner is None


def test_a_device_is_named_once_and_only_if_it_can_be_one() -> None:
    item = pod("p", UID)
    ids = ["GPU-1", "GPU-1", "", "a b", "a\n", "é", "x" * 513, "x" * 512, "0"]
    status = {"name": "nvidia.com/gpu", "resources": [{"resourceID": each} for each in ids]}
    item["status"]["containerStatuses"] = [{"name": "c", "allocatedResourcesStatus": [status]}]
    devices = made(item).containers[0].devices
    assert devices == tuple(("nvidia.com/gpu", each) for each in ("GPU-1", "x" * 512, "0"))


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "Upper"), ("name", "a\n"), ("name", ""), ("namespace", "a.b"), ("uid", "../x"), ("uid", None)],
)
def test_a_pod_that_cannot_be_is_none(field: str, value: object) -> None:
    item = pod("p", UID)
    item["metadata"][field] = value
    with pytest.raises(MALFORMED):
        made(item)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T02:01:00.5+02:00", 60.5),
        ("1970-01-01T00:01:00", None),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_when_a_pod_started(written: str | None, seconds: float | None) -> None:
    """What is no time is not known; the pod is there all the same."""
    item = pod("p", UID)
    item["status"]["startTime"] = written
    assert made(item).started_at == seconds


def test_nulls_are_absences() -> None:
    item = pod("p", UID)
    item["metadata"] |= {"labels": None, "annotations": None, "ownerReferences": None}
    item["status"]["containerStatuses"] = None
    assert made(item) == Pod(namespace="team-a", name="p", uid=UID, phase="Running")
    assert msgspec.json.encode(made(item))


def test_containers_come_as_the_spec_lists_them_not_as_the_status_sorts_them() -> None:
    item = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {
            "containers": [
                {"name": "web", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "2"}}},
                {"name": "agent", "resources": {"claims": [{"name": "gpu", "request": "big"}]}},
            ],
            "resourceClaims": [
                {"name": "gpu", "resourceClaimTemplateName": "t"},
                {"name": "old", "resourceClaimName": "o"},
            ],
        },
        "status": {
            "containerStatuses": [{"name": "agent", "containerID": "x://1"}, {"name": "web"}],
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x7"}],
            "extendedResourceClaimStatus": {
                "resourceClaimName": "p-extended",
                "requestMappings": [
                    {
                        "containerName": "web",
                        "resourceName": "nvidia.com/gpu",
                        "requestName": "container-0-request-0",
                    }
                ],
            },
        },
    }
    pod = made(item)
    assert pod.containers == (
        PodContainer(name="web", limits={"nvidia.com/gpu": "2"}),
        PodContainer(name="agent", container_id="1", uses=(ClaimUse("gpu", "big"),)),
    )
    assert pod.resource_claims == {"gpu": "p-gpu-x7", "old": "o"}
    assert pod.extended_claim == "p-extended"
    assert pod.extended == (ExtendedUse(container="web", resource="nvidia.com/gpu", request="container-0-request-0"),)


def test_who_submitted_a_pod_is_said_by_its_first_container() -> None:
    item = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "annotations": {"clusterName": "east"}},
        "spec": {
            "containers": [
                {
                    "name": "a",
                    "env": [
                        {"name": "TOKEN", "value": "secret"},
                        {"name": "FIELD", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                        {"name": "SUBMITTER", "value": "ada"},
                    ],
                },
                {"name": "b", "env": [{"name": "SUBMITTER", "value": "bob"}]},
            ]
        },
        "status": {"hostIP": "10.0.0.7"},
    }
    pod = made(item)
    assert (pod.submitter, pod.cluster, pod.host_ip) == ("ada", "east", "10.0.0.7")
    assert "secret" not in repr(pod)
