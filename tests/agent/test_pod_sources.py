"""Who is on the node, when the best list of pods is away."""

from collections import Counter

from msgspec.structs import replace

from podgpu.agent.owners import PodSources
from podgpu.model import Fault, PartStatus, Pod, PodContainer


class Listing:
    def __init__(self, name: str, *pods: Pod, up: bool = True) -> None:
        self.name = name
        self.errors: Counter[str] = Counter()
        self._pods = pods
        self._up = up

    async def run(self) -> None:
        return

    def pods(self) -> tuple[Pod, ...]:
        return self._pods

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=self._up, fault=None if self._up else Fault(reason="unreachable"))


def pod(name: str, phase: str) -> Pod:
    return Pod(namespace="ns", name=name, uid=f"uid-{name}", phase=phase)


def test_a_pod_that_ran_and_has_no_log_folder_any_more_may_be_gone() -> None:
    """Its note would hold a card for ever that was given to another pod since."""
    told = Listing("apiserver", pod("gone", "Running"), pod("done", "Succeeded"), pod("there", "Running"), up=False)
    folders = Listing("log-dirs", pod("there", ""))
    assert [(listed.name, listed.phase) for listed in PodSources([told, folders]).pods()] == [
        ("there", "Running"),
        ("done", "Succeeded"),
    ]


def test_a_container_that_started_again_has_the_id_of_its_log_folder() -> None:
    """What the API server said last is true of all but that."""

    def started(phase: str, container_id: str) -> Pod:
        containers = (PodContainer(name="c", container_id=container_id, limits={} if not phase else {"r/x": "1"}),)
        return replace(pod("p", phase), containers=containers)

    told = Listing("apiserver", started("Running", "old"), up=False)
    (merged,) = PodSources([told, Listing("log-dirs", started("", "new"))]).pods()
    assert (merged.phase, merged.containers[0].container_id) == ("Running", "new")
    assert merged.containers[0].limits == {"r/x": "1"}
