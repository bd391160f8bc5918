"""Which of a node's pods is read: its agent, or else its dcgm-exporters."""

from collections.abc import Mapping

from podgpu.cluster.survey import Place, PodSurvey
from podgpu.model import Fault


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
    found = await PodSurvey(agents, exporters).find()
    assert found.places == (
        Place("agent", ("http://a1",), "a"),
        Place("dcgm", ("http://b:9400", "http://b:9401"), "b"),
    )
    assert all(part.up for part in found.parts)


async def test_having_no_agents_is_no_failure_but_not_being_allowed_to_look_is() -> None:
    nobody = Fault(reason="no_exporter", detail="no running pod")
    forbidden = Fault(reason="forbidden", detail="cannot list pods")
    found = await PodSurvey(Somewhere({}, nobody), Somewhere({}, forbidden)).find()
    assert [(part.name, part.up) for part in found.parts] == [("agents", True), ("exporters", False)]
