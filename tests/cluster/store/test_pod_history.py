"""A pod's past, over a real socket."""

import pytest

from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.pod_history import METRICS, StoreHistory, last_uses
from podgpu.errors import UserError
from podgpu.model import Moment
from tests.cluster.store.stub import StubStore, error, matrix, serving, vector


def once(series: str, *labels: str) -> str:
    for label in labels:
        series = f'label_replace({series}, "{label}", "$1", "exported_{label}", "(.+)")'
    return f"max by (cluster, gpu, uuid, mig, {', '.join(labels)}) ({series})"


def of_tenant(series: str) -> str:
    return once(series, "node", "namespace", "pod", "container")


async def test_a_pod_is_asked_for_by_both_names_of_its_labels_over_the_whole_time() -> None:
    async with serving(StubStore(answer=matrix(({}, [(1.0, "0.5"), (361.0, "0.25")])))) as stub:
        history = StoreHistory(Store(StoreOptions(url=stub.url)))
        found = await history.of("ml", 'a"b', 86400)
        await history.close()
    assert found == {name: [(1.0, 0.5), (361.0, 0.25)] for name in METRICS}
    metric = METRICS["busy"]
    kept, renamed = (
        of_tenant(f'{metric}{{{prefix}namespace="ml",{prefix}pod="a\\"b"}}') for prefix in ("", "exported_")
    )
    assert stub.asked[0]["query"] == f"(sum({kept}) or sum({renamed}))[86400s:360s]"


async def test_a_store_that_knows_nothing_of_it_gives_no_points() -> None:
    async with serving(StubStore(answer=matrix())) as stub:
        history = StoreHistory(Store(StoreOptions(url=stub.url)))
        assert await history.of("ml", "gone", 3600) == {name: [] for name in METRICS}
        await history.close()


async def test_a_store_that_fails_is_a_user_error_with_its_reason() -> None:
    async with serving(StubStore(status=422, answer=error("execution", "too many samples"))) as stub:
        history = StoreHistory(Store(StoreOptions(url=stub.url)))
        with pytest.raises(UserError, match="store_limited"):
            await history.of("ml", "train", 3600)
        await history.close()


async def test_a_timeline_is_asked_for_by_namespace_and_of_all_gpus() -> None:
    answer = matrix(({"namespace": "ml"}, [(360.0, "2"), (720.0, "0")]))
    async with serving(StubStore(answer=answer)) as stub:
        history = StoreHistory(Store(StoreOptions(url=stub.url)))
        found = await history.moments(86400, 360)
        await history.close()
    assert found == [
        Moment(at=0.0, gpus=2, seen_gpus=2, busy_gpus=2.0, namespaces={"ml": 2.0}),
        Moment(at=360.0, gpus=0, seen_gpus=0, busy_gpus=0.0),
    ]
    assert [form["query"] for form in stub.asked] == [
        f"({summed})[86400s:360s]"
        for summed in (
            f"sum({once('rate(podgpu_gpu_booked_busy_seconds_total[360s])', 'node')})",
            f"count({once('podgpu_gpu_up', 'node')})",
            f"sum({once('podgpu_gpu_up', 'node')})",
            f"sum by (namespace)({of_tenant('rate(podgpu_container_busy_seconds_total[360s])')})",
        )
    ]


async def test_the_last_use_is_asked_for_by_both_names_of_the_label() -> None:
    labels = {"node": "a", "uuid": "GPU-1", "pod": "podgpu-x", "exported_pod": "train", "exported_namespace": "ml"}
    async with serving(StubStore(answer=vector((labels, "1700")))) as stub:
        store = Store(StoreOptions(url=stub.url))
        found = await last_uses(store, {"train"}, 3600.0, 2000.0)
        await store.close()
    assert [(key.namespace, key.pod, used_at) for key, used_at in found.items()] == [("ml", "train", 1700.0)]
    assert stub.asked[0]["query"] == (
        'max_over_time(podgpu_container_last_active_timestamp_seconds{pod=~"train"}[3600s]) or '
        'max_over_time(podgpu_container_last_active_timestamp_seconds{exported_pod=~"train"}[3600s])'
    )


async def test_a_timeline_of_a_store_that_fails_is_a_user_error() -> None:
    async with serving(StubStore(status=422, answer=error("execution", "too many samples"))) as stub:
        history = StoreHistory(Store(StoreOptions(url=stub.url)))
        with pytest.raises(UserError, match="store_limited"):
            await history.moments(3600, 30)
        await history.close()
