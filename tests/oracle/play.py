"""Plays a file of cases, and counts how many podgpu gets right."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from podgpu import sharing
from podgpu.agent.inventory import Disambiguation
from podgpu.model import Claim, ContainerRef, Device, Holder, Process
from podgpu.sharing.floors import Places
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.system import AmbiguousClaims
from tests.oracle import dynamic
from tests.oracle.case import Case, Right, read
from tests.oracle.inventory import inventory
from tests.oracle.verdict import NOT_UNDERSTOOD, RIGHT, WRONG, Difference, differences, verdict

CASES = Path(__file__).parent / "cases"


class Played(Struct, frozen=True):
    """One case, and where claims and truth differ. In `running` every container has a process on each of its cards."""

    case: Case
    differences: tuple[Difference, ...]
    running: tuple[Difference, ...]

    @property
    def verdict(self) -> str:
        return verdict(self.differences)


async def played(path: Path) -> list[Played]:
    """Play the cases of a file. Reading a node costs most, so each is read once."""
    found = []
    for case in cases(path):
        node = await inventory(case)
        bare = _judged(case, sharing.claims(node))
        settled, seen = shown(case, node)
        running = _judged(case, sharing.claims(node, settled, seen=seen)) if settled or seen else bare
        found.append(Played(case, bare, running))
    return found


def _judged(case: Case, claims: Iterable[Claim]) -> tuple[Difference, ...]:
    return tuple(differences(case.truth or (), claims))


def shown(case: Case, node: Inventory) -> tuple[dict[AmbiguousClaims, int], Places]:
    """Return what processes show that run where the truth says."""
    places = list(enumerate(case.truth or (), 100))
    holders = {
        pid: Holder(pid=pid, kind="pod", container=ContainerRef(place.namespace, place.pod, place.container))
        for pid, place in places
    }
    devices = [
        replace(
            device,
            processes=tuple(_process(pid, place, device) for pid, place in places if place.gpu == device.gpu.uuid),
        )
        for device in node.devices
    ]
    settle = Disambiguation()
    settled = settle.settle(sharing.ambiguous_claims(node), devices, holders)
    return settled, settle.place(sharing.holdings(node), devices, holders)


def _process(pid: int, place: Right, device: Device) -> Process:
    mig = next((instance.mig for instance in device.instances if instance.mig.uuid == place.mig), None)
    if mig is None:
        return Process(pid=pid, kinds=("compute",))
    ids = mig.gpu_instance_id, mig.compute_instance_id
    return Process(pid=pid, kinds=("compute",), gpu_instance_id=ids[0], compute_instance_id=ids[1])


def cases(path: Path) -> Iterator[Case]:
    """Read a file. A node of DRA has devices only: claims are made up for it, and the truth with them."""
    for number, case in enumerate(read(path)):
        yield from dynamic.composed(case, number) if case.devices is not None else (case,)


def line(path: Path, found: list[Played]) -> str:
    counts = Counter(case.verdict for case in found)
    name = path.name.partition(".jsonl")[0]
    verdicts = " ".join(f"{verdict} {counts[verdict]}" for verdict in (RIGHT, WRONG, NOT_UNDERSTOOD))
    return f"{name} cases {len(found)} {verdicts}"
