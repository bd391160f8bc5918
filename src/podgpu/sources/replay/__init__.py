"""A recording of a node or a cluster, played back."""

from typing import TYPE_CHECKING

from podgpu.errors import UserError
from podgpu.sources.protocols import SourceEntry

if TYPE_CHECKING:
    from podgpu.sources.player import Player
    from podgpu.sources.replay.options import ReplayOptions


def _play(options: "ReplayOptions") -> "Player":
    from podgpu.sources.player import Player
    from podgpu.sources.replay.recording import Recording

    if options.file is None:
        raise UserError("a replay needs a recording; give --replay.file=PATH, made by `podgpu record`")
    recording = Recording(options.file)
    return Player(recording.times, recording.document, speed=options.speed, is_loop=options.loop == "on")


SOURCE = SourceEntry(name="replay", help="a recording", play=_play)
