"""Every fault that podgpu must survive, in every phase: the cells of the matrix.

A to H are kinds of faults: of the driver, the kubelet, the API server, dcgm-exporter, processes and pods, the page,
HTTP and the agent itself. K is what other agents do to the reader of a cluster. N are attacks that once succeeded.
"""

from dataclasses import dataclass

from tests.faults.node import IS_WHOLE
from tests.faults.play import Phase, Play
from tests.faults.plays import PLAYS

KINDS = {
    "A": "GPU and driver",
    "B": "kubelet",
    "C": "API server",
    "D": "dcgm-exporter",
    "E": "processes and pods",
    "F": "the page's text",
    "G": "HTTP clients",
    "H": "the agent itself",
    "K": "other agents",
    "N": "attacks",
}
COUNTS = {"A": 18, "B": 8, "C": 10, "D": 7, "E": 10, "F": 6, "G": 11, "H": 14, "K": 2, "N": 15}

# What is played every time; all the rest takes `make matrix`. At least one of each kind.
FEW = {
    "A1": (Phase.STOP,),
    "B1": (Phase.RUNNING,),
    "C7": (Phase.SCRAPE,),
    "C10.folders-away": (Phase.RUNNING,),
    "D5": (Phase.RUNNING,),
    "E1": (Phase.RUNNING,),
    "F1": (Phase.RUNNING,),
    "G6": (Phase.STOP,),
    "H8": (Phase.SCRAPE,),
    "K1": (Phase.RUNNING,),
    "N4": (Phase.START,),
}


@dataclass(frozen=True)
class Cell:
    """A fault in a phase."""

    play: Play
    phase: Phase

    def __str__(self) -> str:
        return f"{self.play.id}-{self.phase}"


def cells() -> list[Cell]:
    every = [Cell(play, phase) for play in PLAYS for phase in play.phases]
    return [cell for cell in every if IS_WHOLE or cell.phase in FEW.get(cell.play.id, ())]
