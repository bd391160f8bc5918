"""A node as it is read: its reader, the newest snapshot, and why there is none."""

import time
from urllib.parse import urlsplit

from podgpu import log
from podgpu.cluster.reader import Reader, ReadFault
from podgpu.cluster.standing import Look
from podgpu.cluster.survey import Place
from podgpu.insight import Terms, concluded
from podgpu.model import Snapshot


class Station:
    """`snapshot` is concluded; it is the reader's own object where its agent did that on the same terms."""

    def __init__(self, place: Place, reader: Reader, terms: Terms) -> None:
        self.place = place
        self.reader = reader
        self._terms = terms
        self._read: Snapshot | None = None
        self.snapshot: Snapshot | None = None
        self.fault: ReadFault | None = None
        self._new_at = 0.0

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
        except ReadFault as fault:
            self._failed(fault)
        except Exception as error:  # one node must not stop the others
            self._failed(ReadFault("failed", repr(error)))
        else:
            if self.fault is not None:
                log.info("a node is back", node=self.name)
            self.fault = None
            if snapshot is not self._read:
                self.snapshot, self._read = concluded(snapshot, self._terms), snapshot
                self._new_at = time.monotonic()

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
            log.warning("a node cannot be read", node=self.name, reason=fault.reason, detail=fault.detail)
        self.fault = fault
