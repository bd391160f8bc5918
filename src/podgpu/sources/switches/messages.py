"""The messages between the agent and the child process."""

from msgspec import Struct

from podgpu.model import SwitchLog


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
