"""The newest snapshot, and a way to wait for the next one."""

from podgpu import feed
from podgpu.model import Snapshot


class Feed(feed.Feed[Snapshot]):
    @property
    def snapshot(self) -> Snapshot:
        return self.newest
