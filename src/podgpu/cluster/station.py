"""A node as it is read: its reader, the newest snapshot, and why there is none."""

import time
from urllib.parse import urlsplit

from podgpu.cluster.node_log import NodeLog
from podgpu.cluster.reader import Reader, ReadFault
from podgpu.cluster.standing import Look
from podgpu.cluster.survey import Place
from podgpu.insight import InsightSettings, concluded
from podgpu.model import Snapshot


class Station:
    """`snapshot` is concluded; it is the reader's own object where its agent did that with the same settings."""

    def __init__(self, place: Place, reader: Reader, settings: InsightSettings, node_log: NodeLog) -> None:
        self.place = place
        self.reader = reader
        self._settings = settings
        self._read: Snapshot | None = None
        self.snapshot: Snapshot | None = None
        self.fault: ReadFault | None = None
        self._new_at = 0.0
        self._log = node_log

    @property
    def name(self) -> str:
        """The node's name: as Kubernetes knows it, else as the agent says, else its address."""
        return self.place.node or (self.snapshot.node if self.snapshot else self.address)

    @property
    def address(self) -> str:
        """For messages: without a login that may be in the URL."""
        return urlsplit(self.place.urls[0]).netloc.rpartition("@")[2]

    async def read(self) -> None:
        try:
            snapshot = await self.reader.read()
            is_new = snapshot is not self._read
            judged = concluded(snapshot, self._settings) if is_new else self.snapshot
        except ReadFault as fault:
            self._failed(fault)
        except Exception as error:  # one node must not stop the others
            self._failed(ReadFault("failed", repr(error)))
        else:
            if self.fault is not None:
                self._log.back(self.name)
            self.fault = None
            if is_new:
                self.snapshot, self._read, self._new_at = judged, snapshot, time.monotonic()

    def look(self, now: float) -> Look:
        return Look(
            origin=self.place.origin,
            snapshot=self.snapshot,
            written=self.reader.written,
            seconds=now - self._new_at,
            fault=self.fault,
        )

    def _failed(self, fault: ReadFault) -> None:
        if self.fault is None or self.fault.reason != fault.reason:
            self._log.lost(self.name, fault.reason, fault.detail)
        self.fault = fault
