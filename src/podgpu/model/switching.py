"""What the driver's log of context switches says about one card. All times are of the node's clock, since 1970."""

from msgspec import Struct

HIDDEN_PID = 0  # a process of another user, which the agent may not see
ENDED_PID = -1  # a process that had ended before the driver could look it up


class Slice(Struct, frozen=True, array_like=True, gc=False):
    """A time in which a process's context was on the card."""

    pid: int
    begin_ns: int
    end_ns: int


class BusyWindow(Struct, frozen=True, array_like=True, gc=False):
    """How long the card was busy in a stretch of time, whoever caused it."""

    begin_ns: int
    end_ns: int
    busy_ns: int


class Span(Struct, frozen=True, array_like=True, gc=False):
    begin_ns: int
    end_ns: int


class SwitchLog(Struct, frozen=True, kw_only=True, gc=False):
    """The log of one card since the previous reading: complete from `begin_ns` to `end_ns`, except for `lost`.

    `slices` follow each other; whoever is still on the card at the end has a slice up to there. `switching_ns` is the
    time between one context and the next.
    """

    begin_ns: int
    end_ns: int
    slices: tuple[Slice, ...] = ()
    lost: tuple[Span, ...] = ()
    switches: int = 0
    switching_ns: int = 0
