"""The newest snapshot of a node, and a way to wait for the next one."""

from podgpu.feed import Feed
from podgpu.model import Snapshot


class SnapshotFeed(Feed[Snapshot]):
    @property
    def snapshot(self) -> Snapshot:
        """The newest one, the same object until there is a newer one."""
        return self.newest
