from pathlib import Path

import pytest

from podgpu import library
from podgpu.library import Workload
from tests.fakeapi.recorded import changed, owners
from tests.fakeapi.server import FakeApi
from tests.library.pods import pods

CHAT = "/api/v1/namespaces/team-a/pods/chat-584ddf76fc-6lg2w"
TOKEN = "sesame"
TRAVELLING = ["..", "../../secrets/x", "a/b", "a?watch=1", "a%2fb", "", "A", "a" * 300, "a\n"]


async def test_a_pod_leads_to_its_topmost_owner_with_the_token_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    async with (
        FakeApi(objects=owners() | pods(), token=TOKEN) as api,
        library.WorkloadResolver(api.url, token_file=tmp_path / "token") as resolver,
    ):
        assert await resolver.find("team-b", "nightly-manual-22spb") == Workload(kind="CronJob", name="nightly")
        assert await resolver.find("team-b", "share-1") == Workload(kind="Pod", name="share-1")


async def test_an_owner_is_asked_for_once() -> None:
    async with (
        FakeApi(objects=owners() | pods()) as api,
        library.WorkloadResolver(api.url) as resolver,
    ):
        for _ in range(3):
            await resolver.find("team-a", "chat-584ddf76fc-6lg2w")
        asked = [seen.path for seen in api.requests if "/replicasets/" in seen.path]
    assert len(asked) == 1


async def test_a_pod_made_again_under_its_name_has_its_new_owner() -> None:
    async with (
        FakeApi(objects=owners() | pods()) as api,
        library.WorkloadResolver(api.url) as resolver,
    ):
        before = await resolver.find("team-a", "chat-584ddf76fc-6lg2w")
        api.objects[CHAT] = changed(api.objects[CHAT], uid="another", ownerReferences=[])
        after = await resolver.find("team-a", "chat-584ddf76fc-6lg2w")
    assert before == Workload(kind="Deployment", name="chat")
    assert after == Workload(kind="Pod", name="chat-584ddf76fc-6lg2w")


async def test_a_label_may_name_the_workload() -> None:
    async with (
        FakeApi(objects=owners() | pods()) as api,
        library.WorkloadResolver(api.url, name_labels=["team.example/workload"]) as resolver,
    ):
        api.objects[CHAT] = changed(api.objects[CHAT], labels={"team.example/workload": "assistant"})
        found = await resolver.find("team-a", "chat-584ddf76fc-6lg2w")
    assert found == Workload(kind="Deployment", name="assistant")


async def test_a_missing_pod_has_no_workload() -> None:
    async with FakeApi() as api, library.WorkloadResolver(api.url) as resolver:
        assert await resolver.find("team-a", "gone") is None


@pytest.mark.parametrize("name", TRAVELLING)
async def test_a_name_that_no_pod_can_have_is_not_asked_for(name: str) -> None:
    async with FakeApi() as api, library.WorkloadResolver(api.url) as resolver:
        assert await resolver.find(name, "pod") is None
        assert await resolver.find("team-a", name) is None
    assert api.requests == []


async def test_a_pod_that_may_not_be_read_has_a_reason() -> None:
    async with FakeApi(objects=pods()) as api, library.WorkloadResolver(api.url) as resolver:
        api.refuse(403)
        with pytest.raises(library.ApiFault) as fault:
            await resolver.find("team-a", "chat-584ddf76fc-6lg2w")
    assert fault.value.reason == "forbidden"


def test_outside_of_a_cluster_an_address_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(library.UserError, match="give the API server's url"):
        library.WorkloadResolver()
