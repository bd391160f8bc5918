"""What a fault is to the matrix: how it begins and ends, how the agent shows it, and in which phases it is played."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum

from tests.faults.node import IS_WHOLE, Node
from tests.faults.page import Page
from tests.patience import PATIENCE

SHOWN_SECONDS = 20.0
RECOVERY_SECONDS = 10.0  # two intervals, as podgpu has them by default


def promised(seconds: float) -> float:
    """How long it may take here."""
    return seconds if IS_WHOLE else max(seconds, PATIENCE)


class Phase(StrEnum):
    START = "start"
    RUNNING = "running"
    SCRAPE = "scrape"
    STOP = "stop"


# The fault is there for as long as its context is entered.
Fault = Callable[[Node], AbstractContextManager[object]]
# Whether the page shows something, beside the page from before the fault. At the start there was none: it is empty.
Sign = Callable[[Page, Page], bool]


# What the agent is given on its command line.
Flags = Callable[[Node], Sequence[str]]


def no_flags(_: Node) -> Sequence[str]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Play:
    """One fault. The `id` is that of the catalogue, with a word behind a dot if the same fault has several forms.

    `shows` is how the agent names the fault; where nothing is wrong for the user, it proves that it was survived.
    `flags` sets the node up before the agent starts, and returns what the agent is given on its command line.
    `left_out` has the phases that make no sense, each with the reason. `patience` is how long it may take until the
    fault shows, `recovers` until all is well again, where that is not two intervals: say why beside it. `clients` is
    how many connections the agent may hold meanwhile. `well` is what must be so, besides all else, before the fault
    and after it.
    """

    id: str
    what: str
    fault: Fault
    shows: Sign
    flags: Flags = no_flags
    left_out: Mapping[Phase, str] = field(default_factory=dict)
    patience: float = SHOWN_SECONDS
    recovers: float = RECOVERY_SECONDS
    clients: int = 0
    well: Callable[[Page], bool] = lambda _: True

    @property
    def fault_id(self) -> str:
        return self.id.partition(".")[0]

    @property
    def kind(self) -> str:
        return self.id[0]

    @property
    def phases(self) -> tuple[Phase, ...]:
        return tuple(phase for phase in Phase if phase not in self.left_out)
