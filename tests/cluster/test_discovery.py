"""Which of a node's pods is read: its agent, or else its dcgm-exporters."""

from collections.abc import Mapping

from msgspec.structs import replace

from podgpu.cluster.discovery import BackedDiscovery, Discovered, NodeTarget, PodDiscovery
from podgpu.model import Fault, PartStatus


class Somewhere:
    def __init__(self, found: Mapping[str, str], fault: Fault | None = None) -> None:
        self.found = found
        self.fault = fault
        self.is_closed = False

    async def find(self) -> tuple[Mapping[str, str], Fault | None]:
        return self.found, self.fault

    async def close(self) -> None:
        self.is_closed = True


async def test_an_exporter_is_read_only_where_there_is_no_agent() -> None:
    agents = Somewhere({"http://a1": "a", "http://a2": "a"})
    exporters = Somewhere({"http://a:9400": "a", "http://b:9400": "b", "http://b:9401": "b"})
    found = await PodDiscovery(agents, exporters).find()
    assert found.targets == (
        NodeTarget("agent", ("http://a1",), "a"),
        NodeTarget("dcgm", ("http://b:9400", "http://b:9401"), "b"),
    )
    assert all(part.up for part in found.parts)


async def test_having_no_agents_is_no_failure_but_not_being_allowed_to_look_is() -> None:
    nobody = Fault(reason="no_exporter", detail="no running pod")
    forbidden = Fault(reason="forbidden", detail="cannot list pods")
    found = await PodDiscovery(Somewhere({}, nobody), Somewhere({}, forbidden)).find()
    assert [(part.name, part.up) for part in found.parts] == [("agents", True), ("exporters", False)]
    assert [part.fault and part.fault.reason for part in found.parts] == ["no_agent", "forbidden"]
    found = await PodDiscovery(Somewhere({"http://a1": "a"}), Somewhere({}, nobody)).find()
    assert [(part.up, part.fault) for part in found.parts] == [(True, None), (True, None)]


class Listed:
    """Places that somebody else found."""

    def __init__(self, *targets: NodeTarget, part: PartStatus) -> None:
        self.found = Discovered(targets, (part,))
        self.is_closed = False

    async def find(self) -> Discovered:
        return self.found

    async def close(self) -> None:
        self.is_closed = True


async def test_a_store_stands_in_for_agents_and_exporters_for_what_it_does_not_know() -> None:
    pods = PodDiscovery(Somewhere({"http://a1": "a"}), Somewhere({"http://b:9400": "b", "http://c:9400": "c"}, None))
    stored = [NodeTarget("store", ("http://store",), node) for node in ("a", "b")]
    store = Listed(*stored, part=PartStatus(name="store", up=True))
    found = await BackedDiscovery(pods, store).find()
    assert found.targets == (
        NodeTarget("agent", ("http://a1",), "a"),
        *(replace(target, is_fallback=True) for target in stored),
        NodeTarget("dcgm", ("http://c:9400",), "c"),
    )
    assert [part.name for part in found.parts] == ["agents", "exporters", "store"]


async def test_beside_a_store_having_no_agents_is_nothing_to_tell_but_a_failure_is() -> None:
    nobody = Fault(reason="no_exporter", detail="no running pod")
    forbidden = Fault(reason="forbidden", detail="cannot list pods")
    broken = PartStatus(name="store", up=False, fault=Fault(reason="store_unreachable"))
    discovery = BackedDiscovery(PodDiscovery(Somewhere({}, nobody), Somewhere({}, forbidden)), Listed(part=broken))
    faults = {part.name: part.fault.reason if part.fault else "" for part in (await discovery.find()).parts}
    assert faults == {"agents": "", "exporters": "forbidden", "store": "store_unreachable"}


async def test_agents_and_the_store_are_both_closed() -> None:
    agents, store = (Listed(part=PartStatus(name=name, up=True)) for name in ("agents", "store"))
    await BackedDiscovery(agents, store).close()
    assert agents.is_closed and store.is_closed
