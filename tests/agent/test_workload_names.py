"""Workloads are asked for in the background: no cycle waits long for them."""

import asyncio
from collections.abc import Iterable

import pytest

from podgpu.agent import owners
from podgpu.agent.owners import WorkloadNames
from podgpu.model import Pod, Workload
from tests.patience import PATIENCE

FAR_TOO_LONG = 3600.0
POD = Pod(namespace="ns", name="p", uid="uid")


class Asked:
    """An API server that answers once it is told to."""

    name = "workloads"

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()

    async def resolve(self, owners: Iterable[Pod]) -> dict[str, Workload]:
        await self.may_answer.wait()
        return {pod.uid: Workload(kind="Job", name="j") for pod in owners}


@pytest.mark.parametrize(("most", "patience"), [(0.01, FAR_TOO_LONG), (FAR_TOO_LONG, 0.01)])
async def test_a_cycle_waits_no_longer_than_its_patience_and_never_long(
    monkeypatch: pytest.MonkeyPatch, most: float, patience: float
) -> None:
    monkeypatch.setattr(owners, "SECONDS", most)
    asked = Asked()
    names = WorkloadNames(asked, patience)
    async with asyncio.timeout(PATIENCE):
        assert await names.of([POD]) == {}
        asked.may_answer.set()
        while not await names.of([POD]):
            pass
    assert await names.of([POD]) == {"uid": Workload(kind="Job", name="j")}
    assert names.status is None
    await names.close()
