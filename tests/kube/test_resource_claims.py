import asyncio
import copy
import json
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podgpu.kube import resource_claims
from podgpu.kube.api import ApiServer
from podgpu.kube.object_watch import WatchTiming
from podgpu.kube.pod_object import decode_pod, to_pod
from podgpu.kube.resource_claims import MOST_CLAIMS, ResourceClaims
from podgpu.model import ClaimUse, Pod, PodContainer
from podgpu.model.ports import ResourceClaimSource
from tests.fakeapi.recorded import NODE, dynamic_resources, listed
from tests.fakeapi.server import FakeApi, Seen
from tests.patience import PATIENCE, until

ROOT = "/apis/resource.k8s.io"
SLICES = f"{ROOT}/v1/resourceslices"
SHARED = f"{ROOT}/v1/namespaces/team-c/resourceclaims/shared-gpu"
MIGS = f"{ROOT}/v1/namespaces/team-c/resourceclaims/two-migs"
FAST = {"relist": 0.05, "first_pause": 0.02, "longest_pause": 0.05, "forbidden_pause": 0.05}


@asynccontextmanager
async def following(fake: FakeApi, *pods: Pod, **timing: float) -> AsyncIterator[ResourceClaims]:
    api = ApiServer(fake.url, connect_seconds=PATIENCE, answer_seconds=PATIENCE)
    claims = ResourceClaims(api, NODE, timing=WatchTiming(**{**FAST, **timing}))
    part: ResourceClaimSource = claims
    part.follow(pods, ())
    task = asyncio.create_task(part.run())
    try:
        yield claims
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await api.close()


def recorded_pods() -> list[Pod]:
    items = listed("kubernetes-1.36.4-dra")["items"]
    return [to_pod(decode_pod(json.dumps(item).encode())) for item in items]


def using(*names: str, uid: str = "u", phase: str = "Running", namespace: str = "team-c") -> Pod:
    claims = {f"own-{number}": name for number, name in enumerate(names)}
    return Pod(namespace=namespace, name="p", uid=uid, phase=phase, resource_claims=claims)


def is_up(claims: ResourceClaims) -> bool:
    status = claims.status()
    return status is not None and status.up


def reason(claims: ResourceClaims) -> str:
    status = claims.status()
    return status.fault.reason if status and status.fault else ""


def asked(fake: FakeApi) -> list[str]:
    return [seen.path for seen in fake.requests]


async def rounds(fake: FakeApi, number: int = 2) -> None:
    """Wait until everything was asked that often from now on."""
    begin = asked(fake).count(SLICES)
    await until(lambda: asked(fake).count(SLICES) >= begin + number)


async def test_the_recorded_claims_and_devices() -> None:
    async with FakeApi(objects=dynamic_resources()) as fake, following(fake, *recorded_pods()) as claims:
        await until(lambda: is_up(claims))
        given = {
            claim.name: {(each.request, each.driver, each.pool, each.device) for each in claim.devices}
            for claim in claims.claims()
        }
        mine = "gpu.nvidia.com", NODE
        assert given == {
            "shared-gpu": {("gpu", *mine, "gpu-5")},
            "dra-own-g-5mrbx": {("gpu", *mine, "gpu-6")},
            "two-migs": {
                ("left", *mine, "gpu-7-mig-1g18gb-19-0"),
                ("right", *mine, "gpu-7-mig-1g18gb-19-1"),
            },
        }
        shared = next(claim for claim in claims.claims() if claim.name == "shared-gpu")
        names = {pod.uid: pod.name for pod in recorded_pods()}
        assert {names[uid] for uid in shared.pod_uids} == {"dra-shared-1", "dra-shared-2"}
        uuids = {device.device: device.attributes.get("uuid") for device in claims.devices()}
        assert uuids == {
            "gpu-5": "GPU-7f3c9a15-52d4-4b8e-9c60-1a2b3c4d5e65",
            "gpu-6": "GPU-7f3c9a16-52d4-4b8e-9c60-1a2b3c4d5e66",
            "gpu-7-mig-1g18gb-19-0": "MIG-0a1b2c3d-7777-5111-8111-000000000070",
            "gpu-7-mig-1g18gb-19-1": None,
        }
        assert {seen.query.get("fieldSelector") for seen in fake.requests if seen.path == SLICES} == {
            f"spec.nodeName={NODE}"
        }


async def test_nothing_is_asked_until_a_pod_has_a_claim() -> None:
    without = [
        Pod(namespace="team-c", name="p", uid="u", phase="Running"),
        using("shared-gpu", phase="Succeeded"),
    ]
    async with FakeApi(objects=dynamic_resources()) as fake, following(fake, *without) as claims:
        await asyncio.sleep(0.15)
        assert (fake.requests, claims.status(), claims.claims()) == ([], None, ())
        claims.follow([Pod(namespace="team-c", name="p", uid="u", extended_claim="shared-gpu")])
        await until(lambda: is_up(claims))
        assert [claim.name for claim in claims.claims()] == ["shared-gpu"]


async def test_a_claim_whose_name_is_not_known_still_needs_the_devices() -> None:
    """The kubelet's Pods API does not tell the name of a claim that was made from a template."""
    container = PodContainer(name="a", uses=(ClaimUse("g"),))
    pod = Pod(namespace="team-c", name="p", uid="u", containers=(container,))
    async with FakeApi(objects=dynamic_resources()) as fake, following(fake, pod) as claims:
        await until(lambda: is_up(claims))
        assert set(asked(fake)) == {SLICES}
        assert len(claims.devices()) == 4


async def test_another_pod_with_the_same_claim_is_news_at_once() -> None:
    """A claim that is given back and given again, as that of a StatefulSet's pod, has other devices by then."""
    objects = dynamic_resources()
    async with (
        FakeApi(objects=objects) as fake,
        following(fake, using("shared-gpu"), relist=60.0) as claims,
    ):
        await until(lambda: is_up(claims))
        objects[SHARED] = copy.deepcopy(objects[SHARED])
        objects[SHARED]["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-6"
        claims.follow([using("shared-gpu", uid="another")])
        await until(lambda: claims.claims()[0].devices[0].device == "gpu-6")


async def test_claims_that_are_gone_or_no_longer_wanted_are_forgotten() -> None:
    objects = dynamic_resources()
    pods = [using("shared-gpu", uid="a"), using("two-migs", uid="b")]
    async with FakeApi(objects=objects) as fake, following(fake, *pods) as claims:
        await until(lambda: len(claims.claims()) == 2)
        claims.follow(pods[:1])
        await until(lambda: [claim.name for claim in claims.claims()] == ["shared-gpu"])
        del objects[SHARED]
        await until(lambda: claims.claims() == ())
        assert is_up(claims)


async def test_what_is_not_given_yet_or_only_looked_after_is_not_held() -> None:
    objects = copy.deepcopy(dynamic_resources())
    objects[SHARED]["status"] = {}
    for result in objects[MIGS]["status"]["allocation"]["devices"]["results"][:1]:
        result["adminAccess"] = True
    pod = using("shared-gpu", "two-migs")
    async with FakeApi(objects=objects) as fake, following(fake, pod) as claims:
        await until(lambda: is_up(claims))
        (claim,) = claims.claims()
        assert [device.request for device in claim.devices] == ["right"]
        assert [device.request for device in claim.monitored] == ["left"]


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
async def test_an_older_server_is_asked_in_its_own_version(version: str) -> None:
    objects = dynamic_resources(version)
    if version == "v1beta1":
        _sink_attributes(objects[f"{ROOT}/v1beta1/resourceslices"])
    async with FakeApi(objects=objects) as fake, following(fake, using("shared-gpu")) as claims:
        await until(lambda: is_up(claims))
        assert [claim.name for claim in claims.claims()] == ["shared-gpu"]
        uuids = [device.attributes.get("uuid", "")[:4] for device in claims.devices()]
        assert uuids == ["GPU-", "GPU-", "MIG-", ""]
        before = len(fake.requests)
        await until(lambda: len(fake.requests) >= before + 4)
        assert all(f"/{version}/" in path for path in asked(fake)[before:]), "the version is remembered"


def _sink_attributes(slices: Any) -> None:
    for device in slices["items"][0]["spec"]["devices"]:
        device["basic"] = {"attributes": device.pop("attributes"), "capacity": device.pop("capacity")}


async def test_after_an_upgrade_of_the_server_the_newest_version_is_found_again() -> None:
    objects = dynamic_resources("v1beta2")
    async with FakeApi(objects=objects) as fake, following(fake, using("shared-gpu")) as claims:
        await until(lambda: is_up(claims))
        objects.clear()
        objects |= dynamic_resources()
        await rounds(fake)
        await until(lambda: is_up(claims))
        assert [claim.name for claim in claims.claims()] == ["shared-gpu"]


async def test_a_server_that_knows_no_version_says_so() -> None:
    async with FakeApi() as fake, following(fake, using("shared-gpu")) as claims:
        await until(lambda: reason(claims) == "garbage")
        status = claims.status()
        assert status and status.fault and "v1beta1" in status.fault.detail


async def test_forbidden_says_what_to_grant() -> None:
    async with FakeApi(objects=dynamic_resources()) as fake:
        fake.refuse(403, times=3, wanted=lambda seen: seen.path == SHARED)
        async with following(fake, using("shared-gpu", "two-migs")) as claims:
            await until(lambda: reason(claims) == "forbidden")
            status = claims.status()
            assert status and status.fault and not status.up
            assert "get on resourceclaims" in status.fault.detail
            assert "list on resourceslices" in status.fault.detail
            assert [claim.name for claim in claims.claims()] == ["two-migs"], "what may be read is used"
            await until(lambda: is_up(claims))
            assert claims.errors["forbidden"] == 3


async def test_what_was_told_stays_while_the_server_is_away() -> None:
    async with FakeApi(objects=dynamic_resources()) as fake, following(fake, using("shared-gpu")) as claims:
        await until(lambda: is_up(claims))
        await fake.stop()
        await until(lambda: reason(claims) == "unreachable")
        assert [claim.name for claim in claims.claims()] == ["shared-gpu"]
        assert len(claims.devices()) == 4
        status = claims.status()
        assert status and status.age_seconds is not None
        await fake.start()
        await until(lambda: is_up(claims))


async def test_pauses_grow_and_news_does_not_shorten_them() -> None:
    async with FakeApi() as fake:
        fake.refuse(500, times=1000)
        pauses = {"first_pause": 0.05, "longest_pause": 10.0}
        began = time.monotonic()
        async with following(fake, using("shared-gpu"), **pauses) as claims:
            for number in range(40):
                claims.follow([using("shared-gpu", uid=str(number))])
                await asyncio.sleep(0.01)
            await until(lambda: len(fake.requests) > 1)
            assert len(fake.requests) <= 3 + math.log2(1 + (time.monotonic() - began) / 0.05)
            await until(lambda: reason(claims) == "unreachable")


async def test_malformed_objects_are_counted_and_the_rest_counts() -> None:
    objects = dynamic_resources()
    slices = copy.deepcopy(objects[SLICES])
    slices["items"][0]["spec"]["devices"][0]["name"] = "../../etc"
    slices["items"] += [{"spec": 1}, {"spec": {"driver": "gpu.nvidia.com", "pool": {"name": "p"}}}]
    objects[SLICES] = slices
    objects[SHARED] = {"metadata": {"name": "shared-gpu", "namespace": "team-c"}, "status": []}
    pod = using("shared-gpu", "two-migs")
    async with FakeApi(objects=objects) as fake, following(fake, pod, relist=60.0) as claims:
        await until(lambda: is_up(claims))
        assert "gpu-5" not in [device.device for device in claims.devices()]
        assert len(claims.devices()) == 3
        assert [claim.name for claim in claims.claims()] == ["two-migs"]
        assert claims.errors == {"garbage": 3}


async def test_an_answer_about_another_claim_is_none() -> None:
    objects = dynamic_resources()
    objects[SHARED] = objects[MIGS]
    async with FakeApi(objects=objects) as fake, following(fake, using("shared-gpu")) as claims:
        await until(lambda: is_up(claims))
        assert claims.claims() == ()


async def test_names_that_lead_astray_are_not_asked_for() -> None:
    bad = using("../../../api/v1/secrets/x", "a/b", "a?b", "", "UPPER", "shared-gpu")
    elsewhere = using("shared-gpu", uid="v", namespace="team-c/secrets")
    async with FakeApi(objects=dynamic_resources()) as fake, following(fake, bad, elsewhere) as claims:
        await until(lambda: is_up(claims))
        assert set(asked(fake)) == {SLICES, SHARED}


async def test_one_pod_cannot_make_us_ask_for_ever() -> None:
    many = using(*(f"claim-{number}" for number in range(500)), uid="greedy")
    async with (
        FakeApi(objects=dynamic_resources()) as fake,
        following(fake, many, using("shared-gpu"), relist=60.0) as claims,
    ):
        await until(lambda: is_up(claims))
        assert len(fake.requests) == 1 + MOST_CLAIMS + 1
        assert [claim.name for claim in claims.claims()] == ["shared-gpu"]


async def test_slices_come_in_pages_and_only_the_newest_generation_counts() -> None:
    def page(device: str, generation: int, follows: str = "") -> bytes:
        pool = {"name": NODE, "generation": generation, "resourceSliceCount": 1}
        spec = {"driver": "gpu.nvidia.com", "pool": pool, "devices": [{"name": device}]}
        return json.dumps({"metadata": {"continue": follows}, "items": [{"spec": spec}]}).encode()

    def continued(mark: str) -> Any:
        return lambda seen: seen.path == SLICES and seen.query.get("continue", "") == mark

    async with FakeApi(objects=dynamic_resources()) as fake:
        for mark, body in {"": page("old", 6, "b"), "b": page("new", 7, "c"), "c": page("more", 7)}.items():
            fake.refuse(200, body=body, wanted=continued(mark))
        async with following(fake, using("shared-gpu"), relist=60.0) as claims:
            await until(lambda: is_up(claims))
            assert [device.device for device in claims.devices()] == ["new", "more"]


async def test_a_list_without_end_is_given_up() -> None:
    async with FakeApi(objects=dynamic_resources()) as fake:
        endless = json.dumps({"metadata": {"continue": "more"}, "items": []}).encode()
        fake.refuse(200, times=1000, body=endless, wanted=_is_list)
        async with following(fake, using("shared-gpu")) as claims:
            await until(lambda: reason(claims) == "too_large")


async def test_pages_without_end_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_claims, "MOST_BYTES", 1 << 20)
    async with FakeApi(objects=dynamic_resources()) as fake:
        page = {"metadata": {"continue": "more"}, "items": [{"spec": {"driver": "x" * (300 << 10)}}]}
        fake.refuse(200, times=1000, body=json.dumps(page).encode(), wanted=_is_list)
        async with following(fake, using("shared-gpu")) as claims:
            await until(lambda: reason(claims) == "too_large")
            assert len([seen for seen in fake.requests if seen.path == SLICES]) == 4


def _is_list(seen: Seen) -> bool:
    return seen.path == SLICES


async def test_the_same_tuples_are_given_until_something_changes() -> None:
    objects = copy.deepcopy(dynamic_resources())
    async with FakeApi(objects=objects) as fake, following(fake, using("shared-gpu", "two-migs")) as claims:
        await until(lambda: is_up(claims) and len(claims.claims()) == 2)
        listed_before, devices_before = claims.claims(), claims.devices()
        assert devices_before
        await rounds(fake, 3)
        assert claims.claims() is listed_before
        assert claims.devices() is devices_before
        objects[SHARED]["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-0"
        await until(lambda: claims.claims() is not listed_before)
        assert {claim.devices[0].device for claim in claims.claims() if claim.name == "shared-gpu"} == {"gpu-0"}
        assert claims.devices() is devices_before
        del objects[SLICES]["items"][0]
        await until(lambda: claims.devices() is not devices_before)
        assert len(claims.devices()) < len(devices_before)
