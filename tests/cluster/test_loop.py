"""The loop over many agents, of which some hang, refuse, talk nonsense or answer for another node."""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from podgpu.cluster.agent_reader import AgentReader, DirectClient
from podgpu.cluster.discovery import Discovered, NodeTarget, StaticDiscovery
from podgpu.cluster.loop import ClusterLoop
from podgpu.errors import UserError
from podgpu.model import Cluster, Snapshot, Written
from podgpu.supervise import end
from tests.cluster.fleet import Fleet, plain
from tests.cluster.nodes import document, node_name
from tests.patience import PATIENCE, LoopClock, settle, until
from tests.ports import quiet_port
from tests.tree import SETTINGS

SIZE = int(os.environ.get("PODGPU_TEST_FLEET", "100"))  # `make faults` takes a thousand
TENTH, HUNDREDTH = SIZE // 10, SIZE // 100


class Pods:
    """Agents as the API server lists them: the node of each is known."""

    def __init__(self, targets: tuple[NodeTarget, ...]) -> None:
        self.targets = targets

    async def find(self) -> Discovered:
        return Discovered(self.targets)

    async def close(self) -> None:
        """Nothing is open."""


class Watched:
    def __init__(self, discovery: Pods | StaticDiscovery, timeout: float = PATIENCE) -> None:
        self.client, turn = DirectClient(timeout=timeout), asyncio.Lock()
        self.loop = ClusterLoop(
            discovery,
            lambda target: AgentReader(self.client, target.urls[0], target.node, turn=turn),
            interval=15.0,
            settings=SETTINGS,
        )

    async def __aenter__(self) -> ClusterLoop:
        return self.loop

    async def __aexit__(self, *_: object) -> None:
        await self.loop.close()
        await self.client.close()


def closed_address() -> str:
    return f"http://127.0.0.1:{quiet_port()}"


def placed(urls: list[str]) -> tuple[NodeTarget, ...]:
    return tuple(NodeTarget("agent", (url,), node_name(number)) for number, url in enumerate(urls))


def reasons(cluster: Cluster) -> Counter[str]:
    return Counter(node.reason or node.state for node in cluster.nodes)


async def test_bad_agents_are_named_with_their_reasons_and_the_others_are_fresh() -> None:
    clock = LoopClock()
    tricks: dict[int, str | bytes] = dict.fromkeys(range(SIZE - TENTH, SIZE), "hang")
    refusing = range(TENTH, 2 * TENTH)
    tricks |= dict.fromkeys(range(2 * TENTH, 3 * TENTH), plain(b"nonsense"))
    liars = range(3 * TENTH, 3 * TENTH + HUNDREDTH)
    tricks |= {number: plain(document(number + 1)) for number in liars}
    async with Fleet(SIZE, document, tricks) as fleet:
        urls, nobody = fleet.urls, closed_address()
        targets = placed([nobody if number in refusing else url for number, url in enumerate(urls)])
        async with Watched(Pods(targets)) as loop:
            round_ = asyncio.create_task(loop.round())
            await until(lambda: reasons(loop.cluster)["starting"] == TENTH)  # only those that hang are left
            while not round_.done():  # so many are asked at a time
                clock.set_ahead(PATIENCE)
                await settle()
            found = loop.cluster
    assert reasons(found) == {
        "timeout": TENTH,
        "unreachable": TENTH,
        "garbage": TENTH,
        "wrong_node": HUNDREDTH,
        "fresh": SIZE - 3 * TENTH - HUNDREDTH,
    }
    assert [node.name for node in found.nodes] == [node_name(number) for number in range(SIZE)]
    assert all(node.snapshot is None or node.snapshot.node == node.name for node in found.nodes)
    assert all(node.detail for node in found.nodes if node.state == "failed")


async def test_the_fresh_ones_are_published_while_others_hang() -> None:
    async with (
        Fleet(3, document, {1: "hang"}) as fleet,
        Watched(Pods(placed(fleet.urls)), 2 * PATIENCE) as loop,
    ):
        round_ = asyncio.create_task(loop.round())
        async with asyncio.timeout(PATIENCE):
            cluster = await loop.changed(loop.cluster)
        assert reasons(cluster) == {"fresh": 2, "starting": 1} and not loop.ready
        round_.cancel()


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("eager_threads")
async def test_another_thread_that_sees_the_loop_ready_sees_what_it_read() -> None:
    """A command waits in a thread of its own. It would say that the store gave nothing."""

    def first_seen(loop: ClusterLoop) -> Counter[str]:
        while not loop.ready:
            time.sleep(0)
        return reasons(loop.cluster)

    async with Fleet(SIZE, document) as fleet, Watched(Pods(placed(fleet.urls))) as loop:
        seen = asyncio.create_task(asyncio.to_thread(first_seen, loop))
        await loop.round()
        assert await seen == {"fresh": SIZE}


async def test_a_node_that_has_not_changed_is_the_same_object() -> None:
    async with Fleet(3, document) as fleet, Watched(Pods(placed(fleet.urls))) as loop:
        await loop.round()
        before = loop.cluster
        await loop.round()
        assert loop.cluster is before and loop.ready
        fleet.change([1])
        await loop.round()
        assert [a is b for a, b in zip(before.nodes, loop.cluster.nodes, strict=True)] == [True, False, True]


def stand_in(url: str, number: int) -> NodeTarget:
    return NodeTarget("store", (url,), node_name(number), is_fallback=True)


async def test_who_stands_in_is_shown_only_where_the_agent_cannot_be_read() -> None:
    """The agent's pod may be newer than the target that stands in for it."""
    async with Fleet(2, document) as fleet:
        agent, other = fleet.urls
        pods = Pods((stand_in(agent, 0), stand_in(other, 1)))
        async with Watched(pods) as loop:
            await loop.round()
            assert [node.origin for node in loop.cluster.nodes] == ["store", "store"]
            pods.targets = (
                NodeTarget("agent", (agent,), node_name(0)),
                NodeTarget("agent", (closed_address(),), node_name(1)),
                *pods.targets,
            )
            await loop.round()
            shown = [(node.name, node.state, node.origin) for node in loop.cluster.nodes]
            assert (await loop.full(node_name(1))).node == node_name(1)
    assert shown == [(node_name(0), "fresh", "agent"), (node_name(1), "fresh", "store")]


async def test_a_node_that_is_gone_leaves_and_its_connection_is_closed() -> None:
    async with Fleet(2, document) as fleet:
        discovery = Pods(placed(fleet.urls))
        async with Watched(discovery) as loop:
            await loop.round()
            discovery.targets = discovery.targets[:1]
            await loop.round()
            assert [node.name for node in loop.cluster.nodes] == [node_name(0)]
            await until(lambda: len(fleet.wires) == 1)


async def test_agents_at_given_addresses_are_known_by_what_they_say() -> None:
    async with Fleet(2, document) as fleet, Watched(StaticDiscovery([*fleet.urls, closed_address()])) as loop:
        await loop.round()
        first, _, _ = loop.cluster.nodes
        assert [node.state for node in loop.cluster.nodes] == ["failed", "fresh", "fresh"]
        assert first.name.startswith("127.0.0.1:")


async def test_two_agents_of_one_node_are_not_added_up() -> None:
    same = plain(document(0))
    async with Fleet(2, document, {1: same}) as fleet, Watched(StaticDiscovery(fleet.urls)) as loop:
        await loop.round()
        assert reasons(loop.cluster) == {"conflict": 3}, "the node, and both who claim it"
        assert all(node.snapshot is None for node in loop.cluster.nodes)
        assert all(url.removeprefix("http://") in loop.cluster.nodes[0].detail for url in fleet.urls)
        with pytest.raises(UserError, match="is reported by"):
            await loop.full(node_name(0))


async def test_an_agent_that_kubernetes_vouches_for_keeps_its_node_wherever_it_is_listed() -> None:
    same = plain(document(0))
    async with Fleet(2, document, {1: same}) as fleet:
        thief, own = (
            NodeTarget("agent", (fleet.urls[1],)),
            NodeTarget("agent", (fleet.urls[0],), node_name(0)),
        )
        async with Watched(Pods((thief, own))) as loop:
            await loop.round()
            assert reasons(loop.cluster) == {"fresh": 1, "wrong_node": 1}
            (liar,) = (node for node in loop.cluster.nodes if node.state == "failed")
            assert liar.snapshot is None and "which has an agent of its own" in liar.detail
            assert (await loop.full(node_name(0))).node == node_name(0)


class Hanging:
    """A reader that never answers."""

    origin = "agent"
    written: Written | None = None

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self._never = asyncio.Event()

    async def read(self) -> Snapshot:
        self.begun.set()
        await self._never.wait()
        raise AssertionError

    async def full(self) -> Snapshot:
        return await self.read()

    async def close(self) -> None: ...


async def test_a_stop_in_the_midst_of_a_round_leaves_no_task_behind() -> None:
    """What goes on after the stop is cancelled when the process ends, and complains of it in the log."""
    reader, before = Hanging(), asyncio.all_tasks()
    loop = ClusterLoop(StaticDiscovery(["http://a"]), lambda _: reader, interval=15.0, settings=SETTINGS)
    running = loop.supervisor.supervise("nodes", loop.run)
    async with asyncio.timeout(PATIENCE):
        await reader.begun.wait()
    await end(running)
    await loop.close()
    assert asyncio.all_tasks() == before


class Broken:
    """A discovery that fails for as long as it is told to."""

    def __init__(self) -> None:
        self.is_broken = True

    async def find(self) -> Discovered:
        if self.is_broken:
            raise OverflowError("cannot convert float infinity to integer")
        return Discovered(())

    async def close(self) -> None: ...


async def test_a_round_that_fails_is_a_part_that_is_down_and_comes_back() -> None:
    discovery = Broken()
    loop = ClusterLoop(discovery, lambda _: Hanging(), interval=0.01, settings=SETTINGS)
    loop.supervisor.first_pause, loop.supervisor.longest_pause = 0.001, 0.01
    running = loop.supervisor.supervise("nodes", loop.run)
    try:
        async with asyncio.timeout(PATIENCE):
            while not any(error.count >= 10 for error in loop.cluster.errors):
                await loop.changed(loop.cluster)
            assert [(part.name, part.up) for part in loop.cluster.parts] == [("nodes", False)]
            discovery.is_broken = False
            while not loop.ready or not all(part.up for part in loop.cluster.parts):
                await loop.changed(loop.cluster)
    finally:
        await end(running)
        await loop.close()
