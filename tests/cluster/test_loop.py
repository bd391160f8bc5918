"""The loop over many agents, of which some hang, refuse, talk nonsense or answer for another node."""

import asyncio
import os
import socket
from collections import Counter

from podgpu.cluster.agents.agent import AgentReader
from podgpu.cluster.agents.client import Client
from podgpu.cluster.loop import ClusterLoop
from podgpu.cluster.survey import Found, GivenAgents, Place
from podgpu.model import Cluster
from tests.cluster.fleet import Fleet, plain
from tests.cluster.nodes import document, node_name
from tests.tree import TERMS

SIZE = int(os.environ.get("PODGPU_TEST_FLEET", "100"))  # `make faults` takes a thousand
TENTH, HUNDREDTH = SIZE // 10, SIZE // 100


class Pods:
    """Agents as the API server lists them: the node of each is known."""

    def __init__(self, places: tuple[Place, ...]) -> None:
        self.places = places

    async def find(self) -> Found:
        return Found(self.places)

    async def close(self) -> None:
        """Nothing is open."""


class Watched:
    def __init__(self, survey: Pods | GivenAgents, timeout: float = 5.0) -> None:
        self.client, turn = Client(timeout=timeout), asyncio.Lock()
        self.loop = ClusterLoop(
            survey,
            lambda place: AgentReader(self.client, place.urls[0], place.node, turn=turn),
            interval=15.0,
            terms=TERMS,
        )

    async def __aenter__(self) -> ClusterLoop:
        return self.loop

    async def __aexit__(self, *_: object) -> None:
        await self.loop.close()
        await self.client.close()


def closed_address() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


def placed(urls: list[str]) -> tuple[Place, ...]:
    return tuple(Place("agent", (url,), node_name(number)) for number, url in enumerate(urls))


def reasons(cluster: Cluster) -> Counter[str]:
    return Counter(node.reason or node.state for node in cluster.nodes)


async def test_bad_agents_are_named_with_their_reasons_and_the_others_are_fresh() -> None:
    tricks: dict[int, str | bytes] = dict.fromkeys(range(TENTH), "hang")
    refusing = range(TENTH, 2 * TENTH)
    tricks |= dict.fromkeys(range(2 * TENTH, 3 * TENTH), plain(b"nonsense"))
    liars = range(3 * TENTH, 3 * TENTH + HUNDREDTH)
    tricks |= {number: plain(document(number + 1)) for number in liars}
    async with Fleet(SIZE, document, tricks) as fleet:
        urls, nobody = fleet.urls, closed_address()
        places = placed([nobody if number in refusing else url for number, url in enumerate(urls)])
        async with Watched(Pods(places), timeout=0.5) as loop:
            await loop.round()
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
    async with Fleet(3, document, {1: "hang"}) as fleet, Watched(Pods(placed(fleet.urls)), 2.0) as loop:
        round_ = asyncio.create_task(loop.round())
        async with asyncio.timeout(1.5):
            cluster = await loop.changed(loop.cluster)
        assert reasons(cluster) == {"fresh": 2, "starting": 1} and not loop.ready
        round_.cancel()


async def test_a_node_that_has_not_changed_is_the_same_object() -> None:
    async with Fleet(3, document) as fleet, Watched(Pods(placed(fleet.urls))) as loop:
        await loop.round()
        before = loop.cluster
        await loop.round()
        assert loop.cluster is before and loop.ready
        fleet.change([1])
        await loop.round()
        assert [a is b for a, b in zip(before.nodes, loop.cluster.nodes, strict=True)] == [True, False, True]


def stand_in(url: str, number: int) -> Place:
    return Place("store", (url,), node_name(number), stands_in=True)


async def test_who_stands_in_is_shown_only_where_the_agent_cannot_be_read() -> None:
    """The agent's pod may be newer than the place that stands in for it."""
    async with Fleet(2, document) as fleet:
        agent, other = fleet.urls
        pods = Pods((stand_in(agent, 0), stand_in(other, 1)))
        async with Watched(pods, timeout=0.5) as loop:
            await loop.round()
            assert [node.origin for node in loop.cluster.nodes] == ["store", "store"]
            pods.places = (
                Place("agent", (agent,), node_name(0)),
                Place("agent", (closed_address(),), node_name(1)),
                *pods.places,
            )
            await loop.round()
            shown = [(node.name, node.state, node.origin) for node in loop.cluster.nodes]
            assert (await loop.full(node_name(1))).node == node_name(1)
    assert shown == [(node_name(0), "fresh", "agent"), (node_name(1), "fresh", "store")]


async def test_a_node_that_is_gone_leaves_and_its_connection_is_closed() -> None:
    async with Fleet(2, document) as fleet:
        survey = Pods(placed(fleet.urls))
        async with Watched(survey) as loop:
            await loop.round()
            survey.places = survey.places[:1]
            await loop.round()
            assert [node.name for node in loop.cluster.nodes] == [node_name(0)]
            await asyncio.sleep(0.05)
            assert len(fleet.wires) == 1


async def test_agents_at_given_addresses_are_known_by_what_they_say() -> None:
    async with Fleet(2, document) as fleet, Watched(GivenAgents([*fleet.urls, closed_address()])) as loop:
        await loop.round()
        first, _, _ = loop.cluster.nodes
        assert [node.state for node in loop.cluster.nodes] == ["failed", "fresh", "fresh"]
        assert first.name.startswith("127.0.0.1:")


async def test_two_agents_of_one_node_are_not_added_up() -> None:
    same = plain(document(0))
    async with Fleet(2, document, {1: same}) as fleet, Watched(GivenAgents(fleet.urls)) as loop:
        await loop.round()
        assert reasons(loop.cluster) == {"fresh": 1, "wrong_node": 1}
        (liar,) = (node for node in loop.cluster.nodes if node.state == "failed")
        assert liar.snapshot is None and "which another agent reports already" in liar.detail
