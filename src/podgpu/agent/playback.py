"""Plays a recorded node in place of the agent's loop: nothing is read, and nothing is booked."""

import asyncio
from collections.abc import Callable

from podgpu import log
from podgpu.errors import UserError
from podgpu.feed import SnapshotFeed
from podgpu.model import Snapshot
from podgpu.sources.player import Player
from podgpu.supervise import Supervisor

MOST_WAIT_SECONDS = 0.5  # a pause or another speed may come at any time


class Playback(SnapshotFeed):
    """`take` makes a snapshot of a recorded document."""

    ready = True
    name = "playback"

    def __init__(self, player: Player, take: Callable[[bytes], Snapshot]) -> None:
        self.player = player
        self.supervisor = Supervisor()
        self._take = take
        self._shown = player.number
        super().__init__(self._snapshot())

    async def run(self) -> None:
        while True:
            await asyncio.sleep(min(self.player.seconds_to_next, MOST_WAIT_SECONDS))
            await self.cycle()

    async def cycle(self) -> None:
        number = self.player.number
        if number == self._shown:
            return
        self._shown = number
        try:
            self.publish(self._snapshot())
        except UserError as error:
            log.warning("this moment cannot be shown", error=error)

    async def release(self, seconds: float) -> bool:
        """Agree at once: a recording holds no driver."""
        return True

    async def close(self) -> None:
        """Nothing is open."""

    def pause(self) -> None:
        self.player.pause()
        log.info("playback paused" if self.player.is_paused else "playback continues")

    def moment(self, number: int) -> Snapshot:
        """Return one of the recorded moments. Raises UserError."""
        return self._take(self.player.document(number))

    def _snapshot(self) -> Snapshot:
        return self.moment(self._shown)
