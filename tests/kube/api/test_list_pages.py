from typing import Any

import msgspec
import pytest

from podgpu.kube.api import ApiFault, ApiServer, ListPage, list_pages
from tests.fakeapi.recorded import pod
from tests.fakeapi.server import PODS, FakeApi


class Metadata(msgspec.Struct):
    name: str


class Item(msgspec.Struct):
    metadata: Metadata


async def names(api: ApiServer, **options: Any) -> list[list[str]]:
    found = list_pages(api, PODS, ListPage[Item], {"fieldSelector": "spec.nodeName=n"}, **options)
    return [[item.metadata.name for item in page.items or ()] async for page in found]


def fake_with(count: int) -> FakeApi:
    return FakeApi(pods=[pod(f"p{number}", f"uid-{number}") for number in range(count)], version=7)


async def test_pages_follow_each_other_and_only_the_first_says_how_fresh() -> None:
    async with fake_with(5) as fake:
        api = ApiServer(fake.url)
        found = await names(api, size=2, most=3, freshness={"resourceVersion": "0"})
        await api.close()
    assert found == [["p0", "p1"], ["p2", "p3"], ["p4"]]
    queries = [dict(seen.query) for seen in fake.lists]
    assert queries == [
        {"fieldSelector": "spec.nodeName=n", "limit": "2", "resourceVersion": "0"},
        {"fieldSelector": "spec.nodeName=n", "limit": "2", "continue": "2"},
        {"fieldSelector": "spec.nodeName=n", "limit": "2", "continue": "4"},
    ]


async def test_a_list_that_does_not_end_is_refused() -> None:
    async with fake_with(5) as fake:
        api = ApiServer(fake.url)
        with pytest.raises(ApiFault) as caught:
            await names(api, size=2, most=2)
        await api.close()
    assert (caught.value.reason, caught.value.detail) == ("too_large", "/api/v1/pods: more than 2 pages of 2")
    assert len(fake.lists) == 2


async def test_an_empty_list_is_one_page() -> None:
    async with fake_with(0) as fake:
        api = ApiServer(fake.url)
        assert await names(api, size=2, most=2) == [[]]
        await api.close()


async def test_an_answer_that_is_no_list_is_not_an_empty_list() -> None:
    async with FakeApi() as fake:
        fake.refuse(200, body=b"{}")
        api = ApiServer(fake.url)
        with pytest.raises(ApiFault, match="garbage"):
            await names(api, size=2, most=2)
        await api.close()
