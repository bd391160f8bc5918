"""`nearest` is the answer of zxporter's resolver, which never walks past Kubernetes' own workloads."""

import pytest

from podgpu.model import Pod
from tests.fakeapi.server import FakeApi
from tests.kube.test_workloads import made, owned, resolving, shown

APPS, BATCH = "/apis/apps/v1/namespaces/ns", "/apis/batch/v1/namespaces/ns"
ARGO = "/apis/argoproj.io/v1alpha1"
SERVING = ("serving.kserve.io/v1beta1", "InferenceService", "llama", "u-isvc")
OBJECTS = {
    f"{APPS}/replicasets/llama-predictor-abc": made("u-rs", ("apps/v1", "Deployment", "llama-predictor", "u-d")),
    f"{APPS}/deployments/llama-predictor": made("u-d", SERVING),
    f"{BATCH}/jobs/ranks-worker-0": made("u-j", ("jobset.x-k8s.io/v1alpha2", "JobSet", "ranks", "u-js")),
    f"{BATCH}/jobs/nightly-1": made("u-n", ("batch/v1", "CronJob", "nightly", "u-cj")),
    f"{APPS}/statefulsets/vllm-0": made("u-sts", ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "vllm", "u-l")),
    f"{APPS}/replicasets/alone": made("u-alone"),
    f"{APPS}/replicasets/web-xyz": made("u-r", ("argoproj.io/v1alpha1", "Rollout", "web", "u-ro")),
    ARGO: {"resources": [{"name": "rollouts", "kind": "Rollout", "namespaced": True}]},
    f"{ARGO}/namespaces/ns/rollouts/web": made("u-ro"),
}
KSERVE = owned("k", "ReplicaSet", "llama-predictor-abc", "u-rs", "apps/v1", **{"pod-template-hash": "abc"})
JOBSET = owned("j", "Job", "ranks-worker-0", "u-j", "batch/v1")
CRON = owned("c", "Job", "nightly-1", "u-n", "batch/v1")
LEADER = owned("l", "StatefulSet", "vllm-0", "u-sts")
ALONE = owned("a", "ReplicaSet", "alone", "u-alone")
ROLLOUT = owned("r", "ReplicaSet", "web-xyz", "u-r", **{"rollouts-pod-template-hash": "xyz"})
BARE = Pod(namespace="ns", name="bare", uid="u-bare", phase="Running")


@pytest.mark.parametrize(
    ("pod", "top", "nearest"),
    [
        (KSERVE, "InferenceService/llama", "Deployment/llama-predictor"),
        (JOBSET, "JobSet/ranks", "Job/ranks-worker-0"),
        (CRON, "CronJob/nightly", "CronJob/nightly"),
        (LEADER, "LeaderWorkerSet/vllm", "StatefulSet/vllm-0"),
        (ALONE, "ReplicaSet/alone", "ReplicaSet/alone"),
        (ROLLOUT, "Rollout/web", "Rollout/web"),
        (BARE, "Pod/bare", "Pod/bare"),
    ],
)
async def test_the_topmost_and_the_nearest_owner(pod: Pod, top: str, nearest: str) -> None:
    async with FakeApi(objects=OBJECTS) as fake:
        async with resolving(fake) as workloads:
            assert await shown(workloads, pod) == [top]
        async with resolving(fake, nearest=True) as workloads:
            assert await shown(workloads, pod) == [nearest]


async def test_the_nearest_owner_takes_one_request_at_most() -> None:
    async with FakeApi(objects=OBJECTS) as fake, resolving(fake, nearest=True) as workloads:
        await workloads.resolve([KSERVE, LEADER, BARE])
        assert [seen.path for seen in fake.requests] == [f"{APPS}/replicasets/llama-predictor-abc"]
        assert workloads.knows_all([KSERVE, LEADER, BARE])


async def test_a_replica_set_or_job_that_cannot_be_read_leaves_the_pod_to_itself() -> None:
    async with FakeApi() as fake, resolving(fake, nearest=True) as workloads:
        fake.refuse(403, times=100)
        assert await shown(workloads, KSERVE, JOBSET, LEADER) == ["Pod/k", "Pod/j", "StatefulSet/vllm-0"]


@pytest.mark.parametrize("forbidden", ["nothing", "rollouts", "argoproj.io", "replicasets"])
async def test_a_rollout_is_found_with_and_without_its_right(forbidden: str) -> None:
    async with FakeApi(objects=OBJECTS) as fake, resolving(fake) as workloads:
        fake.refuse(403, times=100, wanted=lambda seen: forbidden in seen.path)
        assert await shown(workloads, ROLLOUT) == ["Rollout/web"]
