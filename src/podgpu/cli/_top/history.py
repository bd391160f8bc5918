"""How busy GPUs and pods were since the screen was opened, for its sparklines."""

from collections.abc import Iterable

from podgpu.insight.rows import SummaryItem

MOST_READINGS = 120  # more than a sparkline has cells
_UNKNOWN = 255
_FULL = 200  # a ratio of 1; a byte each keeps the histories of 8,000 GPUs small


class UseHistory:
    """By view and row. Each new reading adds a value to each row of it. A row that is gone is forgotten."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, bytes]] = {}
        self._taken_at: dict[str, float] = {}

    def add(self, view: str, taken_at: float, items: Iterable[SummaryItem]) -> None:
        """Add the use of each row, unless this reading was added before."""
        if self._taken_at.get(view) == taken_at:
            return
        self._taken_at[view] = taken_at
        before = self._values.get(view, {})
        # Put in place as a whole: another thread draws.
        self._values[view] = {
            item.key: before.get(item.key, b"")[1 - MOST_READINGS :] + _byte(item.row.use_ratio)
            for item in items
        }

    def of(self, view: str, key: str) -> list[float | None]:
        """Return the ratios, the oldest first."""
        values = self._values.get(view, {}).get(key, b"")
        return [None if value == _UNKNOWN else value / _FULL for value in values]


def _byte(ratio: float | None) -> bytes:
    return bytes((_UNKNOWN if ratio is None else round(min(max(ratio, 0.0), 1.0) * _FULL),))
