"""A pod's past, over a real socket."""

import pytest

from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.pod_history import METRICS, StoreHistory
from podgpu.errors import UserError
from podgpu.model import Moment
from tests.cluster.store.stub import StubStore, error, matrix, serving


async def test_a_pod_is_asked_for_by_both_names_of_its_labels_over_the_whole_time() -> None:
    async with serving(StubStore(answer=matrix(({}, [(1.0, "0.5"), (361.0, "0.25")])))) as stub:
        history = StoreHistory(Store(StoreOptions(url=stub.url)))
        found = await history.of("ml", 'a"b', 86400)
        await history.close()
    assert found == {name: [(1.0, 0.5), (361.0, 0.25)] for name in METRICS}
    metric = METRICS["busy"]
    assert stub.asked[0]["query"] == (
        f'(sum({metric}{{namespace="ml",pod="a\\"b"}}) or '
        f'sum({metric}{{exported_namespace="ml",exported_pod="a\\"b"}}))[86400s:360s]'
    )


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
    answer = matrix(({"namespace": "podgpu", "exported_namespace": "ml"}, [(360.0, "2"), (720.0, "0")]))
    async with serving(StubStore(answer=answer)) as stub:
        history = StoreHistory(Store(StoreOptions(url=stub.url)))
        found = await history.moments(86400, 360)
        await history.close()
    assert found == [
        Moment(at=0.0, gpus=2, seen_gpus=2, busy_gpus=2.0, namespaces={"ml": 2.0}),
        Moment(at=360.0, gpus=0, seen_gpus=0, busy_gpus=0.0),
    ]
    assert [form["query"] for form in stub.asked] == [
        "(sum(rate(podgpu_gpu_booked_busy_seconds_total[360s])))[86400s:360s]",
        "(count(podgpu_gpu_up))[86400s:360s]",
        "(sum(podgpu_gpu_up))[86400s:360s]",
        "(sum by (namespace, exported_namespace)(rate(podgpu_container_busy_seconds_total[360s])))[86400s:360s]",
    ]


async def test_a_timeline_of_a_store_that_fails_is_a_user_error() -> None:
    async with serving(StubStore(status=422, answer=error("execution", "too many samples"))) as stub:
        history = StoreHistory(Store(StoreOptions(url=stub.url)))
        with pytest.raises(UserError, match="store_limited"):
            await history.moments(3600, 30)
        await history.close()
