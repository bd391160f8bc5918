"""Who is on the node, when the best list of pods is away."""

from collections import Counter

from podgpu.agent.roster import Roster
from podgpu.model import Fault, PartStatus, Pod


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
        return PartStatus(
            name=self.name, up=self._up, fault=None if self._up else Fault(reason="unreachable")
        )


def pod(name: str, phase: str) -> Pod:
    return Pod(namespace="ns", name=name, uid=f"uid-{name}", phase=phase)


def test_a_pod_that_ran_and_has_no_log_folder_any_more_may_be_gone() -> None:
    """Its note would hold a card for ever that was given to another pod since."""
    told = Listing(
        "apiserver", pod("gone", "Running"), pod("done", "Succeeded"), pod("there", "Running"), up=False
    )
    folders = Listing("log-dirs", pod("there", ""))
    assert [(one.name, one.phase) for one in Roster([told, folders]).pods()] == [
        ("there", "Running"),
        ("done", "Succeeded"),
    ]
