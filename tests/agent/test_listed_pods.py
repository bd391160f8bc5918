"""A claim lives as long as something that works still knows its pod."""

import asyncio
from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.agent.inventory import BELIEVED_SECONDS, InventoryCollector, NodeClaims
from podgpu.kube.kubelet.podresources import PodResourceLists
from podgpu.model import Allocation, Claim, Device, Gpu, PartStatus, Pod

CARDS = tuple(Device(gpu=Gpu(uuid=f"GPU-{number}", index=number)) for number in range(4))


class Node:
    """Pods that come and go, a kubelet that lists their cards, and a watch that has their UIDs; both may fail."""

    name = "podresources"

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self.now = 0.0
        self.kubelet_works = self.watch_works = True
        self.cards: dict[str, str] = {}  # by UID, also those of pods that are gone
        self._names: dict[str, str] = {}  # from the name to the UID of the pod that lives
        self._watched: tuple[Pod, ...] = ()
        self._lists, self._answered_at = PodResourceLists(), 0.0
        self._serial = count(1)
        self._stock = InventoryCollector(patience=60.0, allocations=self, clock=lambda: self.now)

    @property
    def alive(self) -> set[str]:
        return set(self._names.values())

    async def read(self) -> PodResourceLists:
        if self.kubelet_works:
            rows = tuple(
                Allocation(
                    namespace="ns", pod=name, container="main", resource="nvidia.com/gpu", device_id=self.cards[uid]
                )
                for name, uid in sorted(self._names.items())
            )
            self._lists, self._answered_at = PodResourceLists(devices=rows), self.now
        return self._lists

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=self.kubelet_works, age_seconds=self.now - self._answered_at)

    def come(self, name: str, card: int) -> None:
        uid = self._names[name] = f"uid-{next(self._serial)}"
        self.cards[uid] = CARDS[card].gpu.uuid

    def go(self, name: str) -> None:
        self._names.pop(name, None)

    async def cycle(self, seconds: float = 1.0) -> tuple[Claim, ...]:
        self.now += seconds
        if self.watch_works:
            self._watched = tuple(
                Pod(namespace="ns", name=name, uid=uid, phase="Running") for name, uid in sorted(self._names.items())
            )
        watches = [self._watched] if self.watch_works else []
        return NodeClaims(await self._stock.take(CARDS, self._watched, watches=watches)).claims


def pods(claims: tuple[Claim, ...]) -> set[str]:
    return {claim.container.pod for claim in claims}


# Pods that live at the same time have different cards.
STEPS = st.one_of(
    st.tuples(st.just("come"), st.just("a"), st.integers(0, 1)),
    st.tuples(st.just("come"), st.just("b"), st.integers(2, 3)),
    st.tuples(st.just("go"), st.sampled_from("ab")),
    st.tuples(st.just("kubelet"), st.booleans()),
    st.tuples(st.just("watch"), st.booleans()),
)
STORIES = st.lists(st.lists(STEPS, max_size=3), max_size=12)


async def play(story: list[list[tuple[object, ...]]]) -> None:
    node = Node()
    for steps in story:
        for step in steps:
            match step:
                case ("come", str(name), int(card)):
                    node.come(name, card)
                case ("go", str(name)):
                    node.go(name)
                case ("kubelet", bool(works)):
                    node.kubelet_works = works
                case ("watch", bool(works)):
                    node.watch_works = works
        claims = await node.cycle()
        if node.watch_works:
            assert {claim.container.pod_uid for claim in claims} <= node.alive
            assert all(claim.gpu == node.cards[claim.container.pod_uid] for claim in claims)
            if node.kubelet_works:
                assert {claim.container.pod_uid for claim in claims} == node.alive


@given(STORIES)
def test_no_claim_is_that_of_a_pod_which_a_working_watch_lacks(story: list[list[tuple[object, ...]]]) -> None:
    asyncio.run(play(story))


async def test_a_pod_that_a_watch_still_has_keeps_its_card_however_long_the_kubelet_is_away() -> None:
    node = Node()
    node.come("a", 0)
    await node.cycle()
    node.kubelet_works = False
    assert pods(await node.cycle(BELIEVED_SECONDS + 1)) == {"a"}
    node.watch_works = False
    assert pods(await node.cycle()) == set()


@pytest.mark.parametrize("watch_works", [True, False])
async def test_the_next_pod_of_a_name_has_a_card_as_soon_as_the_kubelet_lists_it(watch_works: bool) -> None:
    node = Node()
    node.come("a", 0)
    await node.cycle()
    node.kubelet_works = False
    node.come("a", 1)
    assert pods(await node.cycle()) == set()
    node.watch_works = watch_works
    assert pods(await node.cycle()) == set()
    node.kubelet_works = True
    assert [claim.gpu for claim in await node.cycle()] == ["GPU-1"]
