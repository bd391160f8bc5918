"""Whoever uses a card: nobody is accused while something that its pod was given is not understood."""

import asyncio
import tempfile
from itertools import count
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.agent.attribution import Attribution
from podgpu.host.procfs import Procfs
from podgpu.insight import InsightSettings, conclude
from podgpu.insight.without_claim import NOT_GIVEN
from podgpu.model import Device, Fault, Gpu, Pod, PodContainer, Process, Snapshot
from tests.agent.stage import write_proc
from tests.agent.test_attribution import Kubelet, Pods

CARDS = ("GPU-1", "GPU-2", "GPU-3")
ODD = "slice-of-something"
NAMES = ("a", "b", "c")
CONTAINERS = ("main", "helper")
# What each pod was given, the containers of which pods have a process on which cards, and whether a card is silent.
GIVEN = st.tuples(*[st.sampled_from([None, ODD, *CARDS])] * len(NAMES))
USES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(CONTAINERS), st.sampled_from(CARDS[:2])), unique=True, max_size=6
)


def uid(name: str) -> str:
    return f"{name * 8}-2222-4333-8444-555555555555"


def container_id(name: str, container: str) -> str:
    return f"{NAMES.index(name)}{CONTAINERS.index(container)}".rjust(64, "0")


def pod(name: str) -> Pod:
    containers = [PodContainer(name=each, container_id=container_id(name, each), running=True) for each in CONTAINERS]
    return Pod(namespace="ns", name=name, uid=uid(name), phase="Running", containers=tuple(containers))


async def accused(
    folder: Path, allocated: dict[str, str], uses: list[tuple[str, str, str]], *, is_silent: bool
) -> set[tuple[str, str]]:
    """Return the pods that are said to use a card without an allocation, with the card."""
    running: dict[str, list[Process]] = {card: [] for card in CARDS}
    for pid, (name, container, card) in zip(count(100), uses, strict=False):
        write_proc(folder, pid, f"0::/kubepods/pod{uid(name)}/{container_id(name, container)}\n")
        running[card].append(Process(pid=pid, kinds=("compute",), memory_bytes=1))
    devices = [
        Device(gpu=Gpu(uuid=card, index=number), at=1000.0, processes=tuple(running[card]))
        for number, card in enumerate(CARDS)
    ]
    if is_silent:
        devices[-1] = replace(devices[-1], fault=Fault(reason="lost"))
    attribution = Attribution(
        interval=5.0,
        allocations=Kubelet(**allocated),
        pod_sources=[Pods("apiserver", *map(pod, NAMES))],
        processes=Procfs(folder),
    )
    found = await attribution.attribute(devices, 1000.0)
    await attribution.close()
    snapshot = Snapshot(
        node="n",
        taken_at=1000.0,
        interval_seconds=5.0,
        version="1",
        cards=found.cards,
        pods=found.pods,
        unclaimed=found.unclaimed,
        parts=found.parts,
    )
    return {
        (tenant.container.pod, card.gpu.uuid)
        for card in conclude(snapshot, InsightSettings(idle_after=600.0)).cards
        for tenant in card.tenants
        if tenant.without_claim == NOT_GIVEN
    }


@given(GIVEN, USES, st.booleans())
def test_who_is_accused_was_given_something_else_or_nothing_and_all_of_it_is_understood(
    ids: tuple[str | None, ...], uses: list[tuple[str, str, str]], is_silent: bool
) -> None:
    allocated = {name: device_id for name, device_id in zip(NAMES, ids, strict=True) if device_id}
    is_disputed = len(set(allocated.values())) < len(allocated)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(accused(Path(folder), allocated, uses, is_silent=is_silent))
    assert all(allocated.get(name) not in (ODD, card) for name, card in found)
    if not is_disputed:
        users = {(name, card) for name, _, card in uses}
        assert found == {(name, card) for name, card in users if allocated.get(name) not in (ODD, card)}
