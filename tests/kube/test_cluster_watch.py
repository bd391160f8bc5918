"""The whole cluster by lists and watches of the fake API server."""

import asyncio
import json

import pytest

from podgpu.kube.cluster_watch import NODES
from podgpu.kube.object_watch import WatchTiming
from tests.fakeapi.recorded import changed, listed
from tests.fakeapi.server import FakeApi, Seen
from tests.fakeapi.whole import DYNAMIC, objects_of, reading, recorded_cluster
from tests.patience import PATIENCE, until


async def test_every_kind_is_listed_once_and_watched() -> None:
    fake = recorded_cluster("kubernetes-1.36.4-dra")
    async with reading(fake) as reader:
        async with asyncio.timeout(PATIENCE):
            objects = await reader.complete()
        await until(lambda: fake.open_watches == 4)
        kinds = [seen.path for seen in fake.requests if not seen.is_watch and "namespaces" not in seen.path]
        assert sorted(kinds) == sorted(
            [NODES, "/api/v1/pods", f"{DYNAMIC}/resourceclaims", f"{DYNAMIC}/resourceslices"]
        )
    assert [node.name for node in objects.nodes] == ["gpu-node-1"]
    assert len(objects.claims) == 3
    assert {device.node for device in objects.devices} == {"gpu-node-1"}


async def test_pods_that_have_nothing_to_do_with_gpus_are_not_kept() -> None:
    names = {pod.name for pod in (await objects_of(recorded_cluster())).pods}
    assert "share-1" in names
    assert "probe-b8xdx" not in names


async def test_owners_are_asked_for_once_and_by_their_metadata_alone() -> None:
    fake = recorded_cluster()
    async with reading(fake) as reader:
        await until(lambda: reader.objects().workloads)
        await asyncio.sleep(0.5)
        asked = [seen for seen in fake.requests if "/replicasets/" in seen.path]
    assert len(asked) == 1, "two pods of one ReplicaSet"
    assert asked[0].headers["Accept"].startswith("application/json;as=PartialObjectMetadata;")


async def test_the_same_objects_are_given_until_something_changes() -> None:
    fake = recorded_cluster()
    async with reading(fake) as reader, asyncio.timeout(PATIENCE):
        await reader.complete()
        await until(lambda: reader.objects().workloads)
        before = reader.objects()
        assert reader.objects() is before
        await until(lambda: fake.open_watches)
        item = changed(fake.pods[0], resourceVersion="99999999")
        item["status"] = {"phase": "Succeeded"}
        fake.event("MODIFIED", item)
        after = await reader.changed(before)
    gone = {pod.name for pod in before.pods} - {pod.name for pod in after.pods}
    assert gone == {item["metadata"]["name"]}, "a pod that has ended holds nothing"


async def test_a_cluster_without_dynamic_resources_lacks_nothing() -> None:
    fake = recorded_cluster()
    async with reading(fake) as reader, asyncio.timeout(PATIENCE):
        await reader.complete()
        assert [(part.name, part.up) for part in reader.statuses()] == [("apiserver", True), ("nodes", True)]
        asked = {seen.path for seen in fake.requests if seen.path.endswith("/resourceclaims")}
        assert len(asked) == 3, "every version was tried"


@pytest.mark.parametrize(
    ("path", "part", "rule"),
    [
        (NODES, "nodes", '{apiGroups: [""], resources: [nodes], verbs: ["list", "watch"]}'),
        ("/api/v1/pods", "apiserver", '{apiGroups: [""], resources: [pods], verbs: ["list", "watch"]}'),
        (
            f"{DYNAMIC}/resourceslices",
            "resourceslices",
            '{apiGroups: [resource.k8s.io], resources: [resourceslices], verbs: ["list", "watch"]}',
        ),
    ],
)
async def test_a_missing_right_is_named_with_the_rule_that_gives_it(path: str, part: str, rule: str) -> None:
    fake = recorded_cluster("kubernetes-1.36.4-dra")

    def is_it(seen: Seen) -> bool:
        return seen.path == path

    body = json.dumps({"code": 403, "message": "User cannot list it"}).encode()
    fake.refuse(403, times=9, body=body, wanted=is_it)
    async with reading(fake) as reader, asyncio.timeout(PATIENCE):
        objects = await reader.complete()
        (fault,) = [status.fault for status in reader.statuses() if status.name == part]
        others = [status.up for status in reader.statuses() if status.name != part]
    assert fault is not None and fault.reason == "forbidden"
    assert rule in fault.detail
    assert "User cannot list it" in fault.detail
    assert all(others), "the rest works"
    assert objects.pods or path == "/api/v1/pods"


async def test_what_is_no_node_is_counted_and_left_out() -> None:
    nodes = [*listed(name="api-nodes.json")["items"], {"metadata": {"name": "../x", "uid": "u"}}, {"x": 1}]
    async with (
        reading(FakeApi(lists_of={NODES: nodes}), timing=WatchTiming()) as reader,
        asyncio.timeout(PATIENCE),
    ):
        objects = await reader.complete()
        assert [node.name for node in objects.nodes] == ["gpu-node-1"]
        assert reader.nodes.errors == {"garbage": 2}
