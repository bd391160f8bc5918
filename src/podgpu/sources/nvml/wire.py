"""The messages between the agent and its sampler.

The agent sends `Read` and gets a `Report`, or sends `Stop` and the sampler exits.
"""

import msgspec
from msgspec import Struct


class Read(Struct, frozen=True, tag="read"):
    """Read all GPUs and answer within `seconds`, even if some have not answered.

    Of the cards in `windows`, read the busy time of each of the driver's windows too. Until the next request, take ten
    glimpses a second of those in `watched`, to cut their windows in halves.
    """

    seconds: float
    windows: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()


class Stop(Struct, frozen=True, tag="stop"):
    """Close the library and exit."""


Request = Read | Stop
decode_request = msgspec.msgpack.Decoder(Request).decode
