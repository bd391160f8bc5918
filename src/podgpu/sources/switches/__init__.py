"""The driver's log of context switches: which process's context is on a card, to the nanosecond.

It is no value of `--source`, but adds to one where the user asks for it. The driver keeps the log for profilers, behind
a private interface that is easy to misuse. So all of it happens in a child process that makes a short list of calls, on
driver branches where their layout is known. Whatever happens to that process, the rest of the agent goes on.

    watcher  the log as the agent sees it: starts, asks and stops the child process
    child    the child process: reads the logs of the cards it is asked to watch
    driver   the calls, and one card's log: opens it, reads what is new
    layout   what the calls look like in memory
    slices   turns records into slices
"""

from msgspec import Struct

from podgpu.model import SwitchLog

NAME = "switches"


class WatchRequest(Struct, frozen=True, tag="watch"):
    """Watch exactly these cards: their UUIDs, each with the minor number of its node. Answer with a WatchAnswer."""

    cards: dict[str, int]


class CloseRequest(Struct, frozen=True, tag="shut"):
    """Close the logs of these cards. There is no answer."""

    cards: list[str]


class CardLogAnswer(Struct, frozen=True, kw_only=True):
    """A card's log since the previous answer, None if there is none; then `reason` says why, or it has just begun."""

    log: SwitchLog | None = None
    reason: str = ""
    call: str = ""
    detail: str = ""
    counts: dict[str, int] = {}


class WatchAnswer(Struct, frozen=True):
    cards: dict[str, CardLogAnswer] = {}
