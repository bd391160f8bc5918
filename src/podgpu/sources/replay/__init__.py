"""A recording of a node or a cluster, played back. Its snapshots are joined and booked already: nothing is read anew.

So it does not `open` a source for the ledger: it is played to whoever shows snapshots.
"""

from typing import TYPE_CHECKING

from podgpu.errors import UserError

if TYPE_CHECKING:
    from podgpu.sources.replay.options import ReplayOptions
    from podgpu.sources.replay.recording import Player

NAME = "replay"
HELP = "a recording"


def play(options: "ReplayOptions") -> "Player":
    from podgpu.sources.replay.recording import Player, Recording

    if options.file is None:
        raise UserError("a replay needs a recording; give --replay.file=PATH, made by `podgpu record`")
    return Player(Recording(options.file), speed=options.speed, is_loop=options.loop == "on")
