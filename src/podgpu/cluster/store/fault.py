"""Why a store gave nothing, or perhaps not everything."""

from msgspec import Struct

PARTIAL = "store_partial"
EMPTY = "store_empty"
NOTHING = (
    "the store has no samples of podgpu: see whether agents are scraped, and check --prometheus.selector"
)


class StoreFault(Exception):
    """The store gave no answer that can be used. `reason` is one of those in docs/report.md."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


class Notice(Struct, frozen=True, order=True):
    """The store answered, but not all may be there: `store_partial`, `store_warning` or `store_ambiguous`."""

    reason: str
    detail: str


# The same question about less may well be answered.
TOO_MUCH = frozenset({"store_late", "store_limited", "store_too_large"})
