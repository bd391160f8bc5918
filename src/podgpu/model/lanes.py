"""Who was at work on a shared card in each moment of a minute, by the driver's log of context switches."""

from msgspec import Struct

from podgpu.model.pod import ContainerRef


class Lane(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One party's minute. It adds up to what was booked to it in that time."""

    container: ContainerRef | None = None  # absent for what is booked to no container
    reason: str = ""  # why it is booked to none; empty if it is booked to one
    busy_us: tuple[int, ...]  # microseconds in each column


class Lanes(Struct, frozen=True, kw_only=True, gc=False):
    """The last full minute of a card, in columns of equal length. Before the first is over, what there is of it."""

    is_whole: bool  # whether the minute is over: then the card's and the tenants' bands are of the same time
    ended_at: float  # seconds since 1970
    step_us: int  # the length of a column
    elapsed_us: int  # the time that was booked
    lanes: tuple[Lane, ...]  # tenants first
    seen_us: tuple[int, ...]  # what the log covers of each column
    switching_us: tuple[int, ...]  # between two contexts, in each column
    switches: int  # from one context to another
    logged_us: int  # the time that the log is about
