"""One view of all nodes' dcgm-exporters: what is asked, and what this node alone could tell is left out."""

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
            await until(lambda: {part.name for part in agent.snapshot().parts} == {"dcgm", "apiserver"})
            await until(lambda: len(fake.requests) > 2)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await agent.close()
    asked = [seen.query for seen in fake.requests]
    assert {query.get("fieldSelector", "") for query in asked} == {"", "status.phase=Running"}
    (part,) = (part for part in agent.snapshot().parts if part.name == "dcgm")
    assert part.fault is not None and "on any node" in part.fault.detail


def test_the_driver_beside_the_pages_of_all_nodes_makes_no_sense() -> None:
    config = load({**ALL, "source": ["nvml+dcgm"]}, {})
    with pytest.raises(UserError, match="goes with --source=dcgm"):
        open_source(config)
