"""What a kubelet that has just started does not list yet."""

from collections.abc import Collection

from podgpu.kube.kubelet.device_lists import Row, Rows

SETTLING_SECONDS = 30.0


class Unlisted:
    """Rows of pods that were listed before the kubelet started again, and not yet since.

    It lists the pods it has heard of: none at first, then those in files, then those of the API server. Its devices
    belong to their pods all the while. A pod that ended meanwhile is never listed again, so the wait has an end.
    """

    def __init__(self) -> None:
        self._rows: Rows = frozenset()
        self._until = 0.0

    def __bool__(self) -> bool:
        return bool(self._rows)

    def expect(self, rows: Rows, now: float) -> None:
        """Wait for the pods of these rows, from now on."""
        self._rows, self._until = rows, now + SETTLING_SECONDS

    def rows(self, listed: Collection[Row], given: Rows, now: float) -> Rows:
        """Return the rows of pods that are not listed. A device that was given to another pod is not among them."""
        if self._rows:
            taken = {_device(row) for row in given}
            kept = (row for row in self._rows if row[:2] not in listed and _device(row) not in taken)
            self._rows = frozenset(kept) if now < self._until else frozenset()
        return self._rows


def _device(row: Row) -> Row:
    return row[3:]
