"""A view of the dcgm-exporters of all nodes: which pods are listed, and that nothing of this node alone is used."""

import asyncio

import pytest

from podgpu.assembly.agent import open_agent
from podgpu.assembly.source import open_source
from podgpu.config.precedence import load
from podgpu.errors import UserError
from tests.fakeapi.patience import until
from tests.fakeapi.recorded import listed
from tests.fakeapi.server import FakeApi

ALL = {"source": ["dcgm"], "dcgm_nodes": ["all"], "interval": ["100ms"]}


async def test_pods_of_all_nodes_are_asked_for_and_no_kubelet() -> None:
    async with FakeApi(pods=listed()["items"], version=5300) as fake:
        agent = open_agent(load({**ALL, "kube_api": [fake.url]}, {}))
        running = asyncio.create_task(agent.run())
        try:
            await until(lambda: {part.name for part in agent.snapshot.parts} == {"dcgm", "apiserver"})
            await until(lambda: len(fake.requests) > 2)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await agent.close()
    asked = [seen.query for seen in fake.requests]
    assert {query.get("fieldSelector", "") for query in asked} == {"", "status.phase=Running"}
    (part,) = (part for part in agent.snapshot.parts if part.name == "dcgm")
    assert part.fault is not None and "on any node" in part.fault.detail


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": ["nvml"]}, "goes with --source=dcgm"),
        ({"source": ["nvml+dcgm"]}, "goes with --source=dcgm"),
        ({"dcgm_url": ["http://127.0.0.1:9400/metrics"]}, "leave out --dcgm.url"),
        ({"kube_api": ["off"]}, "give its address with --kube.api=URL"),
    ],
)
def test_what_makes_no_sense_together_is_an_error_that_says_what_to_do(
    changes: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        open_source(load({**ALL, **changes}, {}))
