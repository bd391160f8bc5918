"""Whether the names of metrics that this version serves will last."""

from podgpu.catalog.renames import RENAMES, Rename, in_force
from podgpu.doctor.verdict import Machine, Verdict, passed, several, warned
from podgpu.model import Snapshot


def renamed(snapshot: Snapshot, _: Machine) -> Verdict:
    return judged(snapshot.version, RENAMES)


def judged(version: str, renames: tuple[Rename, ...]) -> Verdict:
    going = in_force(version, renames)
    if not going:
        return passed("no metric is about to lose its name")
    return warned(several([f"{one.old} is now {one.new}, and goes in {one.until}" for one in going]))
